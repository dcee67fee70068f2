// SPDX-License-Identifier: Apache-2.0
// BufferState: uses, staging and release.
#include "buffer_state.hpp"

#include "access_rules.hpp"
#include "buffer_lanes.hpp"
#include "core_errors.hpp"
#include "cpu_use.hpp"
#include "device_state.hpp"
#include "error_entry.hpp"
#include "piece_release.hpp"
#include "state_block.hpp"
#include "stream_state.hpp"
#include "timed_lock.hpp"
#include "told.hpp"
#include "wait_pause.hpp"

#include <isthmus/detail/host_fence.hpp>
#include <isthmus/stream.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Static objects may be destroyed after the driver has ended, which then answers every call with this code.
bool driver_ended(const DeviceState& device) {
    constexpr int deinitialized = 4;  // CUDA_ERROR_DEINITIALIZED
    return device.lost_code() == deinitialized;
}

// Defers the end of a buffer that a service uses, until the service is stopped, which may be after the buffer was
// dropped. Pool memory is freed in the order of the service's stream, without a wait.
bool put_off_behind_service(BufferState* buffer) {
    if (buffer->freed_in_order()) return false;
    (void)buffer->conflicting(ArgumentUse::write);  // enters what launches stored
    for (const BufferState::Use& use : buffer->uses()) {
        StreamState& stream = *use.stream;
        if (!stream.serves.load(std::memory_order_acquire) || stream.reached(use.last)) continue;
        if (stream.device->is_lost()) continue;
        const auto again = [buffer] { end_buffer(buffer); };
        if (stream.device->services.put_off(rules::DriverUse::wait_for_service, again)) return true;
    }
    return false;
}

rules::Dropped facts_of_drop(BufferState& buffer) {
    const DeviceState& device = *buffer.device;
    const HeldBlocks blocks = buffer.blocks();
    const bool of_others =
        blocks.of_user() || buffer.memory->adopted || buffer.memory.exposed.load(std::memory_order_relaxed);
    rules::Dropped how;
    how.own_memory = blocks.any() && !of_others && rules::kept_kind(blocks.block().kind) >= 0 &&
                     !buffer.freed_in_order() && device.cache.keeps_anything();
    how.attached = buffer.memory->path == LaunchPath::attach;
    how.device_usable = device.usable();
    how.bytes = buffer.memory->bytes * (buffer.staged() ? 2 : 1);
    return how;
}

// Puts the end off until the work has ended that uses the buffer. false: the caller ends it, and may have to wait.
bool put_off_behind_work(BufferState& buffer) {
    rules::Dropped how = facts_of_drop(buffer);
    if (!how.own_memory) return false;
    const BufferState::Running running = buffer.conflicting(ArgumentUse::write);
    if (running.empty()) return false;
    how.known_uses = std::all_of(running.begin(), running.end(), [&](const BufferState::Use& use) {
        const StreamState& stream = *use.stream;
        return stream.device == buffer.device && !stream.others() && !stream.serves.load(std::memory_order_acquire);
    });
    DeviceState& device = *buffer.device;
    while (true) {
        switch (device.dropped.add(buffer, how, device.cache.limit_bytes())) {
            case rules::Ending::now: return false;
            case rules::Ending::later: return true;
            case rules::Ending::later_after_asking: end_dropped_buffers(device, true); break;
            case rules::Ending::later_after_oldest:
                if (!end_oldest_dropped_buffer(device)) return false;
                break;
        }
    }
}

void destroy(BufferState* buffer) noexcept {
    StateBlock& block = StateBlock::of(*buffer);
    block.end_state();
    part_with(block, StateBlock::without_state);
}

void end_now(BufferState* buffer) {
    if (buffer->device->config->forked()) return destroy(buffer);
    if (rest_buffer(*buffer)) return;
    if (!buffer->unused() && (put_off_behind_service(buffer) || put_off_behind_work(*buffer))) return;
    end_dropped(buffer, Wait{});
}

}  // namespace

void end_dropped(BufferState* buffer, Wait wait) {
    const std::vector<std::shared_ptr<StreamState>> standing = buffer->end(wait);
    if (standing.empty()) return destroy(buffer);
    // Refers to the buffer by an owner of its own: the state's is gone, or about to be.
    const std::shared_ptr<void> owner(nullptr, [buffer](std::nullptr_t) { destroy(buffer); });
    const std::shared_ptr<BufferState> ended(owner, buffer);
    for (const std::shared_ptr<StreamState>& stream : standing) stream->keep_until_end(ended);
}

void end_buffer(BufferState* buffer) {
    if (process::here.in_host_function &&
        !buffer->device->config->forked()) {  // the driver refuses there what this needs
        // All of it is deferred: a capture may be open by then.
        buffer->device->books->after_host_functions.put_off([buffer] { end_buffer(buffer); });
        return;
    }
    OpenCaptures& captures = buffer->device->books->captures;
    // In a forked child nothing is deferred: there the end of a buffer does nothing, and takes no lock.
    if (!captures.any() || buffer->device->config->forked()) {
        end_now(buffer);
    } else {
        captures.when_none_is_open([buffer] { end_now(buffer); });
    }
}

std::vector<std::shared_ptr<StreamState>> BufferState::end(Wait wait) {
    const bool released = !blocks().any();  // released before, perhaps behind work that still runs
    // A failure that may pass (no event available, an interrupted call) is tried again here, because no caller can; a
    // timeout is not. A lost device runs nothing any more.
    constexpr int tries = 3;
    Result<std::shared_ptr<StreamState>> after = std::shared_ptr<StreamState>();
    for (int attempt = 0; !released && attempt < tries && device->usable(); ++attempt) {
        after = part_with_uses(wait);
        if (after || after.code() == Code::timed_out) break;
    }
    if (!after && after.code() != Code::timed_out && device->is_lost()) after = std::shared_ptr<StreamState>();
    std::vector<std::shared_ptr<StreamState>> standing;
    if (!unused()) {
        (void)conflicting(ArgumentUse::write);  // enters what launches stored: a stream's tail may name this buffer
    }
    for (const Use& use : take_uses()) {  // a stream that keeps this buffer must not be kept by it
        if (!use.stream->forget(this, use.last)) standing.push_back(use.stream);
    }
    if (released) return standing;
    if (!after) {
        // The device may still write to the memory, which would be handed out again if it were released (R5). The
        // ledger keeps it until the device closes.
        if (device->config->log) {
            device->config->say(Severity::error,
                                ErrorLine().append("memory was given up: ").append(text_in_words(after.error())));
        }
    } else if (Result<void> freed = give_back(*after); !freed) {
        if (device->config->log) {
            device->config->say(Severity::warning,
                                ErrorLine().append("releasing a buffer: ").append(text_in_words(freed.error())));
        }
        blocks().leave(*device, memory->adopted);
    }
    return standing;
}

Result<std::shared_ptr<StreamState>> BufferState::part_with_uses(Wait wait) {
    if (unused()) {  // there is nothing to wait for
        if (memory.exposed.load(std::memory_order_relaxed) || device->is_lost()) exclude_from_cache();
        return std::shared_ptr<StreamState>();
    }
    const Deadline deadline(wait, device->config->wait_timeout);
    if (freed_in_order()) {
        Result<std::shared_ptr<StreamState>> gathered = gather_uses(deadline);
        const bool stands = gathered.code() == Code::timed_out || gathered.code() == Code::not_ready;
        if (stands || (gathered && *gathered)) return gathered;
    }
    if (Result<void> waited = wait_until_unused(deadline); !waited) return std::move(waited).error();
    if (!only_known_uses_ended()) exclude_from_cache();
    return std::shared_ptr<StreamState>();
}

void BufferState::exclude_from_cache() {
    device->books->ledger.exclude_from_cache(blocks().block().id);
    if (const SecondSide* const side = blocks().second()) {
        device->books->ledger.exclude_from_cache(side->host_block.id);
    }
}

// Finds a stream of this device that still uses the memory, and makes it wait for all other uses. nullptr: no such
// stream.
Result<std::shared_ptr<StreamState>> BufferState::gather_uses(const Deadline& deadline) {
    const Running running = conflicting(ArgumentUse::write);
    std::shared_ptr<StreamState> last;
    const auto consider = [&](const Use& use) {
        if (use.stream->device == device && use.stream->takes_work()) last = use.stream;
    };
    if (running.empty()) {
        const std::span<const Use> all = uses();
        std::for_each(all.begin(), all.end(), consider);
    } else {
        std::for_each(running.begin(), running.end(), consider);
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
    // The release will be submitted to this stream, but not while another thread is blocked in the driver with it.
    Wait wait = deadline.left();
    const Result<std::unique_lock<std::mutex>> lock = last->lock_within(wait, "releasing a buffer");
    return lock ? Result<std::shared_ptr<StreamState>>(last) : lock.error();
}

rules::PeerState BufferState::peer_state(const DeviceState& user) const noexcept {
    rules::PeerState state = device->books->peers.state(user.index, device->index);
    if (const PoolState* const from = pool()) state.pool_access = from->allows(user.index);
    return state;
}

void BufferState::order_on(StreamState& stream, std::uint64_t position) {
    {
        std::unique_lock lock(views, std::defer_lock);
        if (stream.device != device || !device->reaches(memory->kind)) lock.lock();  // see note_far_use()
        if (memory->host == nullptr) {
            touch_and_begin(stream, position);
        } else {
            touch(stream, position, ArgumentUse::write);
        }
        make_book().uses.order_on(stream, position);
    }
    if (device->books->order != nullptr) device->books->order->allocated(*this, stream, position);
}

Result<BufferState::Making> BufferState::making_before_use(StreamState& stream) {
    if (!ordered()) return Making{};
    Making making;
    {
        const std::lock_guard lock(views);
        StreamUses::Allocated allocated = make_book().uses.allocation_before(stream);
        making.stream = std::move(allocated.stream);
        making.position = allocated.position;
    }
    if (!making.stream) return Making{};
    Result<FenceEvent*> fence = making.stream->fence_behind(making.position);
    if (!fence) return std::move(fence).error();
    making.fence = *fence;
    return making;
}

Result<void> BufferState::wait_until_unused(const Deadline& deadline) {
    // A fence behind the last use may have queued the return of managed memory to the host: it is waited for as well.
    const int rounds = memory->path == LaunchPath::attach ? 2 : 1;
    for (int round = 0; round < rounds; ++round) {
        for (const Use& use : conflicting(ArgumentUse::write)) {
            if (use.stream->device->is_lost()) continue;
            Result<void> waited = use.stream->wait_until(use.last, deadline.left());
            if (!waited && !use.stream->device->is_lost()) return waited;
        }
    }
    return {};
}

// Whether the memory can be handed to another owner at once: the driver, whose free waits for all work, is not asked.
bool BufferState::only_known_uses_ended() {
    if (memory.exposed.load(std::memory_order_relaxed) || touched_by_loss()) return false;
    if (memory->path != LaunchPath::attach) return true;
    const std::lock_guard lock(views);
    const BufferSides& side = *sides();
    if (side.attached_to() != nullptr) return false;
    return side.brought_by() == nullptr || side.brought_by()->reached(side.brought_at());
}

bool BufferState::unused() {
    const std::lock_guard lock(views);
    return unused_at_end();
}

bool BufferState::touched_by_loss() {
    const std::lock_guard lock(views);
    const std::span<const Use> all = uses();
    return device->is_lost() ||
           std::any_of(all.begin(), all.end(), [](const Use& use) { return use.stream->device->is_lost(); });
}

void BufferState::touch(StreamState& stream, std::uint64_t position, ArgumentUse how, const rules::ByteSpan& span) {
    views.open_slowly();
    StreamUses& all = make_book().uses;
    LastUse* use = all.find(stream);
    if (use == nullptr) {
        if (all.size() > 0) forget_ended_uses();
        use = &all.add(stream);
        const DeviceState& user = *stream.device;
        if (&user != device.get() || !user.reaches(memory->kind)) note_far_use(user);
    }
    use->raise(position, how);
    // Streams in the PartBook are also among the uses, and so are alive.
    views.touch(&stream, position, how, span,
                [](const void* one, std::uint64_t end) { return static_cast<const StreamState*>(one)->reached(end); });
}

// For the suspects of a fault: memory that this device did not make, or does not reach.
void BufferState::note_far_use(const DeviceState& user) {
    if (make_extras().far.any()) return;
    user.books->far_buffers.add(*this, user.books);
}

void BufferState::forget_ended_uses() {
    enter_first_use();
    // Memory that the host may view gives up its first stream, too. Only buffers hold that one, but a thread that
    // wraps it again finds it, and stores positions with its lock alone: it stays while another thread has that. Only
    // tried, because that thread may wait for this buffer's.
    std::vector<std::shared_ptr<StreamState>> forgotten;  // end without the lock
    StreamState* const first = first_use.stream();
    std::unique_lock<std::mutex> of_first;
    if (first_use.viewable()) of_first = std::unique_lock(first->mutex, std::try_to_lock);
    const bool stays = !of_first.owns_lock();
    const BufferSides* const side = sides();
    const StreamState* const attached_to = side != nullptr ? side->attached_to() : nullptr;
    const StreamState* const brought_by = side != nullptr ? side->brought_by() : nullptr;
    forgotten = make_book().uses.forget_ended({stays ? first : nullptr, attached_to, brought_by});
    for (const std::shared_ptr<StreamState>& ended : forgotten) {
        views.forget(ended.get());
        if (ended.get() == first) first_use.end();
    }
}

BufferBook& BufferState::first_book() {
    return views.out_of_line.make_book(device->buffer_books.get());
}

BufferExtras& BufferState::make_extras() {
    return views.out_of_line.make_extras(device->buffer_books.get(), device->buffer_extras.get());
}

std::string_view BufferState::reason() const noexcept {
    return device->reasons.text(memory->reason);
}

// The device's own pool stays, and most pool memory comes from it: only other pools are noted.
const PoolState* BufferState::pool() const noexcept {
    if (!rules::is_pooled(memory->kind)) return nullptr;
    const BufferExtras* const noted = extras();
    return noted != nullptr && noted->of_other_pool ? noted->pool.get() : device->pools.own_so_far(memory->kind);
}

void BufferState::drop_seams_from(std::size_t byte) noexcept {
    if (BufferExtras* const found = views.out_of_line.extras()) found->drop_seams_from(byte);
}

// What the first stream's launches stored without the lock. The fence pairs with that of claim_in_place(): a launch
// that did not see this thread's lock is seen here.
void BufferState::enter_first_use() {
    StreamState* const stream = first_use.stream();
    if (stream == nullptr) return;
    if (first_use.viewable()) host_fence<std::memory_order_seq_cst>();
    touch(*stream, first_use.position(), first_use.use());
}

Error BufferState::refuse_released(const char* what) const {
    return make_error<errors::part_used_after_release>(what);
}

Result<void> BufferState::begin_release() {
    const std::lock_guard lock(views);
    if (views.begin_release()) return {};
    if (const OpenUse open = views.open_against(ArgumentUse::write); open.native != nullptr) {
        return make_error<errors::release_while_native_scope_is_open>(open.native);
    }
    return make_error<errors::release_while_host_view_is_open>();
}

Result<void> BufferState::begin_native(const void* scope, std::string_view argument, const OpenUse& use,
                                       bool beside_views) {
    if (Result<void> room = may_have_parts("opening a native scope"); !room) return room;
    const std::lock_guard lock(views);
    if (views.released()) return refuse_released("opening a native scope");
    (void)make_extras();
    if (!beside_views && host_forbids(use.use, use.span, scope)) {
        return refuse_at_host(argument, use.use, use.span, scope);
    }
    views.mark(scope, use, device->buffer_parts.get());
    first_use.hold_back(true);
    return {};
}

void BufferState::end_native(const void* scope) noexcept {
    views.unmark(scope);
    const std::lock_guard lock(views);
    first_use.hold_back(views.marked());
}

Result<void> BufferState::touch_parted(StreamState& stream, std::uint64_t position) {
    const std::lock_guard lock(views);
    if (views.released()) return refuse_released("using it on a device");
    touch(stream, position, ArgumentUse::write);
    if (!memory->in_several) first_use.begin(stream, position);  // lets launches of the whole buffer take the fast path
    return {};
}

void BufferState::touch_and_begin(StreamState& stream, std::uint64_t position) {
    touch(stream, position, ArgumentUse::write);
    if (!memory->in_several) first_use.begin(stream, position);
}

void BufferState::touch_locked(StreamState& stream, std::uint64_t position) {
    const std::lock_guard lock(views);
    touch_and_begin(stream, position);
}

Result<void> BufferState::fill_relay() {
    if (relay() == nullptr) return {};
    {
        const std::lock_guard lock(views);
        if (!sides()->relay_stale()) return {};
    }
    if (Result<void> begun = begin_cpu_use(*this, platform::os::CpuUse::read); !begun) return begun;
    std::memcpy(relay(), memory->host, memory->bytes);
    end_cpu_use(*this, platform::os::CpuUse::read);
    const std::lock_guard lock(views);
    sides()->relay_filled();
    return {};
}

// Whether a sealed scope finds what a first part or native scope takes. What rests in lanes has extras, too. Expects no
// lock.
Result<void> BufferState::may_have_parts(std::string_view what) {
    if (device->sealed_by() == nullptr) return {};
    const auto kept = [this] {
        const std::lock_guard lock(views);
        const BufferExtras* const there = extras();
        if (there != nullptr && there->parts != nullptr) return true;
        return (there != nullptr || device->buffer_extras->any_idle()) && device->buffer_parts->any_idle();
    };
    if (kept()) return {};
    if (empty_lanes(*device) != 0 && kept()) return {};
    return device->allow_now(SealedAct::use_heap, "operator new", what);
}

Result<void> BufferState::make_parted() {
    if (!views_of_parts()) return views.note_part(), Result<void>();
    if (!views.parted()) {
        if (Result<void> room = may_have_parts("making a part of a buffer"); !room) return room;
    }
    views.note_part();
    const std::lock_guard lock(views);
    enter_first_use();
    (void)make_extras();
    views.make_parted(uses(), device->buffer_parts.get());
    return {};
}

rules::ByteSpan touched(const BufferState& buffer, const rules::ByteRange& range) noexcept {
    if (!buffer.views.parted() || range.width == 0) return {};
    return {range.offset, range.end()};
}

rules::ByteSpan span_of(const BufferState& buffer, std::size_t first_byte, std::size_t bytes) noexcept {
    if (first_byte == 0 && bytes == buffer.memory->bytes) return {};
    return {first_byte, first_byte + bytes};
}

AccessAnswer BufferState::concurrent_access() const {
    if (dma_buf() != nullptr) {
        return {Verdict::no, "the memory is a dma-buf, whose caches the kernel keeps coherent between uses only",
                "take turns by host views, or copy into a buffer of allocate_shared()"};
    }
    return rules::concurrent_view(device->capabilities, memory->kind, memory->path, memory->io_memory);
}

bool BufferState::host_forbids(ArgumentUse use, const rules::ByteSpan& span, const void* own) const noexcept {
    if (memory->read_only && rules::writes(use)) return true;
    return static_cast<bool>(views.open_against(use, span, own));
}

Error BufferState::refuse_at_host(std::string_view argument, ArgumentUse use, const rules::ByteSpan& span,
                                  const void* own) const {
    const std::string_view deed = rules::deed(use);
    if (memory->read_only && rules::writes(use)) {
        return make_error<errors::argument_writes_read_only_memory>(argument, deed);
    }
    const OpenUse open = views.open_against(use, span, own);
    if (open.native != nullptr) {
        return make_error<errors::argument_in_native_scope>(argument, deed, rules::text(span, "a buffer"), open.native,
                                                            rules::purpose(open.use));
    }
    const char* remedy = "let the host view go out of scope before the launch";
    if (use == ArgumentUse::concurrent) {
        remedy = "let the host view go out of scope before the launch, or open it with concurrent_on_host()";
    } else if (open.use == ArgumentUse::concurrent) {
        remedy =
            "let the concurrent view go out of scope first; only a kernel that takes it as an AtomicView runs "
            "beside one";
    }
    const Words buffer = rules::text(span, "a buffer");
    const std::string_view purpose = rules::purpose(open.use);
    if (open.span.whole()) return make_error<errors::argument_open_on_host>(argument, deed, buffer, purpose, remedy);
    return make_error<errors::argument_open_on_host_in_part>(argument, deed, buffer, rules::text(open.span, "it"),
                                                             purpose, remedy);
}

// An observed runtime opens no view at once, because open_at_once() tells nobody; nor does close_view() of such a view.
bool BufferState::opens_at_once() const noexcept {
    if (memory->host == nullptr || staged() || dma_buf() != nullptr || !views.plain()) return false;
    const BufferBook* const book = views.out_of_line.book();
    return (book == nullptr || book->uses.all_ended()) && !device->observer();
}

ObservedFacts BufferState::observed() const noexcept {
    ObservedFacts facts = device->observed();
    facts.bytes = memory->bytes;
    facts.address =
        memory->device_address != 0 ? memory->device_address : reinterpret_cast<std::uintptr_t>(memory->host);
    facts.kind = memory->kind;
    facts.reason = reason();
    return facts;
}

ObservedFacts BufferState::observed(const StreamState& stream, std::uint64_t position) const noexcept {
    ObservedFacts facts = observed();
    facts.device = static_cast<std::uint32_t>(stream.device->index);
    facts.stream = stream.id;
    facts.position = position;
    return facts;
}

BufferState::Running BufferState::conflicting(ArgumentUse host_use, const rules::ByteSpan& span) {
    const std::lock_guard lock(views);
    return conflicting_locked(host_use, span);
}

BufferState::Running BufferState::conflicting_locked(ArgumentUse host_use, const rules::ByteSpan& span) {
    enter_first_use();
    const BufferBook* const book = views.out_of_line.book();
    if (book == nullptr) return {};
    return book->uses.running(host_use, [&](const Use& use) { return views.last_use(use.stream.get(), use, span); });
}

Result<void> BufferState::wait_for_uses(ArgumentUse host_use, Wait wait, const rules::ByteSpan& span) {
    return wait_for_uses(conflicting(host_use, span), host_use, wait);
}

Result<void> BufferState::wait_for_uses(const Running& found, ArgumentUse host_use, Wait wait) {
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
    // A second view waits for the first one's copy, within its own deadline.
    const std::unique_lock one_at_a_time =
        lock_within(blocks().downloading(), wait, device->config->wait_timeout, device->config->wait_policy);
    if (!one_at_a_time.owns_lock()) {
        return make_error_as<errors::content_copied_for_another_view>(wait.refuse ? Code::not_ready : Code::timed_out);
    }
    {
        const std::lock_guard lock(views);
        if (!sides()->device_newer()) return {};
    }
    if (wait.refuse) {
        return make_error<errors::content_on_device_side>();
    }
    // First waits for all writers, on any stream; the one copy then needs no order with them.
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
            const std::lock_guard lock(views);
            if (!sides()->device_newer()) return {};
            // If the wait for this copy runs out, later views and the release wait for the copy.
            touch(*stream, stream->issued + 1, ArgumentUse::write);
        }
        const auto host_address = reinterpret_cast<std::uintptr_t>(copied_side());
        stream->gives("the copy to the host's side");
        const platform::Status status =
            device->driver->memory().copy(host_address, memory->device_address, memory->bytes,
                                          platform::CopyDirection::device_to_host, stream->handle);
        position = stream->advance("the copy to the host's side");
        if (!status.ok()) return device->failure(status, "copying a staged buffer to the host's side");
    }
    device->observer().mark(Mark::download, "the copy to the host's side", [&] { return observed(*stream, position); });
    if (Result<void> copied = stream->wait_until(position, deadline.left()); !copied) return copied;
    sides()->count_copied(memory->bytes);
    device->books->launches.count_download(memory->bytes);
    if (relay() != nullptr) {
        // Also for reading: the first and the last line of caches may hold bytes of others.
        constexpr platform::os::CpuUse use = platform::os::CpuUse::read_write;
        if (Result<void> begun = begin_cpu_use(*this, use); !begun) return begun;
        std::memcpy(memory->host, relay(), memory->bytes);
        end_cpu_use(*this, use);
    }
    const std::lock_guard lock(views);
    sides()->copied_to_host();
    return {};
}

Result<void> BufferState::give_back(const std::shared_ptr<StreamState>& after) {
    if (device->bars(rules::PublicCall::end_buffer)) return device->refusal(rules::PublicCall::end_buffer);
    // The process is ending, and nothing reports what still runs: a kernel might access host memory that is unmapped
    // here (R4).
    if (driver_ended(*device)) return {};
    if (device->observer()) [[unlikely]]
        tell_gone(*this);
    std::optional<Stream> behind;
    if (after) behind.emplace(after);
    // The addresses stay: a BufferPart may still read them; its next use is refused.
    return blocks().give_back(*device, behind ? &*behind : nullptr);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
