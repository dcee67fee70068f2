// SplitCounter: counting by CPU and GPU where no atomic works across, and everywhere else too. Each side adds in a lane
// of its own, at least 128 bytes apart, and reading adds them up: the sum is exact on every machine.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/device.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/split_counter_view.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace isthmus::inline v0 {
namespace detail {
ISTHMUS_API Error counter_without_slots();
ISTHMUS_API Error no_such_counter_slot();
}  // namespace detail

// For one device; with several, make one for each and add up. Movable. The host's lane is ordinary memory, so that the
// host adds at any time, also while kernels run on machines whose CPU may not touch shared memory then (89=0).
class SplitCounter {
public:
    // All slots 0. Errors: as Device::allocate_shared and Buffer::write_on_host; invalid_argument (no slots).
    static Result<SplitCounter> make(Device& device, std::size_t slots = 1) {
        constexpr std::size_t per_line = sizeof(Line) / sizeof(detail::CounterCell);
        if (slots == 0) return detail::counter_without_slots();
        SplitCounter made;
        made.slots_ = slots;
        const std::size_t lines = (slots - 1) / per_line + 1;
        made.host_.reset(new Line[lines]);
        SharedUse use{.host = Use::reads_once, .device = Use::writes_often};
        // Over a link each of the additions would go there and back, however small the lane is.
        if (device.capabilities().memory == MemoryModel::separate) use.kind = MemoryKind::device;
        auto lane = device.allocate_shared<detail::CounterCell>(lines * per_line, use);
        if (!lane) return std::move(lane).error();
        made.device_ = std::move(lane).value();
        auto cells = made.device_.write_on_host();
        if (!cells) return std::move(cells).error();
        std::fill(cells->begin(), cells->end(), detail::CounterCell{});
        return made;
    }
    SplitCounter() = default;  // of no slots

    // Any thread, at any time; wraps at 2^64. Whole numbers only (G6). Not checked: slot < size().
    template <std::integral A>
    void add(std::size_t slot, A amount) const noexcept {
        cell(slot).fetch_add(static_cast<std::uint64_t>(amount), std::memory_order_relaxed);
    }
    // What was added so far: on the host before this call, and by every kernel that was given the counter before it,
    // for which it waits. Meanwhile launches that are given the counter are refused (in_use), as by any host view.
    // Errors: as Buffer::read_on_host; invalid_argument (no such slot).
    Result<std::uint64_t> read(std::size_t slot = 0, Wait wait = {}) const {
        if (slot >= slots_) return detail::no_such_counter_slot();
        auto cells = device_.read_on_host(wait);
        if (!cells) return std::move(cells).error();
        return (*cells)[slot].count + cell(slot).load(std::memory_order_relaxed);
    }
    std::size_t size() const noexcept { return slots_; }

    // The device's lane, for launches.
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
struct ArgumentElement<SplitCounter> {
    using type = CounterCell;
};
template <>
inline constexpr bool is_buffer<SplitCounter> = true;
}  // namespace detail

}  // namespace isthmus::inline v0
