// SPDX-License-Identifier: Apache-2.0
// EventPool: takes and returns events, and destroys those beyond max_idle.
#include "event_pool.hpp"

#include <algorithm>

namespace isthmus {
inline namespace v0 {
namespace detail {

// What every thread shares, then the places of others.
FenceEvent* EventPool::reuse(platform::EventKind kind) {
    if (kind == platform::EventKind::interprocess) return nullptr;
    std::vector<FenceEvent*>& idle = idle_[static_cast<std::size_t>(kind)];
    {
        const std::lock_guard lock(mutex_);
        if (!idle.empty()) {
            FenceEvent* const event = idle.back();
            idle.pop_back();
            return event;
        }
    }
    if (kind != platform::EventKind::plain) return nullptr;
    for (Place& place : places_) {
        if (FenceEvent* const event = place.take()) return event;
    }
    return nullptr;
}

// Reserves the space that drop() will need: drop() is noexcept and could not report that host memory ran out.
FenceEvent* EventPool::shell() {
    const std::lock_guard lock(mutex_);
    if (!shells_.empty()) {
        FenceEvent* const empty = shells_.back();
        shells_.pop_back();
        return empty;
    }
    all_.push_back(std::make_unique<FenceEvent>());
    shells_.reserve(all_.capacity());
    for (std::vector<FenceEvent*>& idle : idle_) idle.reserve(std::min(all_.capacity(), max_idle));
    return all_.back().get();
}

platform::Status EventPool::take_from_all(platform::Execution& driver, platform::EventKind kind, SealBook* seal,
                                          FenceEvent*& out) {
    FenceEvent* event = reuse(kind);
    if (event == nullptr) {
        const platform::Status fine = sealed_step(seal, SealedAct::make_object, "cuEventCreate");
        if (!fine.ok()) return fine;
        platform::EventHandle handle = platform::EventHandle::none;
        if (const platform::Status status = driver.create_event(kind, handle); !status.ok()) return status;
        event = shell();
        event->handle = handle;
        event->kind = kind;
    }
    out = only_of(event);
    return {};
}

FenceEvent* EventPool::adopt(platform::EventHandle opened) {
    FenceEvent* const event = shell();
    event->handle = opened;
    event->kind = platform::EventKind::interprocess;
    return only_of(event);
}

void EventPool::give_to_all(platform::Execution& driver, FenceEvent* event) noexcept {
    const auto kind = static_cast<std::size_t>(event->kind);
    if (event->kind != platform::EventKind::interprocess) {
        const std::lock_guard lock(mutex_);
        if (idle_[kind].size() < max_idle) {
            idle_[kind].push_back(event);
            return;
        }
    }
    (void)driver.destroy_event(event->handle);  // the driver keeps it until pending waits for it have ended
    event->handle = platform::EventHandle::none;
    event->free_block();
    const std::lock_guard lock(mutex_);
    shells_.push_back(event);
}

void EventPool::close(platform::Execution& driver) noexcept {
    const std::lock_guard lock(mutex_);
    for (const std::unique_ptr<FenceEvent>& event : all_) {
        // A failure here cannot be handled.
        if (event->handle != platform::EventHandle::none) (void)driver.destroy_event(event->handle);
    }
    for (Place& place : places_) place.idle.store(nullptr, std::memory_order_relaxed);
    for (std::vector<FenceEvent*>& idle : idle_) idle.clear();
    shells_.clear();
    all_.clear();
}

std::size_t EventPool::idle() const {
    std::size_t in_places = 0;
    for (const Place& place : places_) in_places += place.idle.load(std::memory_order_relaxed) != nullptr ? 1u : 0u;
    const std::lock_guard lock(mutex_);
    return idle_[0].size() + idle_[1].size() + in_places;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
