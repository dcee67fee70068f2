// SPDX-License-Identifier: Apache-2.0
// Shaped copies and fills, hints, and copies and access between CUDA devices.
#pragma once

#include "context.hpp"

namespace isthmus::platform::cuda {

class CudaTransfers final : public Transfers {
public:
    explicit CudaTransfers(DeviceContext& context) noexcept : context_(context) {}

    Status copy_shaped(const CopySide& destination, const CopySide& source, const CopyExtent& extent,
                       StreamHandle stream) override;
    Status copy_between(std::uint64_t destination, int destination_ordinal, std::uint64_t source, int source_ordinal,
                        std::size_t bytes, StreamHandle stream) override;
    Status copy_shaped_between(const CopySide& destination, int destination_ordinal, const CopySide& source,
                               int source_ordinal, const CopyExtent& extent, StreamHandle stream) override;
    Status fill_elements(std::uint64_t destination, std::uint32_t value, std::size_t element_bytes, std::size_t count,
                         StreamHandle stream) override;
    Status fill_shaped(const CopySide& destination, std::uint32_t value, std::size_t element_bytes,
                       const CopyExtent& extent, StreamHandle stream) override;
    Status prefetch(std::uint64_t address, std::size_t bytes, const Place& place, StreamHandle stream) override;
    Status advise(std::uint64_t address, std::size_t bytes, Advice advice, const Place& place) override;
    Status prefetch_batch(const HintedRange* ranges, std::size_t count, StreamHandle stream) override;
    Status discard_batch(const HintedRange* ranges, std::size_t count, bool prefetch, StreamHandle stream) override;
    Status advice(std::uint64_t address, std::size_t bytes, AdviceFacts& out) override;
    Status can_reach(int other_ordinal, bool& out) override;
    Status set_peer_access(int other_ordinal, bool allowed) override;

private:
    Status fill_rows(CUdeviceptr first, std::size_t pitch_bytes, std::uint32_t value, std::size_t element_bytes,
                     std::size_t width, std::size_t rows, StreamHandle stream);
    Status context_of(int ordinal, const char* call, CUcontext& out) const;

    DeviceContext& context_;
};

}  // namespace isthmus::platform::cuda
