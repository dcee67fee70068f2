// SPDX-License-Identifier: Apache-2.0
// prepare(): makes what a loop will use, and gives it to what the device keeps.
#include <isthmus/buffer.hpp>
#include <isthmus/event.hpp>
#include <isthmus/seal.hpp>

#include "buffer_lanes.hpp"
#include "device_state.hpp"
#include "load_kernel.hpp"
#include "real_time_errors.hpp"
#include "seal_state.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace {

Result<Buffer<std::byte>> allocate(Device& device, const PreparedMemory& memory) {
    if (memory.shared) return device.allocate_shared<std::byte>(memory.bytes, *memory.shared);
    return device.allocate<std::byte>(memory.bytes);
}

Result<std::vector<Buffer<std::byte>>> allocate_all(Device& device, const PreparedMemory& memory) {
    std::vector<Buffer<std::byte>> made;
    made.reserve(memory.count);
    for (std::size_t at = 0; at < memory.count; ++at) {
        Result<Buffer<std::byte>> one = allocate(device, memory);
        if (!one) return std::move(one).error();
        made.push_back(std::move(one).value());
    }
    return made;
}

// All pieces of all sizes at one time, as the loop will have them.
Result<std::vector<std::vector<Buffer<std::byte>>>> allocate_everything(Device& device, const Preparation& what) {
    std::vector<std::vector<Buffer<std::byte>>> made;
    for (const PreparedMemory& memory : what.memory) {
        Result<std::vector<Buffer<std::byte>>> pieces = allocate_all(device, memory);
        if (!pieces) return std::move(pieces).error();
        made.push_back(std::move(pieces).value());
    }
    return made;
}

Result<void> prepare_memory(Device& device, const Preparation& what) {
    for (const PreparedMemory& memory : what.memory) {
        if (memory.bytes == 0 || memory.count == 0) {
            return make_error<errors::nothing_to_prepare>(memory.bytes, memory.count);
        }
    }
    {
        auto made = allocate_everything(device, what);
        if (!made) return std::move(made).error();
        for (std::vector<Buffer<std::byte>>& pieces : *made) {
            for (Buffer<std::byte>& piece : pieces) {
                if (piece.host_kind() == MemoryKind::unknown) continue;  // the host cannot view it
                auto view = piece.write_on_host();
                if (!view) return std::move(view).error();
                std::fill(view->begin(), view->end(), std::byte{0});
            }
        }
    }
    // On the shelves of the cache once: nothing of it needs the heap to lie there later.
    (void)detail::empty_lanes(*device.state());
    // Whether the device kept all of it shows when it is taken again.
    detail::SealBook counting;
    counting.begin(false);
    detail::SealBook* const before = std::exchange(detail::sealed_here, &counting);
    auto again = allocate_everything(device, what);
    detail::sealed_here = before;
    if (!again) return std::move(again).error();
    for (const SealedPlace& place : counting.places()) {
        if (place.act == SealedAct::use_heap) continue;
        const PreparedMemory& last = what.memory.back();
        return make_error<errors::memory_not_kept>(last.count, last.bytes, detail::named(*device.state()));
    }
    return {};
}

Result<void> prepare_events(Device& device, std::size_t count) {
    if (count > detail::EventPool::max_idle) {
        return make_error<errors::more_events_than_kept>(count, detail::EventPool::max_idle);
    }
    std::vector<Event> made;
    made.reserve(count);
    for (std::size_t at = 0; at < count; ++at) {
        Result<Event> one = device.create_event();
        if (!one) return std::move(one).error();
        made.push_back(std::move(one).value());
    }
    return {};
}

}  // namespace

Result<void> prepare(Device& device, const Preparation& what) {
    for (const KernelInfo* const kernel : what.kernels) {
        if (Result<void> loaded = detail::load_kernel(*device.state(), *kernel); !loaded) return loaded;
    }
    if (Result<void> events = prepare_events(device, what.events); !events) return events;
    return prepare_memory(device, what);
}

}  // namespace v0
}  // namespace isthmus
