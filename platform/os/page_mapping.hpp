// Maps anonymous memory, in huge pages where they are asked for and can be had.
#pragma once

#include <platform/os.hpp>

#include <optional>
#include <string>

namespace isthmus::platform::os {

// The words of the C library for an errno.
std::string words(int error);

struct Mapping {
    void* data = nullptr;
    std::size_t bytes = 0;
    std::size_t page_bytes = 0;
    bool transparent_huge = false;  // asked for with madvise: granted or not when the pages are touched
    bool touched = false;
    std::optional<Error> not_huge;  // why no huge pages
};
// `bound`: the memory will be bound to nodes. The caller unmaps. Without the huge pages that were asked for, ordinary
// ones and the reason.
Result<Mapping> map_pages(std::size_t bytes, const HostPlacement& placement, bool bound, const MachineFacts& machine,
                          const SystemCalls& calls);

}  // namespace isthmus::platform::os
