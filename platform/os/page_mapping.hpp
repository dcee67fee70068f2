// SPDX-License-Identifier: Apache-2.0
// Maps anonymous memory, in huge pages if requested and available.
#pragma once

#include <platform/os.hpp>

#include <optional>
#include <string>

namespace isthmus::platform::os {

// The C library's text for an errno.
std::string words(int error);

struct Mapping {
    void* data = nullptr;
    std::size_t bytes = 0;
    std::size_t page_bytes = 0;
    bool transparent_huge = false;  // requested by madvise; whether granted shows when the pages are touched
    bool touched = false;
    std::optional<Error> not_huge;  // why there are no huge pages
};
// `bound`: the memory will be bound to nodes. The caller unmaps it. If requested huge pages are not available: ordinary
// pages, and the reason. `alignment`: a power of two; every mapping begins at a page.
Result<Mapping> map_pages(std::size_t bytes, std::size_t alignment, const HostPlacement& placement, bool bound,
                          const MachineFacts& machine, const SystemCalls& calls);

}  // namespace isthmus::platform::os
