// SPDX-License-Identifier: Apache-2.0
// Touches pages and queries their nodes.
#pragma once

#include <platform/os.hpp>

#include <optional>
#include <vector>

namespace isthmus::platform::os {

// Less than this per worker costs more than it saves.
inline constexpr std::size_t least_touch_bytes = std::size_t{16} << 20;

// Allocates every page by touching it, with `workers` together if there is enough to do. Returns 0 or errno.
int touch_pages(void* data, std::size_t bytes, std::size_t page_bytes, const SystemCalls& calls,
                const Workers& workers);

struct Whereabouts {
    int error = 0;  // errno of move_pages; 0: every page was queried
    std::size_t pages = 0;
    std::size_t outside = 0;  // pages on an unwanted node
    std::size_t absent = 0;   // pages whose place the system did not state (swapped out, not touched)
    int node = -1;            // node of all pages; -1: several or none
    int outside_node = -1;    // node of the first page outside
};
// One query per page; `wanted` empty: every node is accepted.
Whereabouts find_pages(void* data, std::size_t bytes, std::size_t page_bytes, const std::vector<int>& wanted,
                       const SystemCalls& calls);

// The nodes that the cpuset allows this process; nothing if the system does not say.
std::optional<std::vector<int>> allowed_nodes(const SystemCalls& calls);

// Returns 0 or errno. One mbind for the whole mapping. `mode` is MPOL_*.
int bind_pages(void* data, std::size_t bytes, int mode, const std::vector<int>& nodes, const SystemCalls& calls);

}  // namespace isthmus::platform::os
