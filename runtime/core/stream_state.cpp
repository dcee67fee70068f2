// SPDX-License-Identifier: Apache-2.0
// StreamState: positions, departure fences and waits with deadlines.
#include "stream_state.hpp"

#include <isthmus/stream.hpp>

#include "buffer_state.hpp"
#include "core_errors.hpp"
#include "piece_release.hpp"
#include "recording.hpp"
#include "timed_lock.hpp"
#include "wait_pause.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace isthmus {
inline namespace v0 {

Stream::Stream(std::shared_ptr<detail::StreamState> state) : state_(std::move(state)) {}

namespace detail {
namespace {

void end_of_stream(StreamState* stream) {
    if (process::here.in_host_function && !stream->device->config->forked()) {
        stream->device->books->after_host_functions.put_off([stream] { delete stream; });
    } else {
        delete stream;
    }
}

std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

platform::Status poll_event(const DeviceState& device, platform::EventHandle event, std::chrono::nanoseconds timeout) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    for (;;) {
        const platform::Status status = device.execution.query_event(event);
        if (status.code != Code::not_ready) return status;
        const std::chrono::nanoseconds waited = Clock::now() - begin;
        if (waited >= timeout) return {Code::timed_out, 0, ""};
        pause_between_queries(device.config->wait_policy, waited, timeout - waited);
    }
}

std::shared_ptr<StreamState> StreamState::make(std::shared_ptr<DeviceState> owner, int wanted_priority) {
    return {new StreamState(std::move(owner), wanted_priority), end_of_stream};
}

std::shared_ptr<StreamState> StreamState::make(std::shared_ptr<DeviceState> owner,
                                               const platform::ForeignStream& foreign) {
    return {new StreamState(std::move(owner), 0, &foreign), end_of_stream};
}

StreamState::StreamState(std::shared_ptr<DeviceState> owner, int wanted_priority,
                         const platform::ForeignStream* foreign)
    : device(std::move(owner)),
      priority(std::clamp(wanted_priority, -1, 0)),
      id(next_id()),
      external(foreign != nullptr),
      external_id(foreign != nullptr ? foreign->id : 0),
      mode(device->config->launch_mode) {}

StreamState::~StreamState() {
    if (device->config->forked()) return;
    LaunchBooks::count(device->books->launches.ended_operations, issued);
    tail.clear();  // buffers of the tail hold the stream, so they are gone, except for those in kept_
    device->end_later(host_calls);
    leave_recording(*this);
    free_kept_behind(*this);
    if (!device->is_lost() && !reached(issued)) leave_last_work();
    // After leave_last_work(): a wait for ended streams reads the order book first, and then the device's list.
    if (device->books->order != nullptr) device->books->order->ended(*this);
    for (; !fences_.empty(); fences_.pop_front()) device->drop_event(fences_.front().event);
    if (handle == platform::StreamHandle::none || external) return;
    // Its work continues; the driver frees the stream afterwards.
    (void)device->driver->execution().destroy_stream(handle);
}

// A destructor has no caller that could try again. Work without an event behind it may run for ever.
void StreamState::leave_last_work() {
    constexpr int tries = 3;
    for (int attempt = 0; attempt < tries; ++attempt) {
        const Result<Fence> last = covering_fence(issued);
        if (!last) continue;
        if (last->event != nullptr) device->outlive(last->event);
        return;
    }
    if (handle != platform::StreamHandle::none && !external && device->execution.query_stream(handle).ok()) return;
    device->leave_unfenced();
}

Result<void> StreamState::open_handle() {
    if (external && handle == platform::StreamHandle::none) {
        return make_error<errors::external_stream_has_no_wrapper>();
    }
    if (recording != nullptr) {
        if (Result<HeldCapture> held = capture(); !held) return std::move(held).error();
    }
    if (handle != platform::StreamHandle::none) return {};
    constexpr std::string_view what = "creating a stream";
    if (Result<void> fine = device->allow_now(SealedAct::make_object, "cuStreamCreate", what); !fine) return fine;
    const platform::Status status = device->driver->execution().create_stream(priority, handle);
    if (!status.ok()) return device->failure(status, what);
    kept_behind.begin(weak_from_this(), handle);
    return {};
}

Result<void> StreamState::fence(FenceEvent** recorded) {
    if (device->synchronous) return note_reached(issued), Result<void>();
    if (Result<void> returned = return_attached(); !returned) return returned;
    if (reached(issued) || fenced_ >= issued) {
        tail.clear();
        return {};
    }
    if (external) {
        if (Result<void> opened = open_handle(); !opened) return opened;
        if (Result<void> refused = refuse_captured("a fence was to be recorded"); !refused) return refused;
    }
    return record_fence(recorded);
}

Result<void> StreamState::record_fence(FenceEvent** recorded) {
    FenceEvent* event = nullptr;
    if (const platform::Status status = device->take_event(event); !status.ok()) {
        return device->failure(status, "creating an event");
    }
    gives("the record of an event");
    const platform::Status status = device->driver->execution().record_event(event->handle, handle);
    if (!status.ok()) {
        device->drop_event(event);
        return device->failure(status, "recording an event");
    }
    if (recorded != nullptr) {
        event->keep();
        *recorded = event;
    }
    add_fence(event);
    LaunchBooks::count(device->books->launches.fences);
    device->observer().mark(Mark::fence, "an event behind the stream's work", [&] { return observed(issued); });
    return {};
}

// Managed memory of phase-guarded machines returns to the host behind its last use; views wait for that, too.
Result<void> StreamState::return_attached() {
    for (BufferState* buffer : tail) {
        if (buffer->memory->path != LaunchPath::attach) continue;
        std::unique_lock lock(buffer->views);
        if (buffer->sides()->attached_to() != this) continue;
        if (buffer->views.marked()) continue;  // a native scope keeps it, and brings it back into the tail as it closes
        lock.unlock();                         // only this stream returns the memory
        gives("the return of managed memory to the host");
        const platform::Status status =
            device->driver->memory().attach(buffer->whole(), platform::Attachment::host, handle);
        lock.lock();
        if (!status.ok()) return device->failure(status, "attaching managed memory back to the host");
        buffer->sides()->detach();
        const std::uint64_t position = advance("the return of managed memory to the host");
        buffer->sides()->brought(*this, position);
        buffer->touch(*this, position, ArgumentUse::write);
        lock.unlock();
        device->observer().mark(Mark::detach, "the return of managed memory to the host",
                                [&] { return buffer->observed(*this, position); });
    }
    return {};
}

Result<void> StreamState::depart(BufferState* const* uses, std::size_t count) {
    // The common case: the same buffers in the same order. It avoids a quadratic search.
    if (tail.size() <= count && std::equal(tail.begin(), tail.end(), uses)) return {};
    const auto stays = [&](BufferState* buffer) { return std::find(uses, uses + count, buffer) != uses + count; };
    if (std::all_of(tail.begin(), tail.end(), stays)) return {};
    return fence();
}

ObservedFacts StreamState::observed(std::uint64_t position, std::uint64_t bytes) const noexcept {
    ObservedFacts facts = device->observed();
    facts.stream = id;
    facts.position = position;
    facts.bytes = bytes;
    return facts;
}

std::uint64_t StreamState::advance(const char* operation) noexcept {
    ++issued;
    names_[issued % names_.size()].store(operation, std::memory_order_relaxed);
    if (device->synchronous) raise(issued);
    return issued;
}

StreamState::CachedKernel& StreamState::known(const KernelInfo& kernel) {
    CachedKernel& entry = kernels_[slot(kernel)];
    if (!entry.is(kernel)) {
        entry = {&kernel, first_use_of(kernel.first_use), platform::FunctionHandle::none,
                 device->books->kernels.of(kernel).name};
    }
    return entry;
}

platform::Status StreamState::resolve(const KernelInfo& kernel, platform::FunctionHandle& out) {
    // Not cached while the order is checked: launch_at_once(), which does not check it, then finds no function.
    if (device->books->order != nullptr) return device->resolve(kernel, out);
    // Nor with an observer, whom launch_at_once() does not tell.
    if (device->observer()) return device->resolve(kernel, out);
    // Nor on external streams, where each operation asks whether other code captures the stream.
    if (external) return device->resolve(kernel, out);
    CachedKernel& entry = known(kernel);
    if (entry.function == platform::FunctionHandle::none) {
        const platform::Status status = device->resolve(kernel, entry.function);
        if (!status.ok()) return status;
    }
    out = entry.function;
    return {};
}

Result<StreamLock> StreamState::lock_within(Wait& wait, const char* what) {
    StreamLock lock = detail::lock_within(mutex, wait, device->config->wait_timeout, device->config->wait_policy);
    if (lock.owns_lock()) return lock;
    const Code code = wait.refuse ? Code::not_ready : Code::timed_out;
    const char* const given = giving_.load(std::memory_order_relaxed);
    if (given == nullptr) return make_error_as<errors::stream_held_by_call>(code, what, id);
    return make_error_as<errors::stream_held_by_named_call>(code, what, given, id);
}

bool StreamState::any_fence() {
    const std::lock_guard lock(fences_mutex_);
    return !fences_.empty();
}

StreamState::Fence StreamState::recorded_fence(std::uint64_t position) {
    if (fenced_ < position) return {position, nullptr};
    const std::lock_guard lock(fences_mutex_);
    std::size_t at = 0;
    while (at < fences_.size() && fences_[at].position < position) ++at;
    if (at == fences_.size()) return {position, nullptr};
    fences_[at].event->keep();
    return fences_[at];
}

Result<StreamState::Fence> StreamState::covering_fence(std::uint64_t position) {
    const Fence found = recorded_fence(position);
    if (found.event != nullptr) return found;
    FenceEvent* event = nullptr;
    if (Result<void> recorded = fence(&event); !recorded) return std::move(recorded).error();
    if (event != nullptr) return Fence{issued, event};
    return recorded_fence(position);  // none: reached meanwhile
}

Result<FenceEvent*> StreamState::fence_behind(std::uint64_t position, Wait wait) {
    if (reached(position)) return nullptr;
    if (const Fence found = recorded_fence(position); found.event != nullptr) return found.event;
    const Result<StreamLock> lock = lock_within(wait, "ordering work behind a stream");
    if (!lock) return lock.error();
    Result<Fence> fence = covering_fence(std::min<std::uint64_t>(position, issued));
    if (!fence) return std::move(fence).error();
    return fence->event;
}

Result<void> StreamState::wait_behind(platform::EventHandle event, StreamState& other, std::uint64_t position,
                                      Wait wait) {
    const Result<StreamLock> lock = lock_within(wait, "ordering a stream behind another");
    if (!lock) return lock.error();
    if (Result<void> opened = open_handle(); !opened) return opened;
    // A capture that began meanwhile would be lost (905), because it may not depend on work outside of it.
    if (Result<void> refused = refuse_captured("another stream's work was to be waited for"); !refused) return refused;
    // Views of the buffers used so far must not wait for the event.
    if (Result<void> left = depart(nullptr, 0); !left) return left;
    gives("a wait for another stream");
    const platform::Status status = device->driver->execution().wait_event(handle, event);
    if (!status.ok()) return device->failure(status, "ordering a stream behind another");
    if (device->books->order != nullptr) device->books->order->waits(*this, other, position);
    // An operation of its own, so that a synchronisation of this stream covers it.
    advance("a wait for another stream");
    fence_external();
    return {};
}

Result<void> StreamState::wait_until(std::uint64_t position, Wait wait) {
    if (device->is_lost()) device->end_host_functions(host_calls);
    if (reached(position)) return {};
    if (device->bars(rules::PublicCall::wait_for_stream)) return device->refusal(rules::PublicCall::wait_for_stream);
    if (serves.load(std::memory_order_acquire)) {
        const rules::DriverUse use = rules::DriverUse::wait_for_service;
        if (Result<void> fine = device->services.allow(use, "waiting for its kernel"); !fine) return fine;
    }
    Fence fence = recorded_fence(position);
    if (fence.event == nullptr) {
        const Result<StreamLock> lock = lock_within(wait, "waiting for a stream");
        if (!lock) return lock.error();
        Result<Fence> covering = covering_fence(std::min<std::uint64_t>(position, issued));
        if (!covering) return std::move(covering).error();
        fence = *covering;
    }
    return wait_for_fence(fence, position, wait);
}

Result<void> StreamState::wait_for_fence(const Fence& fence, std::uint64_t position, Wait wait) {
    if (fence.event == nullptr) return {};
    Result<void> waited = wait_for(fence.event->handle, position, wait);
    device->drop_event(fence.event);
    if (!waited) return waited;
    note_reached(fence.position);
    device->end_host_functions(host_calls);
    return {};
}

// Expects `mutex`. If other code submits work to the stream, a fence behind the runtime's last operation may precede
// that work: one more fence is recorded. During a capture, or without a wrapper, that is impossible: then only the
// runtime's own operations are covered.
Result<StreamState::Fence> StreamState::covering_all() {
    bool records = others() && handle != platform::StreamHandle::none;
    if (records) {
        const Result<void> refused = refuse_captured("a fence was to be recorded");
        if (!refused && refused.code() != Code::capture_error) return refused.error();
        records = refused.ok();
    }
    if (!records && reached(issued)) return Fence{issued, nullptr};
    if (!records) return covering_fence(issued);
    if (Result<void> returned = return_attached(); !returned) return std::move(returned).error();
    // A just-recorded event may not have signalled yet: query the stream first.
    if (tail.empty()) {
        const platform::Status status = device->execution.query_stream(handle);
        if (status.ok()) return note_reached(issued), Fence{issued, nullptr};
        if (status.code != Code::not_ready) return device->failure(status, "asking how far a stream has come");
    }
    FenceEvent* event = nullptr;
    if (Result<void> recorded = record_fence(&event); !recorded) return std::move(recorded).error();
    return Fence{issued, event};
}

Result<FenceEvent*> StreamState::fence_behind_all(std::uint64_t& position) {
    Wait wait;
    const Result<StreamLock> lock = lock_within(wait, "ordering work behind a stream");
    if (!lock) return lock.error();
    position = issued;
    Result<Fence> fence = covering_all();
    if (!fence) return std::move(fence).error();
    return fence->event;
}

Result<void> StreamState::wait_for_all(Wait wait) {
    std::uint64_t last = 0;
    Fence fence{};
    {
        const Result<StreamLock> lock = lock_within(wait, "waiting for a stream");
        if (!lock) return lock.error();
        last = issued;
        if (others() && device->usable()) {
            Result<Fence> covering = covering_all();
            if (!covering) return std::move(covering).error();
            fence = *covering;
        }
    }
    if (fence.event != nullptr) return wait_for_fence(fence, last, wait);
    Result<void> waited = wait_until(last, wait);
    if (waited && others()) device->end_host_functions(host_calls);  // covering_all() may have found the stream idle
    return waited;
}

Result<void> StreamState::wait_for(platform::EventHandle event, std::uint64_t position, Wait wait) {
    const std::chrono::nanoseconds timeout =
        wait.refuse ? std::chrono::nanoseconds(0) : wait.timeout.value_or(device->config->wait_timeout);
    // Without the lock: its holder may be blocked in the driver behind the work that hangs.
    const char* const known = name_of(position);
    const char* const operation = known != nullptr ? known : "an operation";
    // A question (Wait::never()) is no wait.
    static constexpr Observer nobody;
    ObservedSpan span(wait.refuse ? nobody : device->observer(), Span::wait, operation,
                      [&] { return observed(position); });
    const auto begin = std::chrono::steady_clock::now();
    const platform::Status status = poll_event(*device, event, timeout);
    if (!wait.refuse) {
        LaunchBooks& books = device->books->launches;
        LaunchBooks::count(books.waits);
        const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin;
        LaunchBooks::count(books.waited_ns, static_cast<std::uint64_t>(waited.count()));
    }
    if (status.ok()) {
        if (device->books->order != nullptr) device->books->order->seen(*this, position);
        return {};
    }
    if (status.code != Code::timed_out) return span.over(device->failure(status, "waiting for a stream"));
    if (wait.refuse) return span.over(make_error<errors::stream_work_not_ready>(operation, position, id));
    return span.over(make_error<errors::stream_work_timed_out>(operation, position, id, timeout.count() / 1000));
}

bool StreamState::forget(const BufferState* buffer, std::uint64_t last) noexcept {
    if (reached(last)) return true;
    Wait wait = Wait::never();
    const StreamLock lock = detail::lock_within(mutex, wait, device->config->wait_timeout, device->config->wait_policy);
    if (!lock.owns_lock()) return false;
    std::erase(tail, buffer);
    return true;
}

void StreamState::keep_until_end(std::shared_ptr<BufferState> buffer) {
    const std::lock_guard lock(fences_mutex_);
    kept_.push_back(std::move(buffer));
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
