// SPDX-License-Identifier: Apache-2.0
// StreamState, progress: fences, the positions that they have shown to be reached, and queries of the driver.
#include "stream_state.hpp"

#include "buffer_state.hpp"
#include "gallop.hpp"
#include "recording.hpp"
#include "timed_lock.hpp"

#include <isthmus/stream.hpp>

#include <algorithm>
#include <array>

namespace isthmus {
inline namespace v0 {
namespace detail {
// Threads raise it without a lock: the greatest position wins. Pairs with the acquire in reached().
void StreamState::raise(std::uint64_t position) noexcept {
    if (device->books->order != nullptr) device->books->order->seen(*this, position);
    std::uint64_t known = completed_.load(std::memory_order_relaxed);
    while (known < position &&
           !completed_.compare_exchange_weak(known, position, std::memory_order_release, std::memory_order_relaxed)) {
    }
}

void StreamState::note_reached(std::uint64_t position) {
    raise(position);
    const std::uint64_t known = completed_.load(std::memory_order_relaxed);
    std::array<FenceEvent*, 8> over{};
    for (std::size_t count = over.size(); count == over.size();) {
        count = 0;
        {
            const std::lock_guard lock(fences_mutex_);
            while (count < over.size() && !fences_.empty() && fences_.front().position <= known) {
                over[count++] = fences_.front().event;
                fences_.pop_front();
            }
        }
        for (std::size_t at = 0; at < count; ++at) device->drop_event(over[at]);  // may be a driver call
    }
}

void StreamState::add_fence(FenceEvent* event) {
    tail.clear();
    fenced_.become(issued);
    {
        const std::lock_guard lock(fences_mutex_);
        if (fences_.size() < Fences::most) return fences_.push_back({issued, event});
    }
    note_reached(0);
    thin_fences();
    const std::lock_guard lock(fences_mutex_);
    fences_.push_back({issued, event});
}

// The older half is released if it has completed; otherwise every
// second fence of it is dropped (a wait for one then lasts until the next kept one).
void StreamState::thin_fences() {
    std::uint64_t ended = 0;
    std::array<FenceEvent*, Fences::most> thinned;
    std::size_t dropped = 0;
    {
        const std::lock_guard lock(fences_mutex_);
        if (fences_.size() < Fences::most) return;
        const std::size_t half = fences_.size() / 2;
        const Fence& middle = fences_[half - 1];
        if (device->execution.query_event(middle.event->handle).ok()) {
            ended = middle.position;
        } else {
            for (std::size_t at = 0; at < fences_.size(); ++at) {
                if (at < half && at % 2 == 0) {
                    thinned[dropped++] = fences_[at].event;
                } else {
                    fences_[at - dropped] = fences_[at];
                }
            }
            fences_.keep_first(fences_.size() - dropped);
        }
    }
    for (std::size_t at = 0; at < dropped; ++at) device->drop_event(thinned[at]);
    if (ended != 0) note_reached(ended);
}

// A user's event is also a fence, without a further call: views of the buffers used so far wait for it, and a later
// operation needs no fence. Exceptions: managed memory is attached to the stream (returning it would cost two more
// driver calls), or the event is an interprocess event, which is recorded again in place.
Result<bool> StreamState::record_user_event(FenceEvent& event) {
    bool attached = false;
    if (!tail.empty()) {
        attached = std::any_of(tail.begin(), tail.end(),
                               [](const BufferState* buffer) { return buffer->memory->path == LaunchPath::attach; });
        if (event.kind == platform::EventKind::interprocess && !attached) {
            if (Result<void> fenced = fence(); !fenced) return std::move(fenced).error();
        }
    }
    gives("the record of an event");
    const platform::Status status = device->execution.record_event(event.handle, handle);
    if (!status.ok()) return device->failure(status, "recording an event");
    if (tail.empty()) return true;
    if (attached) return false;
    event.keep();
    add_fence(&event);
    return true;
}

Result<void> StreamState::poll_fences() {
    platform::Status failed;
    std::uint64_t ended = 0;
    {
        const std::lock_guard lock(fences_mutex_);
        std::size_t seen = 0;  // fences that other threads saw complete
        while (seen < fences_.size() && reached(fences_[seen].position)) ++seen;
        const std::size_t done = leading_done(fences_.size() - seen, [&](std::size_t at) {
            if (!failed.ok()) return false;
            const platform::Status status = device->execution.query_event(fences_[seen + at].event->handle);
            if (status.code != Code::not_ready) failed = status;
            return status.ok();
        });
        if (seen + done > 0) ended = fences_[seen + done - 1].position;
    }
    if (ended != 0) note_reached(ended);
    if (!failed.ok()) return device->failure(failed, "asking how far a stream has come");
    return {};
}

// The work behind the last fence. Captured work does not run; what ran before was fenced when the capture began.
Result<void> StreamState::poll_rest() {
    if (handle == platform::StreamHandle::none || captured_elsewhere()) return {};
    if (const Result<HeldCapture> captured = capture(); !captured || *captured) return {};
    if (!tail.empty()) {
        if (Result<void> fenced = fence(); !fenced) return fenced;
        return poll_fences();
    }
    const platform::Status status = device->execution.query_stream(handle);
    if (status.code == Code::not_ready) return {};
    if (!status.ok()) return device->failure(status, "asking how far a stream has come");
    note_reached(issued);
    return {};
}

Result<std::uint64_t> StreamState::poll() {
    if (device->bars(rules::PublicCall::ask_stream)) return device->refusal(rules::PublicCall::ask_stream);
    if (!reached(issued)) {
        if (Result<void> polled = poll_fences(); !polled) return std::move(polled).error();
        if (!any_fence() && !reached(issued)) {
            // If another thread is blocked in the driver with the lock, a later poll gives the answer.
            Wait wait = Wait::never();
            const StreamLock lock = detail::lock_within(mutex, wait, lock_grace, device->config->wait_policy);
            Result<void> polled = lock.owns_lock() && !reached(issued) ? poll_rest() : Result<void>();
            if (!polled) return std::move(polled).error();
        }
    }
    return completed_.load(std::memory_order_acquire);
}

Result<std::uint64_t> StreamState::mark() {
    if (device->bars(rules::PublicCall::mark_stream)) return device->refusal(rules::PublicCall::mark_stream);
    Wait wait;
    const Result<StreamLock> lock = lock_within(wait, "marking a stream");
    if (!lock) return lock.error();
    if (Result<void> refused = refuse_captured("a mark was to be set"); !refused) return std::move(refused).error();
    if (Result<void> opened = open_handle(); !opened) return std::move(opened).error();
    if (Result<void> fenced = fence(); !fenced) return std::move(fenced).error();
    return std::uint64_t{issued};
}

}  // namespace detail

bool Stream::completed(std::uint64_t position) const noexcept {
    return state_->reached(position);
}
Result<std::uint64_t> Stream::poll() {
    return state_->poll();
}
Result<std::uint64_t> Stream::mark() {
    return state_->mark();
}

}  // namespace v0
}  // namespace isthmus
