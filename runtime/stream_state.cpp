// StreamState: positions, departure fences and waits with deadlines.
#include "stream_state.hpp"

#include "buffer_state.hpp"
#include "recording.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace isthmus::inline v0::detail {
namespace {

std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

// Queries the event until it is done or the time is up. Queries cost about 0.1 µs, so the first hundred microseconds
// spin (short kernels), later ones sleep (long ones leave the core to others).
platform::Status poll_event(platform::Execution& execution, platform::EventHandle event,
                            std::chrono::nanoseconds timeout) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    auto pause = std::chrono::microseconds(20);
    for (;;) {
        const platform::Status status = execution.query_event(event);
        if (status.code != Code::not_ready) return status;
        const auto waited = Clock::now() - begin;
        if (waited >= timeout) return {Code::timed_out, 0, ""};
        if (waited > std::chrono::microseconds(100)) {
            std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, timeout - waited));
            pause = std::min(pause * 2, std::chrono::microseconds(500));
        }
    }
}

StreamState::StreamState(std::shared_ptr<DeviceState> owner, int wanted_priority)
    : device(std::move(owner)),
      priority(std::clamp(wanted_priority, -1, 0)),
      id(next_id()),
      mode(device->config->launch_mode) {}

StreamState::~StreamState() {
    if (device->config->forked()) return;
    if (device->books->order != nullptr) device->books->order->ended(*this);
    tail.clear();  // its buffers hold the stream: they are gone
    leave_recording(*this);
    if (handle != platform::StreamHandle::none && !device->is_lost() && !reached(issued)) {
        if (Result<Fence> last = covering_fence(issued); last.ok() && last->event != nullptr) {
            device->outlive(last->event);
        }
    }
    for (const Fence& fence : fences_) device->drop_event(fence.event);
    if (handle == platform::StreamHandle::none) return;
    (void)device->driver->execution().destroy_stream(handle);  // its work goes on; the driver frees it afterwards
}

Result<void> StreamState::open_handle() {
    if (recording != nullptr) {
        if (Result<HeldCapture> held = capture(); !held) return std::move(held).error();
    }
    if (handle != platform::StreamHandle::none) return {};
    const platform::Status status = device->driver->execution().create_stream(priority, handle);
    if (!status.ok()) return device->failure(status, "creating a stream");
    return {};
}

Result<void> StreamState::fence() {
    if (device->synchronous) return note_reached(issued), Result<void>();
    if (Result<void> returned = return_attached(); !returned) return returned;
    if (reached(issued) || (!fences_.empty() && fences_.back().position >= issued)) {
        tail.clear();
        return {};
    }
    FenceEvent* event = nullptr;
    if (const platform::Status status = device->take_event(event); !status.ok()) {
        return device->failure(status, "creating an event");
    }
    const platform::Status status = device->driver->execution().record_event(event->handle, handle);
    if (!status.ok()) {
        device->drop_event(event);
        return device->failure(status, "recording an event");
    }
    add_fence(event);
    return {};
}

// Managed memory of phase-guarded machines goes back to the host behind its last use; views wait for that too.
Result<void> StreamState::return_attached() {
    for (BufferState* buffer : tail) {
        if (buffer->path != LaunchPath::attach) continue;
        const std::lock_guard lock(buffer->mutex);
        if (buffer->attached_to != this) continue;
        const platform::Status status =
            device->driver->memory().attach(buffer->whole(), platform::Attachment::host, handle);
        if (!status.ok()) return device->failure(status, "attaching managed memory back to the host");
        buffer->attached_to = nullptr;
        buffer->touch(*this, advance("the return of managed memory to the host"), true);
    }
    return {};
}

Result<void> StreamState::depart(BufferState* const* uses, std::size_t count) {
    // The same buffers again, in the same order: the common case, and no square of their number.
    if (tail.size() <= count && std::equal(tail.begin(), tail.end(), uses)) return {};
    const auto stays = [&](BufferState* buffer) { return std::find(uses, uses + count, buffer) != uses + count; };
    if (std::all_of(tail.begin(), tail.end(), stays)) return {};
    return fence();
}

std::uint64_t StreamState::advance(const char* operation) noexcept {
    ++issued;
    names_[issued % names_.size()] = operation;
    if (device->synchronous) raise(issued);
    return issued;
}

platform::Status StreamState::resolve(const KernelInfo& kernel, platform::FunctionHandle& out) {
    // Never cached while the order is checked: launch_at_once(), which knows of no check, then finds nothing.
    if (device->books->order != nullptr) return device->driver->execution().resolve(kernel, out);
    CachedFunction& cached = functions_[slot(kernel)];
    if (cached.kernel != &kernel) {
        platform::FunctionHandle function = platform::FunctionHandle::none;
        const platform::Status status = device->driver->execution().resolve(kernel, function);
        if (!status.ok()) return status;
        cached = {&kernel, function};
    }
    out = cached.function;
    return {};
}

Result<StreamState::Fence> StreamState::covering_fence(std::uint64_t position) {
    const auto covers = [&](const Fence& fence) { return fence.position >= position; };
    auto found = std::find_if(fences_.begin(), fences_.end(), covers);
    if (found == fences_.end()) {
        if (Result<void> recorded = fence(); !recorded) return std::move(recorded).error();
        found = std::find_if(fences_.begin(), fences_.end(), covers);
    }
    if (found == fences_.end()) return Fence{position, nullptr};  // reached meanwhile
    found->event->references.fetch_add(1, std::memory_order_relaxed);
    return *found;
}

Result<FenceEvent*> StreamState::fence_behind(std::uint64_t position) {
    if (reached(position)) return nullptr;
    const std::lock_guard lock(mutex);
    Result<Fence> fence = covering_fence(std::min(position, issued));
    if (!fence) return std::move(fence).error();
    return fence->event;
}

Result<void> StreamState::wait_behind(platform::EventHandle event, StreamState& other, std::uint64_t position) {
    const std::lock_guard lock(mutex);
    if (Result<void> opened = open_handle(); !opened) return opened;
    // A capture that began meanwhile would be lost (905): it may not depend on work outside of it.
    if (Result<void> refused = refuse_captured("another stream's work was to be waited for"); !refused) return refused;
    // Views of what was used so far do not wait for the event.
    if (Result<void> left = depart(nullptr, 0); !left) return left;
    const platform::Status status = device->driver->execution().wait_event(handle, event);
    if (!status.ok()) return device->failure(status, "ordering a stream behind another");
    if (device->books->order != nullptr) device->books->order->waits(*this, other, position);
    advance("a wait for another stream");  // an operation of its own, so that a synchronise of this stream covers it
    return {};
}

Result<void> StreamState::wait_until(std::uint64_t position, Wait wait) {
    if (reached(position)) return {};
    if (!device->usable()) return device->unusable("waiting for a stream");
    Fence fence{};
    {
        const std::lock_guard lock(mutex);
        Result<Fence> covering = covering_fence(std::min(position, issued));
        if (!covering) return std::move(covering).error();
        fence = *covering;
    }
    if (fence.event == nullptr) return {};
    Result<void> waited = wait_for(fence.event->handle, position, wait);
    device->drop_event(fence.event);
    if (!waited) return waited;
    const std::lock_guard lock(mutex);
    note_reached(fence.position);
    return {};
}

Result<void> StreamState::wait_for_all(Wait wait) {
    std::uint64_t last = 0;
    {
        const std::lock_guard lock(mutex);
        last = issued;
    }
    return wait_until(last, wait);
}

Result<void> StreamState::wait_for(platform::EventHandle event, std::uint64_t position, Wait wait) {
    const std::chrono::nanoseconds timeout =
        wait.refuse ? std::chrono::nanoseconds(0) : wait.timeout.value_or(device->config->wait_timeout);
    const platform::Status status = poll_event(device->driver->execution(), event, timeout);
    if (status.ok()) {
        if (device->books->order != nullptr) device->books->order->seen(*this, position);
        return {};
    }
    if (status.code != Code::timed_out) return device->failure(status, "waiting for a stream");
    const char* operation = nullptr;
    // Not waited for: whoever holds the lock may stand in the driver behind the very work that hangs.
    if (const std::unique_lock lock(mutex, std::try_to_lock); lock && issued - position < names_.size()) {
        operation = names_[position % names_.size()];
    }
    const std::string who = std::string(operation != nullptr ? operation : "an operation") + " (position " +
                            std::to_string(position) + " of stream " + std::to_string(id) + ")";
    if (wait.refuse) {
        return Error(Code::not_ready, who + " is still running and waiting was ruled out",
                     "ask again later, or allow a wait");
    }
    return Error(Code::timed_out, who + " has not finished within " + std::to_string(timeout.count() / 1000) + " µs",
                 "give a longer timeout if the kernel is meant to take that long; otherwise it hangs, and only "
                 "ending the process frees the device");
}

void StreamState::forget(const BufferState* buffer) noexcept {
    const std::lock_guard lock(mutex);
    std::erase(tail, buffer);
}

}  // namespace isthmus::inline v0::detail
