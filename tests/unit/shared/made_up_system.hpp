// SPDX-License-Identifier: Apache-2.0
// A system whose answers the test chooses, and which counts the requests. One per process, as the real one.
#pragma once

#include <gtest/gtest.h>

#include <platform/os.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

namespace made_up {

using namespace isthmus;
using namespace isthmus::platform::os;

inline constexpr std::size_t megabyte = 1 << 20;

// The system's answers (0: success) and the requests it got. Mappings are real. Counters are atomic where lent threads
// make requests at once.
struct Script {
    int mmap_errno = 0;
    int hugetlb_errno = ENOMEM;  // of MAP_HUGETLB only; 0 gives an ordinary mapping
    int huge_advice_errno = 0;
    int populate_errno = 0;
    int mlock_errno = 0;
    int mbind_errno = 0;
    int move_pages_errno = 0;
    int allowed_errno = 0;
    unsigned long allowed_mask = 3;  // nodes 0 and 1
    int lies_on = 1;                 // the node that move_pages reports for every page
    int first_lies_on = 1;           // the node of the first page
    std::atomic<int> runs_on = 1;
    std::size_t page_bytes = 0;         // 0: as the real system
    int fail_at = 0;                    // which of the calls below fails, with EIO; 0: none
    std::size_t populate_error_at = 0;  // populating the range at this offset from the mapping's begin fails, EIO

    std::atomic<int> calls = 0;
    std::atomic<int> mmap_calls = 0;
    std::atomic<int> mbind_calls = 0;
    std::atomic<int> move_pages_calls = 0;
    std::atomic<int> populate_calls = 0;
    std::atomic<int> mlock_calls = 0;
    std::atomic<std::size_t> populated_bytes = 0;
    int mode = -1;
    unsigned long mask = 0;
    std::size_t pages_asked = 0;
    std::atomic<std::ptrdiff_t> mapped_bytes = 0;  // mapped and not yet unmapped
    std::atomic<std::uintptr_t> mapped_at = 0;     // the last mapping
    bool touched_before_bound = false;
    std::atomic<bool> populated = false;
};
inline Script script;

inline void start_again() {
    script.~Script();
    new (&script) Script();
}

inline int answer(int error) {
    if (++script.calls == script.fail_at) error = EIO;
    errno = error;
    return error == 0 ? 0 : -1;
}

inline SystemCalls system() {
    SystemCalls calls = SystemCalls::real();
    calls.mmap = [](void* address, std::size_t bytes, int protection, int flags, int fd, long offset) -> void* {
        int error = script.mmap_errno;
        if ((flags & MAP_HUGETLB) != 0) error = script.hugetlb_errno;
        ++script.mmap_calls;
        if (answer(error) != 0) return MAP_FAILED;
        script.mapped_bytes += static_cast<std::ptrdiff_t>(bytes);
        void* data = ::mmap(address, bytes, protection, flags & ~MAP_HUGETLB, fd, offset);
        script.mapped_at = reinterpret_cast<std::uintptr_t>(data);
        return data;
    };
    calls.munmap = [](void* address, std::size_t bytes) {
        script.mapped_bytes -= static_cast<std::ptrdiff_t>(bytes);
        return ::munmap(address, bytes);
    };
    calls.madvise = [](void* data, std::size_t bytes, int advice) {
        if (advice == MADV_HUGEPAGE) return answer(script.huge_advice_errno);
        script.populated = true;
        ++script.populate_calls;
        script.populated_bytes += bytes;
        const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(data) - script.mapped_at;
        const bool here = script.populate_error_at != 0 && offset == script.populate_error_at;
        return answer(here ? EIO : script.populate_errno);
    };
    calls.mlock = [](const void*, std::size_t) {
        ++script.mlock_calls;
        return answer(script.mlock_errno);
    };
    calls.mbind = [](void*, unsigned long, int mode, const unsigned long* mask, unsigned long, unsigned) -> long {
        ++script.mbind_calls;
        script.mode = mode;
        script.mask = mask ? *mask : 0;
        script.touched_before_bound = script.populated;
        return answer(script.mbind_errno);
    };
    calls.move_pages = [](int, unsigned long count, void**, const int* nodes, int* status, int) -> long {
        EXPECT_EQ(nodes, nullptr) << "pages shall be looked for, not moved";
        ++script.move_pages_calls;
        std::fill(status, status + count, script.lies_on);
        if (script.pages_asked == 0) status[0] = script.first_lies_on;
        script.pages_asked += count;
        return answer(script.move_pages_errno);
    };
    calls.get_mempolicy_allowed = [](unsigned long* mask, unsigned long) -> long {
        *mask = script.allowed_mask;
        return answer(script.allowed_errno);
    };
    calls.current_node = [] { return script.runs_on.load(); };
    calls.page_size_bytes = [] { return script.page_bytes != 0 ? script.page_bytes : page_size_bytes(); };
    return calls;
}

}  // namespace made_up
