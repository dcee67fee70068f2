// SPDX-License-Identifier: Apache-2.0
// What an operation claims before the driver call: its buffers, uploads of staged ones, attachments, prefetches.
#include "operation.hpp"

#include "core_errors.hpp"
#include "device_state.hpp"
#include "kernel_argument.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <mutex>

namespace isthmus {
inline namespace v0 {
namespace detail {

rules::ByteSpan Operation::span_of(std::size_t entry) const noexcept {
    for (const auto& [at, span] : spans_) {
        if (at == entry) return span;
    }
    return {};
}

// Called before anything is claimed, so that a refusal leaves no trace on the other buffers.
Result<void> Operation::refuse_views() const {
    for (std::size_t at = 0; at < entries_.size(); ++at) {
        BufferState& buffer = *entries_[at].buffer;
        if (buffer.memory->of_graph) return refuse_graph_memory(entries_[at], 0);
        if (buffer.memory->host == nullptr && !buffer.views.seen().any_open()) continue;
        // A check without the lock; claim() repeats it under the lock.
        if (!buffer.views.seen().any_open() && !buffer.views.released() && !buffer.memory->read_only) continue;
        const std::lock_guard lock(buffer.views);
        if (Result<void> open = refuse_views(at); !open) return open;
    }
    return {};
}

// Expects the buffer's lock.
Result<void> Operation::refuse_views(std::size_t entry) const {
    const auto& [buffer, asked, argument, held] = entries_[entry];
    if (buffer->views.released()) return refuse_released(entries_[entry]);
    const rules::ByteSpan part = span_of(entry);
    // While the memory is attached to a stream, even a read by the host is a fault (89=0).
    const ArgumentUse against = buffer->memory->path == LaunchPath::attach
                                    ? ArgumentUse::read_write
                                    : rules::claimed_use(asked, buffer->memory->path, part);
    const rules::ByteSpan span = rules::claimed_span(buffer->memory->path, part);
    if (!buffer->host_forbids(against, span, scope_)) return {};
    return buffer->refuse_at_host(who(argument), against, span, scope_);
}

// Marks every buffer as used at the position that the operation will have: a host view that opens from now on waits for
// it.
Result<bool> Operation::claim() {
    touched_ = false;
    if (entries_.size() > 1) {
        if (Result<void> closed = refuse_views(); !closed) return std::move(closed).error();
    }
    for (std::size_t at = 0; at < entries_.size(); ++at) {
        const Entry& entry = entries_[at];
        BufferState& buffer = *entry.buffer;
        if (buffer.memory->of_graph) return refuse_graph_memory(entry, 0).error();
        if (buffer.memory->host == nullptr) {
            if (buffer.views.seen().any_open()) {  // a native scope
                const std::lock_guard lock(buffer.views);
                if (Result<void> closed = refuse_views(at); !closed) return std::move(closed).error();
            }
            if (!buffer.views.has_parts()) {
                buffer.touch_device_only(stream_, stream_.issued + 1);
            } else if (Result<void> there = buffer.touch_parted(stream_, stream_.issued + 1); !there) {
                return refuse_released(entry);
            }
            touched_ = true;
            continue;
        }
        std::unique_lock lock(buffer.views);
        // Again, under the lock: another thread may have opened a view meanwhile.
        if (Result<void> closed = refuse_views(at); !closed) return std::move(closed).error();
        const rules::ByteSpan part = span_of(at);
        const ArgumentUse use = rules::claimed_use(entry.use, buffer.memory->path, part);
        const rules::ByteSpan span = rules::claimed_span(buffer.memory->path, part);
        if (buffer.memory->path == LaunchPath::stage) {
            Result<bool> staged = claim_staged(buffer, lock);
            if (!staged || !*staged) return staged;
        } else if (buffer.memory->path == LaunchPath::attach && buffer.sides()->attached_to() != &stream_) {
            Result<bool> attached = claim_attached(buffer, lock);
            if (!attached || !*attached) return attached;
        } else if (buffer.prefetched_for(use, span)) {  // otherwise both sides use the pages: the driver places them
            prefetch(buffer, use, span, lock);
        }
        if (!lock.owns_lock()) lock.lock();
        buffer.touch(stream_, stream_.issued + 1, use, span);
        touched_ = true;
    }
    return true;
}

// The combined use of a staged buffer, which may be several arguments.
ArgumentUse Operation::use_of_all(const BufferState& staged) const noexcept {
    bool reading = false;
    bool writing = false;
    for (std::size_t at = 0; at < entries_.size(); ++at) {
        const Entry& entry = entries_[at];
        if (entry.buffer != &staged) continue;
        const ArgumentUse use = rules::claimed_use(entry.use, staged.memory->path, span_of(at));
        reading |= reads(use);
        writing |= writes(use);
    }
    return !writing ? ArgumentUse::read : reading ? ArgumentUse::read_write : ArgumentUse::write;
}

// Driver and system calls of a claim are made without the buffer's lock (`held`, which may come back released), because
// views have deadlines. By then the use is entered, and a view that opens waits for it.
Result<bool> Operation::claim_staged(BufferState& buffer, std::unique_lock<OpenViews>& held) {
    const auto known = [&](const Sides& side) { return side.buffer == &buffer; };
    if (std::any_of(sides_.begin(), sides_.end(), known)) return true;
    const ArgumentUse use = use_of_all(buffer);
    // Also before a further upload: one that a refused operation left elsewhere must not land behind ours.
    if (buffer.sides()->brought_elsewhere(stream_)) {
        Result<bool> waited = wait_for_upload(buffer);
        if (!waited || !*waited) return waited;
    }
    const BufferSides::Claimed claimed = buffer.sides()->claim(use);
    sides_.push_back({&buffer, claimed.before});
    if (!claimed.uploads) return true;
    const std::uint64_t position = stream_.issued + 1;
    buffer.sides()->brought(stream_, position);
    buffer.touch(stream_, position, use);
    held.unlock();
    if (Result<void> filled = buffer.fill_relay(); !filled) {
        stream_.advance("a refused operation");  // the buffer names the position
        return std::move(filled).error();
    }
    stream_.gives("the copy to the device's side");
    const platform::Status status = device_.driver->memory().copy(
        buffer.memory->device_address, reinterpret_cast<std::uintptr_t>(buffer.copied_side()), buffer.memory->bytes,
        platform::CopyDirection::host_to_device, stream_.handle);
    stream_.advance("the copy to the device's side");
    if (!status.ok()) return device_.failure(status, "copying a staged buffer to the device's side");
    buffer.sides()->count_copied(buffer.memory->bytes);
    staged_bytes_ += buffer.memory->bytes;
    device_.books->launches.count_upload(buffer.memory->bytes);
    device_.observer().mark(Mark::upload, name_, [&] { return buffer.observed(stream_, position); });
    return true;
}

Result<bool> Operation::wait_for_upload(const BufferState& buffer) {
    for (const Upload& wait : waits_) {
        if (wait.buffer != &buffer || wait.stream.get() != buffer.sides()->brought_by() ||
            wait.position != buffer.sides()->brought_at() || wait.event == nullptr) {
            continue;
        }
        const platform::Status status = device_.driver->execution().wait_event(stream_.handle, wait.event->handle);
        if (!status.ok()) return device_.failure(status, "ordering a buffer behind its upload or return");
        if (device_.books->order != nullptr) device_.books->order->waits(stream_, *wait.stream, wait.position);
        return true;
    }
    return buffer.sides()->brought_by()->reached(buffer.sides()->brought_at());
}

// Phase-guarded managed memory (89=0) belongs to one stream at a time (cuStreamAttachMemAsync, SINGLE). The previous
// stream has only queued its return: executed later, it would take the memory away from this operation.
Result<bool> Operation::claim_attached(BufferState& buffer, std::unique_lock<OpenViews>& held) {
    if (buffer.sides()->attached_to() != nullptr) {
        return make_error<errors::managed_memory_of_another_stream>();
    }
    if (buffer.sides()->brought_elsewhere(stream_)) {
        Result<bool> waited = wait_for_upload(buffer);
        if (!waited || !*waited) return waited;
    }
    // An operation of its own: even if this operation is refused, the next fence returns the memory, and views wait for
    // that.
    buffer.sides()->attach(stream_);
    touched_ = true;
    buffer.touch(stream_, stream_.issued + 1, ArgumentUse::write);
    held.unlock();
    stream_.gives("the attachment of managed memory");
    const platform::Status status =
        device_.driver->memory().attach(buffer.whole(), platform::Attachment::stream, stream_.handle);
    if (!status.ok()) {
        held.lock();
        buffer.sides()->detach();
        return device_.failure(status, "attaching managed memory to a stream");
    }
    const std::uint64_t position = stream_.advance("the attachment of managed memory");
    stream_.tail.push_back(&buffer);
    device_.observer().mark(Mark::attach, name_, [&] { return buffer.observed(stream_, position); });
    return true;
}

// Managed pages may have migrated to the host: one prefetch replaces a fault for each page (H200: 51 GB/s against 7.8).
// It is a hint: if it fails, the kernel fetches the pages that it touches.
void Operation::prefetch(BufferState& buffer, ArgumentUse use, const rules::ByteSpan& span,
                         std::unique_lock<OpenViews>& held) {
    platform::Transfers* transfers = device_.driver->transfers();
    if (transfers == nullptr) return;
    buffer.views.moved_to_device(span);
    buffer.touch(stream_, stream_.issued + 1, use, span);  // before other threads can see it
    held.unlock();
    stream_.gives("a prefetch of managed memory");
    const platform::Status status = transfers->prefetch(buffer.memory->device_address + span.begin,
                                                        std::min(span.end, buffer.memory->bytes) - span.begin,
                                                        {device_.driver->facts().ordinal, -1}, stream_.handle);
    LaunchBooks& books = device_.books->launches;
    (status.ok() ? books.prefetches : books.failed_hints).fetch_add(1, std::memory_order_relaxed);
    if (!status.ok()) {
        (void)device_.failure(status, "prefetching managed memory");  // latches a sticky error
        return;
    }
    // An operation of its own: a release waits for it even if this operation is refused.
    const std::uint64_t position = stream_.advance("a prefetch of managed memory");
    device_.observer().mark(Mark::prefetch, name_, [&] { return buffer.observed(stream_, position); });
    held.lock();
    buffer.touch(stream_, position, ArgumentUse::write, span);
}

// An operation that did not happen changed neither side; a side that was uploaded for it is uploaded again next time.
void Operation::restore_sides() {
    for (const Sides& side : sides_) {  // one per buffer
        const std::lock_guard lock(side.buffer->views);
        side.buffer->sides()->restore(side.before);
    }
    sides_.clear();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
