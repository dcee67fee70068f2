// SPDX-License-Identifier: Apache-2.0
// Hints about where memory should be, and their outcomes. An unsupported hint is never an error.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/memory_place.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus {
inline namespace v0 {

// Target of a prefetch: the stream's device, or the host.
struct HintPlace {
    bool host = false;
    int node = -1;  // with host: this NUMA node; −1: any node
    static constexpr HintPlace on_device() noexcept { return {}; }
    static constexpr HintPlace on_host(int numa_node = -1) noexcept { return {true, numa_node}; }
};

enum class Advice : std::uint8_t {
    read_mostly,  // the driver may keep copies for readers
    not_read_mostly,
    prefer_device,  // keep it in the device's memory
    prefer_host,
    no_preference,
    accessed_by_device,  // keep it mapped on the device, wherever it resides
    not_accessed_by_device,
};

enum class HintOutcome : std::uint8_t {
    done,         // the driver took the hint, or the runtime did what the hint asks for
    not_needed,   // nothing would move on this machine, or for this kind of memory
    unsupported,  // the device, the driver or the kind of memory takes no such hint
};
struct HintReport {
    HintOutcome outcome = HintOutcome::unsupported;
    std::string_view reason;  // static storage
};
// Advice in force for all of a buffer. `outcome` and `reason`: whether the driver told it; otherwise the rest is empty.
// An empty place: there is none, or not the same one for every page.
struct AdviceReport {
    HintOutcome outcome = HintOutcome::unsupported;
    std::string_view reason;
    bool read_mostly = false;
    bool accessed_by_device = false;        // by the device that was asked
    std::optional<MemoryPlace> preferred;   // prefer_device, prefer_host
    std::optional<MemoryPlace> prefetched;  // the last prefetch that was asked for, whether it has run or not
};
// Counts of one runtime, since it was opened.
struct HintCounts {
    std::uint64_t done = 0;
    std::uint64_t not_needed = 0;
    std::uint64_t unsupported = 0;
};

}  // namespace v0
}  // namespace isthmus
