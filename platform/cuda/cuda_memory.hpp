// SPDX-License-Identifier: Apache-2.0
// Memory of one CUDA device: allocation by kind, registration, copies, and facts about an address.
#pragma once

#include "context.hpp"

namespace isthmus::platform::cuda {

class CudaMemory final : public Memory {
public:
    explicit CudaMemory(DeviceContext& context) noexcept : context_(context) {}

    Status allocate(MemoryKind kind, std::size_t bytes, Attachment attachment, StreamHandle stream,
                    Allocation& out) override;
    Status release(const Allocation& allocation, StreamHandle stream) override;
    Status register_host(void* host, std::size_t bytes, bool read_only, std::uint64_t& device) override;
    Status unregister_host(void* host) override;
    Status share(std::uint64_t address, SharedHandle& out) override;
    Status open_shared(const SharedHandle& handle, Allocation& out) override;
    Status export_dma_buf(std::uint64_t address, std::size_t bytes, int& out) override;
    Status import_dma_buf(int descriptor, std::uint64_t bytes, ImportedDmaBuf& out) override;
    Status release_dma_buf(ImportedDmaBuf& imported) override;
    Status copy(std::uint64_t destination, std::uint64_t source, std::size_t bytes, CopyDirection direction,
                StreamHandle stream) override;
    Status fill(std::uint64_t destination, std::uint8_t value, std::size_t bytes, StreamHandle stream) override;
    Status attach(const Allocation& allocation, Attachment attachment, StreamHandle stream) override;
    Status pointer_facts(std::uint64_t address, PointerFacts& out) override;
    void lend(std::uint64_t device, std::size_t bytes, StreamHandle stream) noexcept override;
    bool lends() const noexcept override;
    void lend_part(std::uint64_t device, std::size_t bytes, std::size_t usable_bytes) noexcept override;
    Status memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) override;

private:
    Status allocate_managed(std::size_t bytes, Attachment attachment, StreamHandle stream, Allocation& out);
    Status allocate_host(MemoryKind kind, std::size_t bytes, Allocation& out);
    Status release_to_pool(CUdeviceptr address, StreamHandle stream);
    MemoryKind host_kind(void* host);

    DeviceContext& context_;
};

}  // namespace isthmus::platform::cuda
