// SPDX-License-Identifier: Apache-2.0
// Shaped copies and fills on the CPU device; it has no peers, and hints have no effect.
#pragma once

#include <platform/driver.hpp>

#include "cpu_captures.hpp"

namespace isthmus::platform::cpu {

// All addresses are host addresses. Source and destination may overlap if their pitches are equal, as in a plain copy.
class CpuTransfers final : public Transfers {
public:
    explicit CpuTransfers(CpuCaptures& captures) : captures_(captures) {}
    Status copy_shaped(const CopySide& destination, const CopySide& source, const CopyExtent& extent,
                       StreamHandle stream) override;
    // Only between the CPU (-1) and itself.
    Status copy_between(std::uint64_t destination, int destination_ordinal, std::uint64_t source, int source_ordinal,
                        std::size_t bytes, StreamHandle stream) override;
    Status copy_shaped_between(const CopySide& destination, int destination_ordinal, const CopySide& source,
                               int source_ordinal, const CopyExtent& extent, StreamHandle stream) override;
    Status fill_elements(std::uint64_t destination, std::uint32_t value, std::size_t element_bytes, std::size_t count,
                         StreamHandle stream) override;
    Status fill_shaped(const CopySide& destination, std::uint32_t value, std::size_t element_bytes,
                       const CopyExtent& extent, StreamHandle stream) override;
    // Code::unsupported: the caller counts hints without effect (K21).
    Status prefetch(std::uint64_t address, std::size_t bytes, const Place& place, StreamHandle stream) override;
    Status advise(std::uint64_t address, std::size_t bytes, Advice advice, const Place& place) override;
    Status can_reach(int other_ordinal, bool& out) override;
    Status set_peer_access(int other_ordinal, bool allowed) override;

private:
    CpuCaptures& captures_;
};

}  // namespace isthmus::platform::cpu
