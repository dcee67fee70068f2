// SPDX-License-Identifier: Apache-2.0
// MirroredBuffer<T>: a ring buffer mapped twice in a row. Any capacity() consecutive elements of the ring are
// contiguous in memory, so kernels, copies and camera drivers need not split a range that crosses the end.
//
// Element i and element capacity() + i are the same memory at two addresses. Stream-ordered operations, host views and
// graphs see writes through either alias: ordering at operation boundaries. Within one kernel this holds only behind
// alias_fence() (alias_fence.hpp states the rule). An operation that uses any part of the ring uses all of it: parts
// are not independent.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/export.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/mapping/alias_fence.hpp>
#include <isthmus/memory_place.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

class Device;

struct MirroredOptions {
    MemoryPlace::Where where = MemoryPlace::Where::device;  // as GrowableOptions
    int node = -1;
    std::vector<const Device*> also = {};
};

namespace detail {
// Both copies together; their size in bytes is a multiple of twice `element_bytes`.
ISTHMUS_API Result<std::shared_ptr<BufferState>> create_mirrored(const Device& device, std::size_t least_bytes,
                                                                 std::size_t element_bytes,
                                                                 const MirroredOptions& options);
}  // namespace detail

// A Buffer of 2 · capacity() elements, usable wherever a Buffer is; size() counts both copies. Movable. Released as a
// Buffer. Memory: on a GPU, mapped memory; on the CPU device, and where a GPU uses ordinary host memory, a memory file
// mapped twice. explain() says which.
template <class T>
class MirroredBuffer : public TypedBuffer<T> {
public:
    MirroredBuffer() = default;
    // At least `least` elements. capacity() answers the actual number: memory is mapped in granules, and whole elements
    // have to fill them. Errors as GrowableBuffer::create; system_limit (no file descriptor).
    static Result<MirroredBuffer> create(const Device& device, std::size_t least, const MirroredOptions& options = {}) {
        constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
        Result<std::shared_ptr<detail::BufferState>> made =
            detail::create_mirrored(device, least > most / sizeof(T) ? most : least * sizeof(T), sizeof(T), options);
        if (!made) return std::move(made).error();
        return MirroredBuffer(std::move(made).value());
    }

    std::size_t capacity() const noexcept { return this->size() / 2; }
    // Index of the element with this running number. The next `count` ≤ capacity() elements are contiguous from there.
    std::size_t place(std::uint64_t number) const noexcept {
        return capacity() == 0 ? 0 : static_cast<std::size_t>(number % capacity());
    }

private:
    explicit MirroredBuffer(std::shared_ptr<detail::BufferState> state) : TypedBuffer<T>(std::move(state)) {}
};

}  // namespace v0
}  // namespace isthmus
