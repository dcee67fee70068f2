// Touches pages and asks the system where they lie.
#pragma once

#include <platform/os.hpp>

#include <optional>
#include <vector>

namespace isthmus::platform::os {

// A worker that gets less than this to touch costs more than it saves.
inline constexpr std::size_t least_touch_bytes = std::size_t{16} << 20;

// Gives every page memory, by `workers` together where there is enough to do. 0, or errno.
int touch_pages(void* data, std::size_t bytes, std::size_t page_bytes, const SystemCalls& calls,
                const Workers& workers);

struct Whereabouts {
    int error = 0;  // errno of move_pages; 0: every page was asked about
    std::size_t pages = 0;
    std::size_t outside = 0;  // pages on a node that was not wanted
    std::size_t absent = 0;   // pages that the system would not place (swapped out, not touched)
    int node = -1;            // of all pages; -1: several or none
    int outside_node = -1;    // of the first page outside
};
// One question per page; `wanted` empty: every node is fine.
Whereabouts find_pages(void* data, std::size_t bytes, std::size_t page_bytes, const std::vector<int>& wanted,
                       const SystemCalls& calls);

// The nodes that the cpuset leaves to this process; nothing where the system does not say.
std::optional<std::vector<int>> allowed_nodes(const SystemCalls& calls);

// 0, or errno: one mbind for the whole mapping. `mode` is MPOL_*.
int bind_pages(void* data, std::size_t bytes, int mode, const std::vector<int>& nodes, const SystemCalls& calls);

}  // namespace isthmus::platform::os
