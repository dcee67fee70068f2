// BufferState: uses, staging and release.
#include "buffer_state.hpp"

#include "device_state.hpp"
#include "memory_source.hpp"
#include "stream_state.hpp"

#include <isthmus/stream.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace isthmus::inline v0::detail {
namespace {

void end_of_buffer(BufferState* buffer) {
    if (in_host_function && !buffer->device->config->forked()) {  // what it needs, the driver refuses there
        // All of it is put off: a capture may be open by then.
        buffer->device->books->after_host_functions.put_off([buffer] { end_of_buffer(buffer); });
        return;
    }
    OpenCaptures& captures = buffer->device->books->captures;
    // In a forked child nothing is put off: the end of a buffer does nothing there, and waits for no lock.
    if (!captures.any() || buffer->device->config->forked()) {
        delete buffer;
    } else {
        captures.when_none_is_open([buffer] { delete buffer; });
    }
}

}  // namespace

std::shared_ptr<BufferState> BufferState::make(std::shared_ptr<DeviceState> owner) {
    return {new BufferState(std::move(owner)), end_of_buffer};
}

BufferState::~BufferState() {
    if (device->config->forked()) return;
    const bool released = !block && !host_block;  // before, and maybe behind work that still runs
    Result<std::shared_ptr<StreamState>> after =
        released ? Result<std::shared_ptr<StreamState>>(nullptr) : part_for_good();
    for (const Use& use : uses) {
        use.stream->forget(this);
        use.stream->standing.fetch_sub(1, std::memory_order_relaxed);
    }
    if (released) return;
    if (!after) {
        // The device may still write: giving the memory back would hand it to somebody else (R5). The books keep it
        // until the device closes.
        device->config->say(Severity::error, "memory was given up: " + after.error().text());
        return;
    }
    if (Result<void> freed = free_memory(*after); !freed) {
        device->config->say(Severity::warning, "releasing a buffer: " + freed.error().text());
    }
}

// Nobody can be asked to try again in a destructor: a failure that may pass (no event to be had, a call that was
// interrupted) is tried again here, a deadline is not. A lost device runs nothing any more.
Result<std::shared_ptr<StreamState>> BufferState::part_for_good() {
    constexpr int tries = 3;
    Result<std::shared_ptr<StreamState>> parted = std::shared_ptr<StreamState>();
    for (int attempt = 0; attempt < tries && device->usable(); ++attempt) {
        parted = part_with_uses(Wait{});
        if (parted || parted.code() == Code::timed_out) return parted;
    }
    if (device->is_lost()) return std::shared_ptr<StreamState>();
    return parted;
}

Result<std::shared_ptr<StreamState>> BufferState::part_with_uses(Wait wait) {
    if (is_pooled(block.kind)) {
        if (Result<std::shared_ptr<StreamState>> gathered = gather_uses(); gathered && *gathered) return gathered;
    }
    if (Result<void> waited = wait_until_unused(wait); !waited) return std::move(waited).error();
    return std::shared_ptr<StreamState>();
}

// One stream of this device behind which nothing uses the memory: a stream that still does, waiting for the others.
// nullptr: there is none.
Result<std::shared_ptr<StreamState>> BufferState::gather_uses() {
    const std::vector<Use> running = conflicting(true);
    std::shared_ptr<StreamState> last;
    for (const Use& use : running.empty() ? uses : running) {
        if (use.stream->device == device && use.stream->takes_work()) last = use.stream;
    }
    if (!last) return last;
    for (const Use& use : running) {
        if (use.stream == last || use.stream->device->is_lost()) continue;
        Result<FenceEvent*> fence = use.stream->fence_behind(use.last);
        if (!fence) return std::move(fence).error();
        if (*fence == nullptr) continue;
        Result<void> ordered = last->wait_behind((*fence)->handle, *use.stream, use.last);
        use.stream->device->drop_event(*fence);
        if (!ordered) return std::move(ordered).error();
    }
    return last;
}

rules::PeerState BufferState::peer_state(const DeviceState& user) const noexcept {
    rules::PeerState state = device->books->peers.state(user.index, device->index);
    if (pool) state.pool_access = pool->allows(user.index);
    return state;
}

void BufferState::order_on(StreamState& stream, std::uint64_t position) {
    if (host == nullptr) {
        touch_locked(stream, position);
    } else {
        const std::lock_guard lock(mutex);
        touch(stream, position, true);
    }
    if (device->books->order != nullptr) device->books->order->allocated(*this, stream, position);
    const std::lock_guard lock(mutex);
    ordered_position = position;
    ordered_on.store(&stream, std::memory_order_relaxed);
}

Result<BufferState::Making> BufferState::making_before_use(StreamState& stream) {
    if (ordered_on.load(std::memory_order_relaxed) == nullptr) return Making{};
    Making making;
    {
        const std::lock_guard lock(mutex);
        const StreamState* const maker = ordered_on.load(std::memory_order_relaxed);
        if (maker == nullptr || maker == &stream) return Making{};
        if (maker->reached(ordered_position)) {
            ordered_on.store(nullptr, std::memory_order_relaxed);
            return Making{};
        }
        for (const Use& use : uses) {
            if (use.stream.get() == &stream) return Making{};           // ordered by its first use
            if (use.stream.get() == maker) making.stream = use.stream;  // another thread may forget it meanwhile
        }
        making.position = ordered_position;
    }
    if (!making.stream) return Making{};
    Result<FenceEvent*> fence = making.stream->fence_behind(making.position);
    if (!fence) return std::move(fence).error();
    making.fence = *fence;
    return making;
}

Result<void> BufferState::wait_until_unused(Wait wait) {
    for (const Use& use : conflicting(true)) {
        if (use.stream->device->is_lost()) continue;
        Result<void> waited = use.stream->wait_until(use.last, wait);
        if (!waited && !use.stream->device->is_lost()) return waited;
    }
    return {};
}

bool BufferState::touched_by_loss() {
    const std::lock_guard lock(mutex);
    return device->is_lost() ||
           std::any_of(uses.begin(), uses.end(), [](const Use& use) { return use.stream->device->is_lost(); });
}

void BufferState::touch(StreamState& stream, std::uint64_t position, bool writes) {
    auto use = std::find_if(uses.begin(), uses.end(), [&](const Use& known) { return known.stream.get() == &stream; });
    if (use == uses.end()) {
        forget_ended_uses();
        use = uses.insert(uses.end(), Use{stream.shared_from_this(), 0, 0});
        stream.standing.fetch_add(1, std::memory_order_relaxed);
    }
    use->last = std::max(use->last, position);
    if (writes) use->last_write = std::max(use->last_write, position);
}

// Streams may come and go while the buffer stays: one that only buffers hold, and that is known to have done what it
// did here, is held no longer. Its last use is behind a fence, so that the buffer stands in its tail no more; streams
// that are named elsewhere in here stay.
void BufferState::forget_ended_uses() {
    std::erase_if(uses, [&](const Use& use) {
        StreamState* const stream = use.stream.get();
        const bool ended =
            stream->reached(use.last) && use.stream.use_count() <= stream->standing.load(std::memory_order_relaxed) &&
            stream != first_stream_.load(std::memory_order_relaxed) &&
            stream != ordered_on.load(std::memory_order_relaxed) && stream != attached_to && stream != uploaded_on;
        if (ended) stream->standing.fetch_sub(1, std::memory_order_relaxed);
        return ended;
    });
}

void BufferState::touch_locked(StreamState& stream, std::uint64_t position) {
    const std::lock_guard lock(mutex);
    touch(stream, position, true);
    if (first_stream_.load(std::memory_order_relaxed) != nullptr) return;
    first_position_.store(position, std::memory_order_relaxed);
    first_stream_.store(&stream, std::memory_order_release);
}

Result<void> BufferState::refuse_open_views(bool device_writes) const {
    if (!writer && (!device_writes || readers == 0)) return {};
    return Error(Code::in_use,
                 std::string(device_writes ? " writes" : " reads") + " a buffer that the host has open for " +
                     (writer ? "writing" : "reading"),
                 "let the host view go out of scope before the launch");
}

std::vector<BufferState::Use> BufferState::conflicting(bool host_writes) {
    std::vector<Use> found;
    const std::lock_guard lock(mutex);
    if (StreamState* stream = first_stream_.load(std::memory_order_relaxed)) {
        touch(*stream, first_position_.load(std::memory_order_relaxed), true);
    }
    for (const Use& use : uses) {
        if (!use.stream->reached(host_writes ? use.last : use.last_write)) found.push_back(use);
    }
    return found;
}

Result<void> BufferState::wait_for_uses(bool host_writes, Wait wait) {
    for (const Use& use : conflicting(host_writes)) {
        Result<void> waited = use.stream->wait_until(host_writes ? use.last : use.last_write, wait);
        if (!waited) return waited;
    }
    return {};
}

Result<void> BufferState::download(Wait wait) {
    const std::lock_guard one_at_a_time(downloading);  // a second view waits for the first one's copy
    {
        const std::lock_guard lock(mutex);
        if (!device_newer) return {};
    }
    if (wait.refuse) {
        return Error(Code::not_ready, "the buffer's content still lies on the device's side and waiting was ruled out",
                     "allow a wait: a copy is needed on this machine");
    }
    // All that wrote it, on whichever stream; then one copy, which therefore needs no order with them.
    if (Result<void> written = wait_for_uses(false, wait); !written) return written;
    const std::shared_ptr<StreamState> stream = device->download_stream();
    std::uint64_t position = 0;
    {
        const std::lock_guard stream_lock(stream->mutex);
        const std::lock_guard lock(mutex);
        if (!device_newer) return {};
        if (Result<void> opened = stream->open_handle(); !opened) return opened;
        const auto host_address = reinterpret_cast<std::uintptr_t>(host);
        const platform::Status status = device->driver->memory().copy(
            host_address, device_address, bytes, platform::CopyDirection::device_to_host, stream->handle);
        position = stream->advance("the copy to the host's side");
        touch(*stream, position, true);  // should its wait run out: later views and the release wait for it
        if (!status.ok()) return device->failure(status, "copying a staged buffer to the host's side");
    }
    if (Result<void> copied = stream->wait_until(position, wait); !copied) return copied;
    staged_bytes.fetch_add(bytes, std::memory_order_relaxed);
    const std::lock_guard lock(mutex);
    device_newer = false;
    return {};
}

Result<void> BufferState::free_memory(const std::shared_ptr<StreamState>& after) {
    if (device->config->forked()) return device->unusable("releasing a buffer");
    if (users_id != 0) device->books->ledger.leave(std::exchange(users_id, 0));
    std::optional<Stream> behind;
    if (after) behind.emplace(after);
    Result<void> first = allocator.release(std::exchange(block, {}), behind ? &*behind : nullptr);
    Result<void> second = host_allocator.release(std::exchange(host_block, {}), nullptr);
    host = nullptr;
    device_address = 0;
    return first ? second : first;
}

}  // namespace isthmus::inline v0::detail
