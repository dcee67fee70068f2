// SPDX-License-Identifier: Apache-2.0
// ShardedCounter: counting by CPU and GPU on every machine, also where no atomic works between them. Each side adds in
// its own lane, the lanes at least 128 bytes apart. Reading adds up the lanes: the sum is exact on every machine.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/concurrent/sharded_counter_view.hpp>
#include <isthmus/device.hpp>
#include <isthmus/launch_argument.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
ISTHMUS_API Error counter_without_slots();
ISTHMUS_API Error no_such_counter_slot();
}  // namespace detail

// For one device; with several devices, make one counter for each and add up. Movable. The host's lane is ordinary
// memory: the host may add at any time, also while kernels run on machines where the CPU may not access shared memory
// then (89=0).
class ShardedCounter {
public:
    // All slots start at 0. Errors: as Device::allocate_shared and Buffer::write_on_host; invalid_argument (no slots).
    static Result<ShardedCounter> create(Device& device, std::size_t slots = 1) {
        constexpr std::size_t per_line = sizeof(Line) / sizeof(detail::CounterCell);
        if (slots == 0) return detail::counter_without_slots();
        ShardedCounter made;
        made.slots_ = slots;
        const std::size_t lines = (slots - 1) / per_line + 1;
        made.host_.reset(new Line[lines]);
        SharedUse use{.host = Use::reads_once, .device = Use::writes_often};
        // Over a link every addition would cost a round trip, however small the lane is.
        if (device.capabilities().memory == MemoryModel::separate) use.kind = MemoryKind::device;
        auto lane = device.allocate_shared<detail::CounterCell>(lines * per_line, use);
        if (!lane) return std::move(lane).error();
        made.device_ = std::move(lane).value();
        auto cells = made.device_.write_on_host();
        if (!cells) return std::move(cells).error();
        std::fill(cells->begin(), cells->end(), detail::CounterCell{});
        return made;
    }
    ShardedCounter() = default;  // without slots

    // Callable from any thread, at any time. Wraps at 2^64. Integers only (G6). Not checked: slot < size().
    template <std::integral A>
    void add(std::size_t slot, A amount) const noexcept {
        cell(slot).fetch_add(static_cast<std::uint64_t>(amount), std::memory_order_relaxed);
    }
    // The sum so far: additions of the host before this call, and of every kernel that took the counter before it.
    // Waits for those kernels. Meanwhile launches with the counter are refused (in_use), as with any open host view.
    // Errors: as Buffer::read_on_host; invalid_argument (no such slot).
    Result<std::uint64_t> read(std::size_t slot = 0, Wait wait = {}) const {
        if (slot >= slots_) return detail::no_such_counter_slot();
        auto cells = device_.read_on_host(wait);
        if (!cells) return std::move(cells).error();
        return (*cells)[slot].count + cell(slot).load(std::memory_order_relaxed);
    }
    std::size_t size() const noexcept { return slots_; }

    // The device's lane, as a launch argument.
    const std::shared_ptr<detail::BufferState>& state() const noexcept { return device_.state(); }

private:
    struct alignas(128) Line {
        std::atomic<std::uint64_t> counts[16] = {};
    };
    std::atomic<std::uint64_t>& cell(std::size_t slot) const noexcept { return host_[slot / 16].counts[slot % 16]; }

    Buffer<detail::CounterCell> device_;
    std::unique_ptr<Line[]> host_;
    std::size_t slots_ = 0;
};

namespace detail {
template <>
struct ArgumentElement<ShardedCounter> {
    using type = CounterCell;
};
template <>
inline constexpr bool is_buffer<ShardedCounter> = true;
}  // namespace detail

}  // namespace v0
}  // namespace isthmus
