// SPDX-License-Identifier: Apache-2.0
// GrowableBuffer<T>: a buffer that grows in place. Its addresses are reserved when it is made; growing maps further
// memory behind the existing one. Nothing is copied, no address changes, and the cost depends on the bytes added, not
// on the size so far (V11).
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/export.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/memory_place.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

class Device;

enum class Growth : std::uint8_t {
    doubling,  // at least as much again as is mapped: few handles at any size
    exact,     // the missing bytes, rounded up to the granularity
};

struct GrowableOptions {
    // Where the memory resides. device: not accessible from the host, as any device memory. host, host_node (`node`;
    // −1: the node closest to the device): host and device both use it in place.
    MemoryPlace::Where where = MemoryPlace::Where::device;
    int node = -1;
    std::vector<const Device*> also = {};  // further devices with access, granted by the same driver call as the first
    // Devices whose memory is used in turn: handle k belongs to stripe[k mod n]; each step makes one handle of equal
    // size on every device. All of them use the buffer and have to reach each other's memory. Empty: memory of the
    // device that the buffer is made with. Not for host memory.
    std::vector<const Device*> stripe = {};
    Growth growth = Growth::doubling;
    bool compressible = false;  // as PhysicalOptions
};

namespace detail {
class GrowableMemory;
struct MadeGrowable {
    std::shared_ptr<BufferState> state;
    std::shared_ptr<GrowableMemory> memory;
};
ISTHMUS_API Result<MadeGrowable> create_growable(const Device& device, std::size_t max_bytes,
                                                 const GrowableOptions& options);
ISTHMUS_API Result<void> resize_growable(const std::shared_ptr<BufferState>& state, GrowableMemory* memory,
                                         std::size_t bytes, std::size_t capacity_bytes);
ISTHMUS_API Result<void> trim_growable(const std::shared_ptr<BufferState>& state, GrowableMemory* memory, Wait wait);
struct GrowableFigures {
    std::size_t reserved_bytes = 0;
    std::size_t mapped_bytes = 0;
    std::size_t granularity_bytes = 0;
    std::size_t handles = 0;
    std::size_t devices = 0;  // number of devices that the handles are distributed over in turn
};
ISTHMUS_API GrowableFigures figures_of(const GrowableMemory* memory) noexcept;
ISTHMUS_API std::optional<MemoryPlace> place_in(const GrowableMemory* memory, std::size_t byte) noexcept;
}  // namespace detail

// Usable wherever a TypedBuffer is taken: launches in every mode, copies, fills, graphs, host views (where the host has
// access), parts. Movable. Growing and shrinking belong to the owner, as moving and releasing do: no other thread may
// use this object or parts of it meanwhile. Device work, open views and graphs may, because their memory does not move.
// A graph keeps the elements that it was captured with.
//
// Memory: on a GPU, mapped memory (MemoryKind::vmm); on the CPU device, and where a GPU without virtual memory uses
// ordinary host memory anyway, pages at reserved host addresses (MemoryKind::host). explain() says which, and why. Not
// exportable to other processes: shared memory does not change its size.
template <class T>
class GrowableBuffer : public TypedBuffer<T> {
public:
    GrowableBuffer() = default;
    // Empty, with addresses for `most` elements; addresses cost no memory. Errors: unsupported (the device neither maps
    // memory nor uses the host's, or a device of the stripe does not map, or two of them do not reach each other: the
    // message says which, why, and what works), invalid_argument (no elements, or more than any machine has; a null
    // device; a stripe on the host), wrong_device (a device of another runtime), out_of_memory, capture_error (a
    // capture is open on this thread), device_lost.
    static Result<GrowableBuffer> create(const Device& device, std::size_t most, const GrowableOptions& options = {}) {
        const bool overflows = most > std::numeric_limits<std::size_t>::max() / sizeof(T);
        Result<detail::MadeGrowable> made = detail::create_growable(
            device, overflows ? std::numeric_limits<std::size_t>::max() : most * sizeof(T), options);
        if (!made) return std::move(made).error();
        return GrowableBuffer(std::move(*made), most);
    }

    // In elements: capacity() has memory, max_size() has addresses.
    std::size_t capacity() const noexcept { return detail::figures_of(memory_.get()).mapped_bytes / sizeof(T); }
    std::size_t max_size() const noexcept { return max_size_; }
    detail::GrowableFigures figures() const noexcept { return detail::figures_of(memory_.get()); }

    // The owner of the memory of element `index`; nullopt: index ≥ capacity(). A handle holds whole granules, not
    // whole elements.
    std::optional<MemoryPlace> place(std::size_t index) const noexcept {
        return index < capacity() ? detail::place_in(memory_.get(), index * sizeof(T)) : std::nullopt;
    }

    // Changes size(). Existing elements keep their content; new elements have none. Growing beyond capacity() makes
    // three driver calls: create, map, and access for all devices; with a stripe over n devices, n create, n map and
    // one access. After an error nothing has changed: out_of_memory, invalid_argument (beyond max_size()), in_use (a
    // service runs: the driver might wait for it), capture_error (a capture is open on this thread), invalid_handle
    // (moved from or released), device_lost. Shrinking is always possible and frees no memory: trim() does.
    Result<void> resize(std::size_t count) { return resized(count, 0); }
    // Provides memory for this many elements without changing size(). Errors as resize().
    Result<void> reserve(std::size_t count) { return resized(this->size(), count); }
    // Frees the memory of whole handles behind the last element. Waits for work that uses the buffer. Errors, with
    // which nothing has changed or fewer handles were freed: in_use (a view is open, a graph uses the buffer, parts of
    // it were made, a service runs), timed_out, not_ready, capture_error (a capture is open), device_lost.
    Result<void> trim(Wait wait = {}) { return detail::trim_growable(this->state(), memory_.get(), wait); }

private:
    GrowableBuffer(detail::MadeGrowable made, std::size_t most)
        : TypedBuffer<T>(std::move(made.state)), memory_(std::move(made.memory)), max_size_(most) {}
    Result<void> resized(std::size_t count, std::size_t capacity) {
        if (count > max_size_ || capacity > max_size_) {
            count = std::numeric_limits<std::size_t>::max() / sizeof(T);  // too large: resize_growable() refuses it
        }
        Result<void> done =
            detail::resize_growable(this->state(), memory_.get(), count * sizeof(T), capacity * sizeof(T));
        this->size_changed();
        return done;
    }
    std::shared_ptr<detail::GrowableMemory> memory_;
    std::size_t max_size_ = 0;
};

}  // namespace v0
}  // namespace isthmus
