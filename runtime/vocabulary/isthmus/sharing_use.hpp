// What a caller declares about a shared buffer: who touches it and how. The policy decides the rest.
#pragma once

#include <isthmus/atomic_set.hpp>
#include <isthmus/export.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus::inline v0 {

enum class Use : std::uint8_t { never, reads_once, reads_often, writes_once, writes_often, reads_and_writes };
enum class Prefer : std::uint8_t { throughput, latency };
ISTHMUS_API std::string_view name(Use use) noexcept;

struct SharedUse {
    Use host = Use::reads_and_writes;  // per produced content: "once" = each byte once between two hand-overs
    Use device = Use::reads_and_writes;
    Prefer prefer = Prefer::throughput;
    std::optional<MemoryKind> kind{};  // overrides the policy; refused where the machine cannot
    HostPlacement placement{};
    // What CPU and GPU do at the same time to the same words (the buffer's elements, of 4 or 8 bytes): it is given
    // memory in which that is atomic, and refused (Code::unsupported) where this machine has none. Memory that is
    // adopted stays what it is.
    AtomicSet updates = AtomicSet::load_store;
};

// How a buffer travels between host and device; what `isthmus caps` and AllocationPlan::reason explain.
enum class LaunchPath : std::uint8_t {
    pass,      // the device uses the memory in place
    attach,    // managed memory is attached to the stream before, and back to the host after (89=0)
    stage,     // host side and device side are two memories; copies are made around the use
    refuse,    // this device cannot use such memory
    prefetch,  // used in place, and brought to the device before the first use behind a host's
};
ISTHMUS_API std::string_view name(LaunchPath path) noexcept;

}  // namespace isthmus::inline v0
