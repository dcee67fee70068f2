// SPDX-License-Identifier: Apache-2.0
// Host addresses reserved before their memory: the base of growable buffers and mirrored buffers when no driver maps
// memory.
#pragma once

#include <isthmus/result.hpp>

#include <cstddef>

namespace isthmus::platform::os {

// An address range whose pages can be committed and decommitted. Movable; released on destruction. Offsets and sizes
// are multiples of the page size. Not thread-safe.
class ReservedPages {
public:
    // Reserves addresses only: touching them faults. Errors: invalid_argument (0 bytes, more than an address space
    // has), out_of_memory (also RLIMIT_AS).
    static Result<ReservedPages> reserve(std::size_t bytes);
    ReservedPages() = default;
    ReservedPages(ReservedPages&& other) noexcept;
    ReservedPages& operator=(ReservedPages&& other) noexcept;
    ~ReservedPages();

    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }
    // Maps zeroed, readable and writable pages. On an error nothing has changed. Error: out_of_memory.
    Result<void> commit(std::size_t offset, std::size_t bytes);
    // Releases the memory and keeps the addresses. On an error nothing has changed. Error: system_error.
    Result<void> decommit(std::size_t offset, std::size_t bytes);

private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

// Memory mapped twice in a row: byte i and byte i + bytes() are the same. Movable; released on destruction.
class MirroredPages {
public:
    // `bytes`: a multiple of the page size. Errors: invalid_argument, out_of_memory, system_limit (file descriptors).
    static Result<MirroredPages> create(std::size_t bytes);
    MirroredPages() = default;

    void* data() const noexcept { return twice_.data(); }
    std::size_t bytes() const noexcept { return twice_.bytes() / 2; }

private:
    ReservedPages twice_;
};

}  // namespace isthmus::platform::os
