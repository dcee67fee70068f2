// BufferState: uses, staging and release.
#include "buffer_state.hpp"

#include "access_rules.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "piece_release.hpp"
#include "stream_state.hpp"
#include "timed_lock.hpp"
#include "wait_pause.hpp"

#include <isthmus/stream.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace isthmus::inline v0::detail {
namespace {

void end_of_buffer(BufferState* buffer);

// Static objects may end behind the driver, which then answers every call with this one code.
bool driver_ended(const DeviceState& device) {
    constexpr int deinitialized = 4;  // CUDA_ERROR_DEINITIALIZED
    return device.lost_code() == deinitialized;
}

// A service that uses the buffer ends when it is stopped, which whoever let go of the buffer may do later: the buffer
// ends then. Pool memory is freed in the order of the service's stream, and waits for nobody.
bool put_off_behind_service(BufferState* buffer) {
    if (rules::is_pooled(buffer->block.kind) && !buffer->adopted) return false;
    for (const BufferState::Use& use : buffer->uses) {
        StreamState& stream = *use.stream;
        if (!stream.serves.load(std::memory_order_acquire) || stream.reached(use.last)) continue;
        if (stream.device->is_lost()) continue;
        const auto again = [buffer] { end_of_buffer(buffer); };
        if (stream.device->services.put_off(rules::DriverUse::wait_for_service, again)) return true;
    }
    return false;
}

void end_now(BufferState* buffer) {
    if (!buffer->device->config->forked() && put_off_behind_service(buffer)) return;
    const std::shared_ptr<BufferState> ended(buffer);
    if (buffer->device->config->forked()) return;
    for (const std::shared_ptr<StreamState>& stream : buffer->end()) stream->keep_until_end(ended);
}

void end_of_buffer(BufferState* buffer) {
    if (process::in_host_function && !buffer->device->config->forked()) {  // what it needs, the driver refuses there
        // All of it is put off: a capture may be open by then.
        buffer->device->books->after_host_functions.put_off([buffer] { end_of_buffer(buffer); });
        return;
    }
    OpenCaptures& captures = buffer->device->books->captures;
    // In a forked child nothing is put off: the end of a buffer does nothing there, and waits for no lock.
    if (!captures.any() || buffer->device->config->forked()) {
        end_now(buffer);
    } else {
        captures.when_none_is_open([buffer] { end_now(buffer); });
    }
}

}  // namespace

std::shared_ptr<BufferState> BufferState::make(std::shared_ptr<DeviceState> owner) {
    return {new BufferState(std::move(owner)), [](BufferState* buffer) {
                if (buffer->mutex.abandon()) end_of_buffer(buffer);
            }};
}

void end_behind_views(BufferState& buffer) {
    end_of_buffer(&buffer);
}

std::vector<std::shared_ptr<StreamState>> BufferState::end() {
    const bool released = !block && !host_block && !adopted_block;  // before, and maybe behind work that still runs
    Result<std::shared_ptr<StreamState>> after =
        released ? Result<std::shared_ptr<StreamState>>(nullptr) : part_for_good();
    std::vector<std::shared_ptr<StreamState>> standing;
    for (const Use& use : uses) {
        if (!use.stream->forget(this, use.last)) standing.push_back(use.stream);
        use.stream->standing.fetch_sub(1, std::memory_order_relaxed);
    }
    uses.clear();  // who keeps this is not kept by it
    if (released) return standing;
    if (!after) {
        // The device may still write: giving the memory back would hand it to somebody else (R5). The books keep it
        // until the device closes.
        device->config->say(Severity::error, composed("memory was given up: {}", after.error().text()));
    } else if (Result<void> freed = free_memory(*after); !freed) {
        device->config->say(Severity::warning, composed("releasing a buffer: {}", freed.error().text()));
        if (users_id != 0) device->books->ledger.leave(std::exchange(users_id, 0));  // its allocator keeps it
        if (adopted) release_later(*device, adopted_block ? adopted_block : block);
    }
    return standing;
}

// Nobody can be asked to try again in a destructor: a failure that may pass (no event to be had, a call that was
// interrupted) is tried again here, a deadline is not. A lost device runs nothing any more.
Result<std::shared_ptr<StreamState>> BufferState::part_for_good() {
    constexpr int tries = 3;
    Result<std::shared_ptr<StreamState>> ended = std::shared_ptr<StreamState>();
    for (int attempt = 0; attempt < tries && device->usable(); ++attempt) {
        ended = part_with_uses(Wait{});
        if (ended || ended.code() == Code::timed_out) return ended;
    }
    if (device->is_lost()) return std::shared_ptr<StreamState>();
    return ended;
}

Result<std::shared_ptr<StreamState>> BufferState::part_with_uses(Wait wait) {
    const Deadline deadline(wait, device->config->wait_timeout);
    if (rules::is_pooled(block.kind) && !adopted) {  // its owner frees it in an order that nobody here knows
        Result<std::shared_ptr<StreamState>> gathered = gather_uses(deadline);
        const bool stands = gathered.code() == Code::timed_out || gathered.code() == Code::not_ready;
        if (stands || (gathered && *gathered)) return gathered;
    }
    if (Result<void> waited = wait_until_unused(deadline); !waited) return std::move(waited).error();
    return std::shared_ptr<StreamState>();
}

// One stream of this device behind which nothing uses the memory: a stream that still does, waiting for the others.
// nullptr: there is none.
Result<std::shared_ptr<StreamState>> BufferState::gather_uses(const Deadline& deadline) {
    const std::vector<Use> running = conflicting(ArgumentUse::write);
    std::shared_ptr<StreamState> last;
    for (const Use& use : running.empty() ? uses : running) {
        if (use.stream->device == device && use.stream->takes_work()) last = use.stream;
    }
    if (!last) return last;
    for (const Use& use : running) {
        if (use.stream == last || use.stream->device->is_lost()) continue;
        Result<FenceEvent*> fence = use.stream->fence_behind(use.last, deadline.left());
        if (!fence) return std::move(fence).error();
        if (*fence == nullptr) continue;
        Result<void> ordered = last->wait_behind((*fence)->handle, *use.stream, use.last, deadline.left());
        use.stream->device->drop_event(*fence);
        if (!ordered) return std::move(ordered).error();
    }
    if (!last) return last;
    // The release will be given to it: not where another thread stands.
    Wait wait = deadline.left();
    const Result<std::unique_lock<std::mutex>> lock = last->lock_within(wait, "releasing a buffer");
    return lock ? Result<std::shared_ptr<StreamState>>(last) : lock.error();
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
        touch(stream, position, ArgumentUse::write);
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

Result<void> BufferState::wait_until_unused(const Deadline& deadline) {
    for (const Use& use : conflicting(ArgumentUse::write)) {
        if (use.stream->device->is_lost()) continue;
        Result<void> waited = use.stream->wait_until(use.last, deadline.left());
        if (!waited && !use.stream->device->is_lost()) return waited;
    }
    return {};
}

bool BufferState::touched_by_loss() {
    const std::lock_guard lock(mutex);
    return device->is_lost() ||
           std::any_of(uses.begin(), uses.end(), [](const Use& use) { return use.stream->device->is_lost(); });
}

void BufferState::touch(StreamState& stream, std::uint64_t position, ArgumentUse how, const rules::ByteSpan& span) {
    mutex.open_slowly();
    auto use = std::find_if(uses.begin(), uses.end(), [&](const Use& known) { return known.stream.get() == &stream; });
    if (use == uses.end()) {
        forget_ended_uses();
        use = uses.insert(uses.end(), Use{{}, stream.shared_from_this()});
        stream.standing.fetch_add(1, std::memory_order_relaxed);
    }
    use->raise(position, how);
    if (parts != nullptr) {
        // A stream that the book names stands in `uses`, and so is there.
        parts->touch(&stream, position, how, span, [](const void* one, std::uint64_t end) {
            return static_cast<const StreamState*>(one)->reached(end);
        });
    }
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
        if (ended && parts != nullptr) parts->forget(stream);
        return ended;
    });
}

Error BufferState::refuse_released(const char* what) const {
    return {Code::invalid_handle, composed("{}: the buffer of this part was released", what),
            "release a buffer when its parts are no longer used, or let it go out of scope: they hold the memory"};
}

Result<void> BufferState::begin_release() {
    const std::lock_guard lock(mutex);
    if (open_against(ArgumentUse::write)) {
        return Error(Code::in_use, "the buffer cannot be released while a host view of it is open",
                     "let the view go out of scope first");
    }
    mutex.open_slowly();
    releasing.store(true, std::memory_order_release);
    return {};
}

Result<void> BufferState::touch_parted(StreamState& stream, std::uint64_t position) {
    const std::lock_guard lock(mutex);
    if (released()) return refuse_released("using it on a device");
    touch(stream, position, ArgumentUse::write);
    if (in_several || first_stream_.load(std::memory_order_relaxed) != nullptr) return {};
    first_position_.store(position, std::memory_order_relaxed);
    first_stream_.store(&stream, std::memory_order_release);  // launches of all of it may be simple ones
    return {};
}

void BufferState::touch_locked(StreamState& stream, std::uint64_t position) {
    const std::lock_guard lock(mutex);
    touch(stream, position, ArgumentUse::write);
    if (in_several || first_stream_.load(std::memory_order_relaxed) != nullptr) return;
    first_position_.store(position, std::memory_order_relaxed);
    first_stream_.store(&stream, std::memory_order_release);
}

void BufferState::fill_relay() {
    if (relay != nullptr && std::exchange(relay_stale, false)) std::memcpy(relay, host, bytes);
}

void BufferState::make_parted() {
    has_parts.store(true, std::memory_order_release);
    if (!views_of_parts()) return;
    const std::lock_guard lock(mutex);
    if (parts != nullptr) return;
    mutex.open_slowly();
    parts = std::make_unique<PartBook>();
    for (const Use& use : uses) parts->touched(use.stream.get(), use);
    if (host_touched) parts->at_host.add({});
    parted.store(true, std::memory_order_release);
}

rules::ByteSpan touched(const BufferState& buffer, const rules::ByteRange& range) noexcept {
    if (!buffer.parted.load(std::memory_order_acquire) || range.width == 0) return {};
    return {range.offset, range.end()};
}

rules::ByteSpan span_of(const BufferState& buffer, std::size_t first_byte, std::size_t bytes) noexcept {
    if (first_byte == 0 && bytes == buffer.bytes) return {};
    return {first_byte, first_byte + bytes};
}

Result<void> BufferState::refuse_open_views(ArgumentUse use, const rules::ByteSpan& span) const {
    if (read_only && rules::writes(use)) {
        return Error(Code::not_accessible,
                     composed(" {} memory that was adopted from a mapping for reading only", rules::deed(use)),
                     "let the kernel write a buffer of its own, or map the memory for writing");
    }
    const OpenUse open = open_against(use, span);
    if (!open) return {};
    const char* remedy = "let the host view go out of scope before the launch";
    if (use == ArgumentUse::concurrent) {
        remedy = "let the host view go out of scope before the launch, or open it with concurrent_on_host()";
    } else if (open.use == ArgumentUse::concurrent) {
        remedy =
            "let the concurrent view go out of scope first; only a kernel that takes it as an AtomicView runs "
            "beside one";
    }
    return Error(Code::in_use,
                 composed(" {} {}{}{}", rules::deed(use), rules::text(span, "a buffer"),
                          (open.span.whole() ? " that the host has open for " : ", of which the host has "),
                          (open.span.whole()
                               ? std::string(rules::purpose(open.use))
                               : composed("{} open for {}", rules::text(open.span, "it"), rules::purpose(open.use)))),
                 remedy);
}

bool BufferState::opens_at_once() const noexcept {
    const auto ended = [](const Use& use) { return use.stream->reached(use.last); };
    return host != nullptr && !staged() && parts == nullptr && host_touched && !released() &&
           first_stream_.load(std::memory_order_relaxed) == nullptr && std::all_of(uses.begin(), uses.end(), ended);
}

std::vector<BufferState::Use> BufferState::conflicting(ArgumentUse host_use, const rules::ByteSpan& span) {
    const std::lock_guard lock(mutex);
    return conflicting_locked(host_use, span);
}

std::vector<BufferState::Use> BufferState::conflicting_locked(ArgumentUse host_use, const rules::ByteSpan& span) {
    std::vector<Use> found;
    if (StreamState* stream = first_stream_.load(std::memory_order_relaxed)) {
        touch(*stream, first_position_.load(std::memory_order_relaxed), ArgumentUse::write);
    }
    const bool exact = parts != nullptr && !span.whole();
    for (const Use& use : uses) {
        if (use.stream->reached(use.before(host_use))) continue;
        Use waited{use, use.stream};
        if (exact) static_cast<LastUse&>(waited) = parts->last_use(use.stream.get(), span);
        if (!use.stream->reached(waited.before(host_use))) found.push_back(std::move(waited));
    }
    return found;
}

Result<void> BufferState::wait_for_uses(ArgumentUse host_use, Wait wait, const rules::ByteSpan& span) {
    return wait_for_uses(conflicting(host_use, span), host_use, wait);
}

Result<void> BufferState::wait_for_uses(const std::vector<Use>& found, ArgumentUse host_use, Wait wait) {
    if (found.empty()) return {};
    const Deadline deadline(wait, device->config->wait_timeout);
    for (const Use& use : found) {
        Result<void> waited = use.stream->wait_until(use.before(host_use), found.size() == 1 ? wait : deadline.left());
        if (!waited) return waited;
    }
    return {};
}

Result<void> BufferState::download(Wait whole) {
    const Deadline deadline(whole, device->config->wait_timeout);
    Wait wait = whole;
    // A second view waits for the first one's copy, each for as long as it may.
    const std::unique_lock one_at_a_time =
        lock_within(downloading, wait, device->config->wait_timeout, device->config->wait_policy);
    if (!one_at_a_time.owns_lock()) {
        return Error(wait.refuse ? Code::not_ready : Code::timed_out,
                     "the buffer's content is still being copied to the host's side for another view",
                     "ask again later, or allow a longer wait");
    }
    {
        const std::lock_guard lock(mutex);
        if (!device_newer) return {};
    }
    if (wait.refuse) {
        return Error(Code::not_ready, "the buffer's content still lies on the device's side and waiting was ruled out",
                     "allow a wait: a copy is needed on this machine");
    }
    // All that wrote it, on whichever stream; then one copy, which therefore needs no order with them.
    if (Result<void> written = wait_for_uses(ArgumentUse::read, wait); !written) return written;
    wait = deadline.left();
    const std::shared_ptr<StreamState> stream = device->download_stream();
    std::uint64_t position = 0;
    {
        const Result<std::unique_lock<std::mutex>> stream_lock =
            stream->lock_within(wait, "copying a staged buffer to the host's side");
        if (!stream_lock) return stream_lock.error();
        if (Result<void> opened = stream->open_handle(); !opened) return opened;
        {
            const std::lock_guard lock(mutex);
            if (!device_newer) return {};
            touch(*stream, stream->issued + 1,
                  ArgumentUse::write);  // should its wait run out: later views and the release wait
        }
        const auto host_address = reinterpret_cast<std::uintptr_t>(copied_side());
        stream->gives("the copy to the host's side");
        const platform::Status status = device->driver->memory().copy(
            host_address, device_address, bytes, platform::CopyDirection::device_to_host, stream->handle);
        position = stream->advance("the copy to the host's side");
        if (!status.ok()) return device->failure(status, "copying a staged buffer to the host's side");
    }
    if (Result<void> copied = stream->wait_until(position, deadline.left()); !copied) return copied;
    staged_bytes.fetch_add(bytes, std::memory_order_relaxed);
    const std::lock_guard lock(mutex);
    if (relay != nullptr) std::memcpy(host, relay, bytes);
    device_newer = false;
    return {};
}

Result<void> BufferState::free_memory(const std::shared_ptr<StreamState>& after) {
    if (device->bars(rules::PublicCall::end_buffer)) return device->refusal(rules::PublicCall::end_buffer);
    // The process ends, and nobody says what still runs: a kernel might reach host memory that is unmapped here (R4).
    if (driver_ended(*device)) return {};
    std::optional<Stream> behind;
    if (after) behind.emplace(after);
    // Only releases of others' memory, of a user's allocator and behind work that hangs can fail: they come first.
    const bool staged_for_others = static_cast<bool>(adopted_block);
    if (Result<void> freed = allocator.release(adopted_block, nullptr); !freed) return freed;
    adopted_block = {};
    // A user's memory is unknown before it is released: it may be somebody else's right after.
    const bool users = users_id != 0;
    if (users) device->books->ledger.leave(std::exchange(users_id, 0));
    Result<void> freed = allocator.release(block, behind ? &*behind : nullptr);
    if (!freed && !staged_for_others) {
        if (users) users_id = device->books->ledger.enter_users(block, device->index);
        return freed;
    }
    // The addresses stay: a BufferPart may still read them; its next use is refused.
    block = {};
    if (freed) freed = host_allocator.release(std::exchange(host_block, {}), nullptr);
    if (!freed)
        device->config->say(Severity::warning, composed("releasing one side of a buffer: {}", freed.error().text()));
    return {};
}

}  // namespace isthmus::inline v0::detail
