// SPDX-License-Identifier: Apache-2.0
// CopyBounce: takes, shares and returns bounce buffers.
#include "copy_bounce.hpp"

#include "composed.hpp"
#include "device_errors.hpp"
#include "device_session.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr std::size_t looks_before_others = 2;
constexpr std::size_t line_bytes = 128;  // ranges of different copies share no cache line

}  // namespace

Result<void> CopyBounce::make(DeviceSession& device) {
    const auto lost = [](const Slot& slot) { return slot.lost && !slot.held; };
    if (memory_.bytes != 0 && std::all_of(slots_.begin(), slots_.end(), lost)) {
        abandoned_.push_back(memory_);
        memory_ = {};
    }
    if (memory_.bytes != 0) return {};
    if (Result<void> fine = device.services.allow(rules::DriverUse::allocate_pinned,
                                                  "taking pinned memory for a copy of pageable memory");
        !fine) {
        return fine;
    }
    constexpr std::string_view what = "pinned memory for copies from and to pageable memory";
    if (Result<void> fine = device.allow_now(SealedAct::allocate_memory, "cuMemHostAlloc", what); !fine) return fine;
    platform::Allocation made;
    const platform::Status status = device.driver->memory().allocate(
        MemoryKind::pinned, buffer_bytes * buffers, platform::Attachment::global, platform::StreamHandle::none, made);
    if (!status.ok()) {
        if (made.bytes != 0) abandoned_.push_back(made);  // the allocation failed midway and could not be undone
        return device.failure(status, what);
    }
    memory_ = made;
    slots_ = {};
    return {};
}

platform::Status CopyBounce::note_finished(DeviceSession& device, std::size_t looks, bool all) {
    for (Slot& slot : slots_) {
        if (slot.held || slot.event == nullptr) continue;
        if (looks-- == 0) break;
        const platform::Status status = device.execution.query_event(slot.event->handle);
        if (status.code == Code::not_ready) continue;
        if (!status.ok()) return status;
        device.drop_event(slot.event);
        slot.event = nullptr;
        slot.used = 0;
        if (!all) break;
    }
    return {};
}

CopyBounce::Range CopyBounce::hand_out(Slot& slot, std::uint64_t stream_id, std::size_t bytes) {
    const auto at = static_cast<std::size_t>(&slot - slots_.data());
    const Range range{at, static_cast<std::byte*>(memory_.host) + at * buffer_bytes + slot.used};
    slot.used += std::min((bytes + line_bytes - 1) / line_bytes * line_bytes, buffer_bytes - slot.used);
    slot.stream_id = stream_id;
    slot.held = true;
    return range;
}

Result<CopyBounce::Range> CopyBounce::try_take(DeviceSession& device, std::uint64_t stream_id, std::size_t bytes) {
    if (device.bars(rules::PublicCall::copy_pageable)) return device.refusal(rules::PublicCall::copy_pageable);
    const std::lock_guard lock(mutex_);
    if (Result<void> made = make(device); !made) return std::move(made).error();
    for (Slot& slot : slots_) {
        const bool open = !slot.held && !slot.lost && slot.event != nullptr && slot.stream_id == stream_id;
        if (open && slot.used + bytes <= buffer_bytes) return hand_out(slot, stream_id, bytes);
    }
    // The first buffers are asked about before others are taken, so that a long copy goes on in the same few, which the
    // CPU's caches hold.
    const platform::Status status = note_finished(device, looks_before_others);
    const auto free = [&] {
        return std::find_if(slots_.begin(), slots_.end(), [&](auto& slot) { return idle(slot); });
    };
    auto found = free();
    const platform::Status all = !status.ok() || found != slots_.end() ? status : note_finished(device, buffers);
    if (!all.ok()) return device.failure(all, "waiting for pinned memory of earlier copies");
    if (found == slots_.end()) found = free();
    if (found == slots_.end()) return Range{};
    return hand_out(*found, stream_id, bytes);
}

Result<CopyBounce::Range> CopyBounce::take(DeviceSession& device, std::uint64_t stream_id, std::size_t bytes) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    auto pause = std::chrono::microseconds(5);
    for (;;) {
        Result<Range> range = try_take(device, stream_id, bytes);
        if (!range || range->data != nullptr) return range;
        if (Clock::now() - begin > device.config->wait_timeout) {
            return make_error<errors::bounce_buffers_in_use>();
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::microseconds(100));
    }
}

void CopyBounce::give_back(DeviceSession& device, const Range& range, std::uint64_t stream_id, FenceEvent* event) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[range.slot];
    slot.held = false;
    slot.stream_id = stream_id;
    if (event != nullptr) {
        std::swap(slot.event, event);  // recorded on the same stream after the earlier one, which it replaces
        if (event != nullptr) device.drop_event(event);
    }
    if (slot.event == nullptr) slot.used = 0;
}

void CopyBounce::give_up(const Range& range) {
    const std::lock_guard lock(mutex_);
    slots_[range.slot].held = false;
    slots_[range.slot].lost = true;
}

bool CopyBounce::trim(DeviceSession& device) {
    const std::lock_guard lock(mutex_);
    if (memory_.bytes == 0 || !device.usable()) return false;
    if (!note_finished(device, buffers, true).ok()) return false;
    if (!std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) { return idle(slot); })) return false;
    const platform::Status status = device.driver->memory().release(memory_, platform::StreamHandle::none);
    if (!status.ok()) {  // the memory is kept and used as before
        (void)device.failure(status, "giving back pinned memory for copies");
        return false;
    }
    memory_ = {};
    return true;
}

std::size_t CopyBounce::memory_bytes() const {
    const std::lock_guard lock(mutex_);
    return memory_.bytes;
}

void CopyBounce::close(DeviceSession& device) {
    if (memory_.bytes != 0) abandoned_.push_back(memory_);
    for (const platform::Allocation& memory : abandoned_) {
        const platform::Status status = device.driver->memory().release(memory, platform::StreamHandle::none);
        if (status.ok() || device.is_lost()) continue;
        device.config->say(Severity::warning,
                           composed("closing a device: {}", device.failure(status, "releasing memory").text()));
    }
    abandoned_.clear();
    memory_ = {};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
