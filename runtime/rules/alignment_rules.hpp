// SPDX-License-Identifier: Apache-2.0
// How coarsely an allocation may be aligned, and what has to be obtained for it. Pure.
#pragma once

#include <isthmus/facts.hpp>
#include <isthmus/placement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace isthmus::rules {

// The alignment that cuMemAlloc guarantees (CUDA C++ Programming Guide, "Device Memory Accesses"). No call of the
// driver takes an alignment.
inline constexpr std::size_t driver_alignment = 256;

// The coarsest alignment that is accepted: a page of this machine, and a huge page where huge pages are asked for.
constexpr std::size_t max_alignment(const MachineFacts& machine, PageSize pages) noexcept {
    const std::size_t page = std::max(machine.page_size_bytes, driver_alignment);
    return pages == PageSize::huge ? std::max(machine.huge_page_bytes, page) : page;
}

// A request with a coarser alignment than 256 bytes ends at such a boundary too, so that its last page holds no other
// allocation: direct I/O and other drivers work on whole pages.
constexpr std::size_t padded(std::size_t bytes, std::size_t alignment) noexcept {
    if (alignment <= driver_alignment) return bytes;
    return (bytes + alignment - 1) / alignment * alignment;
}

// The bytes to obtain of a source that aligns to `guaranteed`, so that an aligned range of padded() bytes lies in them.
constexpr std::size_t bytes_to_obtain(std::size_t bytes, std::size_t alignment, std::size_t guaranteed) noexcept {
    return padded(bytes, alignment) + (alignment > guaranteed ? alignment - guaranteed : 0);
}

// From the first byte that was obtained to the first aligned one.
constexpr std::size_t lead_bytes(std::uint64_t address, std::size_t alignment) noexcept {
    return static_cast<std::size_t>((alignment - address % alignment) % alignment);
}

}  // namespace isthmus::rules
