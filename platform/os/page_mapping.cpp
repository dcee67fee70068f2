// SPDX-License-Identifier: Apache-2.0
// Maps anonymous memory, aligned for huge pages; reports what could not be obtained.
#include "page_mapping.hpp"

#include "os_errors.hpp"

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace isthmus::platform::os {
namespace {

constexpr int protection = PROT_READ | PROT_WRITE;
constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;

bool round_up(std::size_t bytes, std::size_t unit, std::size_t& out) {
    if (bytes > std::numeric_limits<std::size_t>::max() - unit) return false;
    out = (bytes + unit - 1) / unit * unit;
    return out <= static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
}

// Anonymous memory that begins at a multiple of `alignment`: maps more and unmaps the ends.
void* map_aligned(std::size_t bytes, std::size_t alignment, const SystemCalls& calls) {
    std::size_t wide = 0;
    if (!round_up(bytes, alignment, wide) || !round_up(wide + alignment, alignment, wide)) return MAP_FAILED;
    void* whole = calls.mmap(nullptr, wide, protection, flags, -1, 0);
    if (whole == MAP_FAILED) return MAP_FAILED;
    const auto begin = reinterpret_cast<std::uintptr_t>(whole);
    const std::uintptr_t data = (begin + alignment - 1) / alignment * alignment;
    if (data != begin) calls.munmap(whole, data - begin);
    const std::uintptr_t end = data + bytes;
    if (end != begin + wide) calls.munmap(reinterpret_cast<void*>(end), begin + wide - end);
    return reinterpret_cast<void*>(data);
}

// `bound`: hugetlb pages come from a pool per node, and touching a bound mapping whose pool is empty raises SIGBUS. So
// bound memory uses transparent huge pages, which fall back by themselves.
bool map_huge(Mapping& mapping, std::size_t bytes, std::size_t huge, bool bound, const SystemCalls& calls) {
    std::size_t rounded = 0;
    if (huge == 0) {
        mapping.not_huge = make_error<errors::system_without_huge_pages>();
        return false;
    }
    mapping.not_huge = make_error<errors::huge_pages_not_mapped>();
    if (!round_up(bytes, huge, rounded)) return false;
    if (!bound) {
        void* data = calls.mmap(nullptr, rounded, protection, flags | MAP_HUGETLB, -1, 0);
        if (data != MAP_FAILED) {
            mapping = {data, rounded, huge, false, false, {}};
            return true;
        }
    }
    void* data = map_aligned(rounded, huge, calls);
    if (data == MAP_FAILED) return false;
    mapping = {data, rounded, calls.page_size_bytes(), true, false, {}};
    if (calls.madvise(data, rounded, MADV_HUGEPAGE) != 0) {
        mapping.transparent_huge = false;
        mapping.not_huge = make_error<errors::huge_pages_refused>(words(errno));
    }
    return true;
}

}  // namespace

std::string words(int error) {
    std::array<char, 128> text{};
    return ::strerror_r(error, text.data(), text.size());
}

Result<Mapping> map_pages(std::size_t bytes, std::size_t alignment, const HostPlacement& placement, bool bound,
                          const MachineFacts& machine, const SystemCalls& calls) {
    Mapping mapping;
    if (placement.page_size == PageSize::huge && map_huge(mapping, bytes, machine.huge_page_bytes, bound, calls)) {
        return mapping;
    }
    const std::size_t page = calls.page_size_bytes();
    std::size_t rounded = 0;
    if (!round_up(bytes, page, rounded)) {
        return make_error<errors::more_than_an_address_space>(bytes);
    }
    errno = 0;
    void* data = alignment > page ? map_aligned(rounded, alignment, calls)
                                  : calls.mmap(nullptr, rounded, protection, flags, -1, 0);
    if (data == MAP_FAILED) {
        const int error = errno;
        const Code code = error == EPERM ? Code::not_permitted : Code::out_of_memory;
        return make_error_as<errors::host_memory_not_mapped>(code, rounded, words(error)).from_call("mmap", error);
    }
    return Mapping{data, rounded, page, false, false, std::move(mapping.not_huge)};
}

}  // namespace isthmus::platform::os
