// Hints about where memory should be, and what became of them: never an error where nobody listens.
#pragma once

#include <isthmus/export.hpp>

#include <cstdint>
#include <string_view>

namespace isthmus::inline v0 {

// Where a prefetch brings memory: to the stream's device, or to the host.
struct HintPlace {
    bool host = false;
    int node = -1;  // with host: this NUMA node; −1: whichever
    static constexpr HintPlace on_device() noexcept { return {}; }
    static constexpr HintPlace on_host(int numa_node = -1) noexcept { return {true, numa_node}; }
};

enum class Advice : std::uint8_t {
    read_mostly,  // copies for readers may be kept
    not_read_mostly,
    prefer_device,  // keep it in the device's memory
    prefer_host,
    no_preference,
    accessed_by_device,  // keep it mapped there, wherever it lies
    not_accessed_by_device,
};

enum class HintOutcome : std::uint8_t {
    done,         // the driver was told, or the runtime did what the hint is for
    not_needed,   // on this machine, or for this kind of memory, nothing would move
    unsupported,  // nobody listens
};
struct HintReport {
    HintOutcome outcome = HintOutcome::unsupported;
    std::string_view reason;  // static storage
};
// Of a runtime since it was opened.
struct HintCounts {
    std::uint64_t done = 0;
    std::uint64_t not_needed = 0;
    std::uint64_t unsupported = 0;
};

}  // namespace isthmus::inline v0
