// SPDX-License-Identifier: Apache-2.0
// ByteRange: compares each run of one range with the other range.
#include "order_range.hpp"

#include <algorithm>

namespace isthmus::rules {
namespace {

// true: [begin, end) overlaps a row of the slice of `shape` that begins at `offset`.
bool meets_rows(std::size_t begin, std::size_t end, std::size_t offset, const ByteRange& shape) noexcept {
    if (end <= offset) return false;
    if (shape.rows == 1 || shape.row_pitch == 0) {
        return begin < offset || begin - offset < shape.width;
    }
    // Only the last row that begins before `end` has to be compared: the rows before it end earlier.
    const std::size_t last = std::min((end - 1 - offset) / shape.row_pitch, shape.rows - 1);
    const std::size_t at = offset + last * shape.row_pitch;
    return begin < at || begin - at < shape.width;
}

bool meets(std::size_t begin, std::size_t end, const ByteRange& shape) noexcept {
    for (std::size_t slice = 0; slice < shape.slices; ++slice) {
        if (meets_rows(begin, end, shape.offset + slice * shape.slice_pitch, shape)) return true;
    }
    return false;
}

std::size_t runs(const ByteRange& range) noexcept {
    return range.rows > max_runs || range.slices > max_runs ? max_runs + 1 : range.rows * range.slices;
}

}  // namespace

bool share_a_byte(const ByteRange& one, const ByteRange& other) noexcept {
    if (one.width == 0 || other.width == 0) return false;
    if (one.offset >= other.end() || other.offset >= one.end()) return false;
    if (one.one_run() && other.one_run()) return true;
    const bool first = runs(one) <= runs(other);
    const ByteRange& few = first ? one : other;
    const ByteRange& many = first ? other : one;
    if (runs(few) > max_runs || many.slices > max_runs) return false;
    for (std::size_t slice = 0; slice < few.slices; ++slice) {
        for (std::size_t row = 0; row < few.rows; ++row) {
            ByteRange run;
            run.offset = few.offset + slice * few.slice_pitch + row * few.row_pitch;
            run.width = few.width;
            if (meets(run.offset, run.end(), many)) return true;
        }
    }
    return false;
}

bool contains(const ByteRange& outer, const ByteRange& inner) noexcept {
    if (outer.one_run()) return outer.offset <= inner.offset && inner.end() <= outer.end();
    return outer.offset == inner.offset && outer.width == inner.width && outer.rows == inner.rows &&
           outer.slices == inner.slices && outer.row_pitch == inner.row_pitch && outer.slice_pitch == inner.slice_pitch;
}

}  // namespace isthmus::rules
