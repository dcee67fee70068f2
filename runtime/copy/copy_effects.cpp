// SPDX-License-Identifier: Apache-2.0
// The driver's calls for a copy of any shape.
#include "copy.hpp"

#include "device_state.hpp"
#include "stream_state.hpp"

#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

platform::CopySide side_at(std::uint64_t address, bool host, const rules::CopyStride& stride, std::size_t rows) {
    const bool whole_rows = stride.row != 0 && stride.slice % stride.row == 0 && stride.slice / stride.row >= rows;
    return {address, host, stride.row, whole_rows ? stride.slice / stride.row : rows};
}

platform::Status line(StreamState& stream, const DriverCopy& copy, std::uint64_t to, std::uint64_t from,
                      std::size_t bytes) {
    platform::Driver& driver = *stream.device->driver;
    if (!copy.between) return driver.memory().copy(to, from, bytes, copy.direction, stream.handle);
    platform::Transfers* const transfers = driver.transfers();
    if (transfers == nullptr) return {Code::unsupported, 0, "copy_between"};
    return transfers->copy_between(to, copy.to_ordinal, from, copy.from_ordinal, bytes, stream.handle);
}

platform::Status box(StreamState& stream, const DriverCopy& copy, std::uint64_t to, std::uint64_t from,
                     const rules::CopyShape& shape) {
    platform::Transfers& transfers = *stream.device->driver->transfers();
    const platform::CopySide into = side_at(to, copy.to_host, shape.to, shape.rows);
    const platform::CopySide out_of = side_at(from, copy.from_host, shape.from, shape.rows);
    const platform::CopyExtent extent{shape.width, shape.rows, shape.slices};
    if (!copy.between) return transfers.copy_shaped(into, out_of, extent, stream.handle);
    return transfers.copy_shaped_between(into, copy.to_ordinal, out_of, copy.from_ordinal, extent, stream.handle);
}

}  // namespace

platform::Status give_to_driver(StreamState& stream, const DriverCopy& copy, const rules::CopyShape& shape) {
    if (shape.rows == 1 && shape.slices == 1) return line(stream, copy, copy.to, copy.from, shape.width);
    const bool shapes = stream.device->driver->transfers() != nullptr;
    if (shapes && rules::one_call(shape)) return box(stream, copy, copy.to, copy.from, shape);
    rules::CopyShape slice = shape;
    slice.slices = 1;
    const bool by_slice = shapes && rules::one_call(slice);
    platform::Status status;
    for (std::size_t z = 0; z < shape.slices && status.ok(); ++z) {
        const std::uint64_t to = copy.to + z * shape.to.slice;
        const std::uint64_t from = copy.from + z * shape.from.slice;
        if (by_slice) status = box(stream, copy, to, from, slice);
        for (std::size_t y = 0; !by_slice && y < shape.rows && status.ok(); ++y) {
            status = line(stream, copy, to + y * shape.to.row, from + y * shape.from.row, shape.width);
        }
    }
    return status;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
