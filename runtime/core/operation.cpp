// SPDX-License-Identifier: Apache-2.0
// Operation: departure, order, and the driver call.
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

Result<void> Operation::refuse_graph_memory(const Entry& entry, std::uint64_t recording) const {
    if (!entry.buffer->memory->of_graph || entry.buffer->recorded_in() == recording) return {};
    return make_error<errors::graph_memory_outside_of_graph>(who(entry.argument));
}

Error Operation::refuse_released(const Entry& entry) const {
    return make_error<errors::argument_part_of_released_buffer>(who(entry.argument));
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
