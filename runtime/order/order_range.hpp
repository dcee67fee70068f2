// SPDX-License-Identifier: Apache-2.0
// ByteRange: the bytes of a buffer that one operation touches, and whether two operations touch a common byte. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace isthmus::rules {

// `slices` × `rows` runs of `width` bytes; by default the whole buffer.
struct ByteRange {
    std::size_t offset = 0;
    std::size_t width = std::numeric_limits<std::size_t>::max();
    std::size_t rows = 1;
    std::size_t slices = 1;
    std::size_t row_pitch = 0;  // from the beginning of one run to the next
    std::size_t slice_pitch = 0;

    // One past the last byte, gaps included.
    std::size_t end() const noexcept {
        const std::size_t before = offset + (rows - 1) * row_pitch + (slices - 1) * slice_pitch;
        constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
        return width > most - before ? most : before + width;
    }
    bool whole() const noexcept { return width == std::numeric_limits<std::size_t>::max(); }
    friend bool operator==(const ByteRange&, const ByteRange&) noexcept = default;
    bool one_run() const noexcept { return rows == 1 && slices == 1; }
};

// Exact if the range with fewer runs has at most `max_runs` runs, and the other at most `max_runs` slices. Otherwise
// false unless certain.
bool share_a_byte(const ByteRange& one, const ByteRange& other) noexcept;
inline constexpr std::size_t max_runs = 4096;

// true: `outer` certainly contains every byte of `inner`.
bool contains(const ByteRange& outer, const ByteRange& inner) noexcept;

}  // namespace isthmus::rules
