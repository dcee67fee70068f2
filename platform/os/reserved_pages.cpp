// SPDX-License-Identifier: Apache-2.0
// Reserves addresses without memory, and commits memory there.
#include <platform/reserved_pages.hpp>

#include "os_errors.hpp"
#include "page_mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

namespace isthmus::platform::os {
namespace {

Error refused(std::size_t bytes, const char* step, const char* call, int error) {
    return make_error<errors::reserved_memory_refused>(bytes, step, words(error)).from_call(call, error);
}

Result<void> check_size(std::size_t bytes) {
    if (bytes != 0 && bytes <= static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / 2) return {};
    return make_error<errors::host_addresses_not_reservable>(bytes);
}

}  // namespace

Result<ReservedPages> ReservedPages::reserve(std::size_t bytes) {
    if (Result<void> fine = check_size(bytes); !fine) return std::move(fine).error();
    void* data = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return refused(bytes, "could not be reserved", "mmap", errno);
    ReservedPages pages;
    pages.data_ = data;
    pages.bytes_ = bytes;
    return pages;
}

ReservedPages::ReservedPages(ReservedPages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

ReservedPages& ReservedPages::operator=(ReservedPages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

ReservedPages::~ReservedPages() {
    if (data_ != nullptr) (void)::munmap(data_, bytes_);
}

Result<void> ReservedPages::commit(std::size_t offset, std::size_t bytes) {
    if (::mprotect(static_cast<char*>(data_) + offset, bytes, PROT_READ | PROT_WRITE) == 0) return {};
    return refused(bytes, "could not be put at reserved addresses", "mprotect", errno);
}

Result<void> ReservedPages::decommit(std::size_t offset, std::size_t bytes) {
    char* const data = static_cast<char*>(data_) + offset;
    if (::madvise(data, bytes, MADV_DONTNEED) != 0) {
        const int error = errno;
        return make_error<errors::reserved_memory_not_given_back>(words(error)).from_call("madvise", error);
    }
    // The memory is released already; if this fails, touching the addresses gives zeros instead of a fault.
    (void)::mprotect(data, bytes, PROT_NONE);
    return {};
}

Result<MirroredPages> MirroredPages::create(std::size_t bytes) {
    Result<ReservedPages> twice = ReservedPages::reserve(2 * bytes);
    if (!twice) return std::move(twice).error();
    const int file = ::memfd_create("isthmus-ring", MFD_CLOEXEC);
    if (file < 0) {
        const int error = errno;
        return make_error<errors::no_file_for_mirrored_memory>(words(error)).from_call("memfd_create", error);
    }
    const bool sized = ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
    const int size_error = errno;
    bool mapped = sized;
    int map_error = 0;
    for (std::size_t copy = 0; copy < 2 && mapped; ++copy) {
        void* const at = static_cast<char*>(twice->data()) + copy * bytes;
        mapped = ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
        map_error = errno;
    }
    (void)::close(file);  // the mappings keep the memory
    if (!sized) return refused(bytes, "for a ring could not be had", "ftruncate", size_error);
    if (!mapped) return refused(bytes, "for a ring could not be mapped twice", "mmap", map_error);
    MirroredPages pages;
    pages.twice_ = std::move(twice).value();
    return pages;
}

}  // namespace isthmus::platform::os
