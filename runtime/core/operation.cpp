// SPDX-License-Identifier: Apache-2.0
// Operation: departure, claims, staging, and the driver call.
#include "operation.hpp"

#include "core_errors.hpp"
#include "device_state.hpp"
#include "kernel_argument.hpp"
#include "launch_access.hpp"
#include "process.hpp"
#include "recording.hpp"
#include "short_name.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// The first entry whose memory belongs to another device that is lost; `count`: none. Launches check their arguments
// before. This finds what a graph uses, and devices that were lost since.
template <class Entry>
std::size_t first_lost(const DeviceState& device, const Entry* entries, std::size_t count) {
    const auto well = [&](const BufferState& buffer) {
        const bool own = buffer.device.get() == &device && !buffer.memory->in_several;  // the common case: no call
        return own || lost_owner(device, buffer) == nullptr;
    };
    std::size_t at = 0;
    while (at < count && well(*entries[at].buffer)) ++at;
    return at;
}

}  // namespace

Operation::Operation(StreamState& stream, const char* name, const KernelInfo* kernel)
    : stream_(stream), device_(*stream.device), name_(name), kernel_(kernel) {}

void Operation::add_viewable(BufferState& buffer) {
    special_ |= buffer.memory->path == LaunchPath::stage || buffer.memory->path == LaunchPath::attach;
    viewable_.push_back(&buffer);
}

void Operation::only(const rules::ByteRange& range, const rules::ByteSpan& span) {
    if (device_.books->order != nullptr) ranges_.emplace_back(entries_.size() - 1, range);
    if (span.whole()) return;
    spans_.emplace_back(entries_.size() - 1, span);
    const BufferState& buffer = *entries_.back().buffer;
    if (buffer.views_of_parts()) parts_key_ = part_key(parts_key_, buffer, span);
}

rules::ByteSpan Operation::span_of(std::size_t entry) const noexcept {
    for (const auto& [at, span] : spans_) {
        if (at == entry) return span;
    }
    return {};
}

rules::ByteRange Operation::range_of(std::size_t entry) const noexcept {
    for (const auto& [at, range] : ranges_) {
        if (at == entry) return range;
    }
    return {};
}

Words Operation::who(std::uint32_t argument) const {
    return kernel_ == nullptr ? Words().append(name_) : argument_text(*kernel_, argument);
}

Result<std::uint64_t> Operation::issue_erased(Action action, void* erased) {
    if (const std::size_t lost = first_lost(device_, entries_.data(), entries_.size()); lost < entries_.size()) {
        return make_error<errors::operation_uses_memory_of_lost_device>(
            who(entries_[lost].argument), described(*entries_[lost].buffer), owner_is_lost, instead_of_lost);
    }
    for (;;) {
        if (special_) {
            if (Result<void> ordered = order_uploads(); !ordered) return std::move(ordered).error();
        }
        const process::OnStream here;
        const std::lock_guard lock(stream_.mutex);
        Result<bool> issued = attempt(action, erased);
        drop_waits();
        if (!issued) {
            restore_sides();
            return std::move(issued).error();
        }
        if (*issued) return position_;
        restore_sides();
        // Another thread queued an upload of one of the buffers on another stream: order that upload and try again.
    }
}

// For staged buffers that another stream uploads, and attached ones that it returns: the lock of that stream is taken
// alone, before the lock of this operation's stream.
Result<void> Operation::order_uploads() {
    for (std::size_t at = 0; at < entries_.size(); ++at) {
        BufferState& buffer = *entries_[at].buffer;
        if (Result<void> ordered = order_first_use(buffer); !ordered) return drop_waits(), std::move(ordered).error();
        const BufferSides* const sides = buffer.sides();
        if (sides == nullptr) continue;
        std::shared_ptr<StreamState> other;
        std::uint64_t position = 0;
        {
            const std::lock_guard lock(buffer.views);
            other = buffer.held(sides->brought_by());
            position = sides->brought_at();
        }
        if (!other || other.get() == &stream_ || other->reached(position)) continue;
        Result<FenceEvent*> fence = other->fence_behind(position);
        if (!fence) return drop_waits(), std::move(fence).error();
        waits_.push_back({&buffer, std::move(other), position, *fence});
    }
    return {};
}

// For memory that another stream allocated in its order: the lock of that stream is taken alone, too.
Result<void> Operation::order_first_use(BufferState& buffer) {
    Result<BufferState::Making> making = buffer.making_before_use(stream_);
    if (!making) return std::move(making).error();
    if (making->fence != nullptr) makers_.push_back(*std::move(making));
    return {};
}

// For what is kept longer than the kernel's library may stay loaded.
const KernelInfo* Operation::kept_kernel() const {
    return kernel_ == nullptr || native_ ? nullptr : &device_.books->kernels.of(*kernel_);
}

// Positions that the claim will make the stream wait for count as waited for.
OrderChecker::Attempt Operation::order_attempt() {
    OrderChecker& order = *device_.books->order;
    OrderChecker::Attempt attempt{stream_, name_, kept_kernel()};
    attempt.uses = within_;
    for (std::size_t at = 0; at < entries_.size() && within_.empty(); ++at) {
        const Entry& entry = entries_[at];
        attempt.uses.push_back({entry.buffer, entry.use, entry.argument, range_of(at)});
    }
    for (const BufferState::Making& maker : makers_) attempt.behind.join(order.before(*maker.stream, maker.position));
    for (const auto& [other, position] : behind_) attempt.behind.join(order.before(*other, position));
    for (const Upload& wait : waits_) attempt.behind.join(order.before(*wait.stream, wait.position));
    return attempt;
}

// Answers false: try again. Expects the stream's lock.
Result<bool> Operation::attempt(Action action, void* erased) {
    if (Result<void> opened = stream_.open_handle(); !opened) return std::move(opened).error();
    if (kernel_ != nullptr && !native_) name_ = stream_.name_of(*kernel_);
    if (stream_.recording != nullptr) {
        Result<HeldCapture> captured = stream_.capture();
        if (!captured) return std::move(captured).error();
        if (*captured) return record(**captured, action, erased);
    }
    if (stream_.external) {
        Result<std::uint64_t> capture = stream_.foreign_capture();
        if (!capture) return std::move(capture).error();
        if (*capture != 0) return record_elsewhere(action, erased, *capture);
    }
    // On the CPU device an operation has buffers only when it is recorded: work that runs there uses host scopes.
    if (device_.synchronous && entries_.size() != 0) return make_error<errors::capture_ended_during_recording>();
    OrderedAttempt order;
    if (OrderChecker* checker = device_.books->order.get(); checker != nullptr) {
        if (Result<void> ordered = order.begin(*checker, order_attempt()); !ordered) return std::move(ordered).error();
    }
    if (!stream_.tail.empty()) {
        // Operations on other parts of the same buffers are separated by a fence: a view of the earlier parts must not
        // wait for this operation.
        Result<void> left =
            stream_.tail_parts == parts_key_ ? stream_.depart(viewable_.data(), viewable_.size()) : stream_.fence();
        if (!left) return std::move(left).error();
    }
    // After the departure, which may return memory to the host: seeing that return does not mean seeing what this
    // operation waits for.
    if (OrderChecker* checker = device_.books->order.get(); checker != nullptr) {
        for (const auto& [other, position] : behind_) checker->waits(stream_, *other, position);
    }
    for (const BufferState::Making& maker : makers_) {
        const platform::Status status = device_.driver->execution().wait_event(stream_.handle, maker.fence->handle);
        if (!status.ok()) return device_.failure(status, "ordering the first use of pool memory");
        if (device_.books->order != nullptr) device_.books->order->waits(stream_, *maker.stream, maker.position);
    }
    Result<bool> claimed = claim();
    // The buffers are marked with this position already. Otherwise the next operation, which may not use them, would
    // get it.
    if (!claimed && touched_) stream_.advance("a refused operation");
    if (!claimed || !*claimed) return claimed;
    stream_.gives(name_);
    const platform::Status status = action(erased);
    position_ = stream_.advance(name_);
    if (!status.ok() && !native_) return device_.failure(status, short_name(name_));
    unordered_ = order.happened(position_);
    stream_.tail_parts = parts_key_;
    std::vector<BufferState*>& tail = stream_.tail;
    for (std::size_t at = 0; at < viewable_.size(); ++at) {
        if (at < tail.size() && tail[at] == viewable_[at]) continue;  // in the order that depart() found: no search
        if (std::find(tail.begin(), tail.end(), viewable_[at]) == tail.end()) tail.push_back(viewable_[at]);
    }
    if (stream_.external) stream_.fence_external();
    if (status.ok()) return true;
    // Its device's side may still be written: a later upload on another stream comes behind that.
    for (const Sides& side : sides_) {
        const std::lock_guard lock(side.buffer->views);
        side.buffer->sides()->brought(stream_, position_);
    }
    return device_.failure(status, short_name(name_));
}

// The runtime does not see the launches of a graph that other code captures: it can do nothing around a launch, and
// claims nothing.
Result<bool> Operation::record_elsewhere(Action action, void* erased, std::uint64_t capture) {
    for (std::size_t at = 0; at < entries_.size(); ++at) {
        const Entry& entry = entries_[at];
        if (Result<void> here = refuse_graph_memory(entry, capture); !here) return std::move(here).error();
        if (entry.buffer->memory->path != LaunchPath::attach && entry.buffer->memory->path != LaunchPath::stage)
            continue;
        return make_error<errors::argument_handed_over_in_foreign_capture>(who(entry.argument));
    }
    if (!makers_.empty()) return make_error<errors::unallocated_memory_in_foreign_capture>();
    for (const Entry& entry : entries_) entry.buffer->memory.exposed.store(true, std::memory_order_relaxed);
    const platform::Status status = action(erased);
    failed_in_capture_ = native_ && !status.ok();
    if (!status.ok()) return device_.failure(status, short_name(name_));
    return true;
}

Result<void> Operation::refuse_graph_memory(const Entry& entry, std::uint64_t recording) const {
    if (!entry.buffer->memory->of_graph || entry.buffer->recorded_in() == recording) return {};
    return make_error<errors::graph_memory_outside_of_graph>(who(entry.argument));
}

Error Operation::refuse_released(const Entry& entry) const {
    return make_error<errors::argument_part_of_released_buffer>(who(entry.argument));
}

// On a captured stream nothing runs: no position, no fence, no claim. What a launch of the graph will have to claim is
// recorded.
Result<bool> Operation::record(Recording& recording, Action action, void* erased) {
    if (recording.outer && closure_) return make_error<errors::host_function_in_body>();
    for (std::size_t at = 0; at < entries_.size(); ++at) {
        const Entry& entry = entries_[at];
        if (Result<void> here = refuse_graph_memory(entry, recording.id); !here) {
            return std::move(here).error();
        }
        if (entry.buffer->views.has_parts()) {
            const std::lock_guard lock(entry.buffer->views);  // a release that begins later sees the capture
            if (entry.buffer->views.released()) return refuse_released(entry);
        }
    }
    OrderChecker* const checker = device_.books->order.get();
    std::optional<OrderChecker::Attempt> ordered;
    if (checker != nullptr) {
        ordered.emplace(order_attempt());
        if (Result<void> judged = checker->judge_recorded(recording, *ordered); !judged)
            return std::move(judged).error();
    }
    RecordedOperation operation;
    operation.name = name_;
    operation.kernel = kept_kernel();
    for (std::size_t at = 0; at < entries_.size(); ++at) {
        const Entry& entry = entries_[at];
        // Memory of the graph needs no claim outside the graph.
        if (entry.buffer->memory->of_graph) continue;
        operation.uses.emplace_back(*entry.held, rules::recorded_use(entry.use, span_of(at)), entry.argument);
        operation.uses.back().range = range_of(at);
    }
    operation.closure = std::move(closure_);
    operation.code = std::move(code_);
    if (const platform::Status status = action(erased); !status.ok()) {
        // Some of the driver calls may have become nodes, and nothing can be removed from an open capture: the memory
        // that they use is kept. The operation has no place in the order.
        operation.failed = true;
        operation.stream_id = stream_.id;
        operation.device = device_.index;
        recording.operations.push_back(std::move(operation));
        failed_in_capture_ = native_;
        if (native_) recording.failed_work = name_;
        return device_.failure(status, short_name(name_));
    }
    if (checker != nullptr) checker->count(*ordered);
    unordered_ = ordered ? ordered->violations : 0;
    if (asks_for_node_) {  // without the node, only its arguments cannot be changed
        const platform::Status told = device_.driver->captures()->last_node(stream_.handle, operation.node);
        if (!told.ok()) (void)device_.failure(told, "asking which node a launch became");  // latches a sticky error
    }
    recorded_at_ = recording.add(stream_, std::move(operation));
    return true;
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

void Operation::drop_waits() {
    for (const Upload& wait : waits_) {
        if (wait.event != nullptr) device_.drop_event(wait.event);
    }
    waits_.clear();
    for (const BufferState::Making& maker : makers_) maker.stream->device->drop_event(maker.fence);
    makers_.clear();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
