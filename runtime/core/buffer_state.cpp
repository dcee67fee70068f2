// SPDX-License-Identifier: Apache-2.0
// BufferState: uses, native scopes, and what is open.
#include "buffer_state.hpp"

#include "access_rules.hpp"
#include "buffer_lanes.hpp"
#include "core_errors.hpp"
#include "device_state.hpp"
#include "error_entry.hpp"
#include "stream_state.hpp"
#include "wait_pause.hpp"

#include <isthmus/detail/host_fence.hpp>

#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

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

bool BufferState::unused() {
    const std::lock_guard lock(views);
    return unused_at_end();
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
    StreamLock of_first;
    if (first_use.viewable()) of_first = StreamLock(first->mutex, std::try_to_lock);
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
    if (empty_lanes(*device).bytes != 0 && kept()) return {};
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

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
