// SPDX-License-Identifier: Apache-2.0
// Requested placement of host memory, and the report of how it was carried out.
#pragma once

#include <isthmus/export.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus {
inline namespace v0 {

enum class Locality : std::uint8_t {
    anywhere,     // the system's default policy; bound to the nodes with CPUs where other nodes have memory
    local,        // the node of the thread that first touches it
    near_device,  // the device's closest CPU node (Capabilities::host_numa_node)
    node,         // HostPlacement::node
    interleaved,  // over all nodes that have CPUs and memory
    unbound,      // no memory policy at all, so that the driver may migrate pages to a GPU whose memory is a node
};

enum class PageSize : std::uint8_t { ordinary, huge };  // huge may fall back to ordinary, see PlacementReport

struct HostPlacement {
    Locality locality = Locality::anywhere;
    int node = -1;        // for Locality::node
    bool strict = false;  // an error instead of a fallback
    PageSize page_size = PageSize::ordinary;
    bool prefault = false;  // touch every page now
    bool lock = false;      // mlock: no page faults later (limit: RLIMIT_MEMLOCK)
};

enum class Placed : std::uint8_t {
    unasked,       // no placement was requested or checked
    verified,      // every page was queried and lies as requested
    fallback,      // it lies elsewhere; `reason` says why
    unverifiable,  // the system forbids asking
};
ISTHMUS_API std::string_view name(Locality locality) noexcept;
ISTHMUS_API std::string_view name(Placed placed) noexcept;

struct PlacementReport {
    Placed placed = Placed::unasked;
    int node = -1;               // where it lies; -1: unknown or several
    std::size_t page_bytes = 0;  // the page size that was obtained
    bool locked = false;
    std::string reason;  // empty if everything went as requested
};

}  // namespace v0
}  // namespace isthmus
