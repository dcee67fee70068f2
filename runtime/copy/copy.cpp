// SPDX-License-Identifier: Apache-2.0
// Stream::copy: checks the request, chooses the stream that can carry the copy, and gives the copy to the driver.
#include "copy.hpp"

#include "access_rules.hpp"
#include "buffer_state.hpp"
#include "copy_checks.hpp"
#include "copy_errors.hpp"
#include "current_scopes.hpp"
#include "device_state.hpp"
#include "launch_access.hpp"
#include "memory_pool_state.hpp"
#include "operation.hpp"
#include "stream_state.hpp"
#include "told.hpp"
#include "uncaptured_scope.hpp"

#include <isthmus/stream.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

bool reaches_other(const DeviceState& device, const BufferState& buffer) {
    const DeviceState& owner = *buffer.device;
    if (buffer.memory->path == LaunchPath::stage || buffer.memory->path == LaunchPath::attach) return false;
    if (may_be_mapped(buffer.memory->kind)) return buffer_access(device, buffer).verdict == Verdict::yes;
    return rules::peer_access(device.capabilities, owner.capabilities, buffer.memory->kind, buffer.peer_state(device))
               .verdict == Verdict::yes;
}

bool foreign(const StreamState& stream, const BufferState& buffer) {
    return buffer.device != stream.device && !buffer.device->synchronous;
}

// Makes the stream wait for conflicting uses of the buffer on other streams. The host does not wait.
Result<void> wait_for_users(StreamState& stream, BufferState& buffer, bool writes) {
    for (const BufferState::Use& use : buffer.conflicting(writes ? ArgumentUse::write : ArgumentUse::read)) {
        if (use.stream.get() == &stream) continue;
        if (Result<void> ordered = order_behind(stream, *use.stream); !ordered) return ordered;
    }
    return {};
}

// Streams of the buffer's own device that used it.
std::vector<std::shared_ptr<StreamState>> own_users(StreamState& stream, BufferState& buffer) {
    std::vector<std::shared_ptr<StreamState>> users;
    const std::lock_guard lock(buffer.views);
    for (const BufferState::Use& use : buffer.uses()) {
        if (use.stream.get() != &stream && use.stream->device == buffer.device) users.push_back(use.stream);
    }
    return users;
}

// Makes later work on the streams of the buffer's own device that used the buffer wait for the copy.
Result<void> hold_users_back(StreamState& stream, BufferState& buffer) {
    for (const std::shared_ptr<StreamState>& user : own_users(stream, buffer)) {
        if (!user->takes_work()) continue;  // it takes no more work, or other code captures it
        if (Result<void> ordered = order_behind(*user, stream); !ordered) return ordered;
    }
    return {};
}

// Called before anything changes: a captured stream cannot be made to wait for the copy.
Result<void> refuse_captured_users(StreamState& stream, BufferState& buffer) {
    for (const std::shared_ptr<StreamState>& user : own_users(stream, buffer)) {
        if (!user->takes_work()) continue;
        const std::lock_guard lock(user->mutex);
        Result<void> free = user->refuse_captured("a stream that used memory of a copy between devices had to wait");
        if (!free) return free;
    }
    return {};
}

// Memory of another GPU: orders the stream after its users. The owner first claims staged or attached memory, on a
// stream of its own. `bytes`: those of the buffer that the copy touches.
Result<void> order_before(StreamState& stream, const std::shared_ptr<BufferState>& held, bool writes,
                          const rules::ByteRange& bytes) {
    BufferState& buffer = *held;
    if (!foreign(stream, buffer)) return {};
    if (buffer.staged() || buffer.memory->path == LaunchPath::attach) {
        const std::shared_ptr<StreamState> own = carrier_stream(*buffer.device);
        if (Result<void> ordered = wait_for_users(*own, buffer, writes); !ordered) return ordered;
        Operation claim(*own, "the claim of a copy between devices", nullptr);
        claim.uses(held, writes ? ArgumentUse::read_write : ArgumentUse::read, 0);
        claim.only(bytes);
        Result<std::uint64_t> claimed = claim.issue([] { return platform::Status{}; });
        if (!claimed) return std::move(claimed).error();
        return order_behind(stream, *own);
    }
    return wait_for_users(stream, buffer, writes);
}

Result<void> order_after(StreamState& stream, BufferState& buffer) {
    return foreign(stream, buffer) ? hold_users_back(stream, buffer) : Result<void>();
}

// A graph records only copies that are driver calls of its own stream.
Result<UncapturedScope> enter_unrecorded(StreamState& stream) {
    return UncapturedScope::enter(stream, "a copy that the host or another device takes part in was asked for");
}

Result<void> issue_copy(StreamState& stream, const CopyJob& job, const DriverCopy& copy) {
    BufferState* const to = job.to.buffer.get();
    BufferState* const from = job.from.buffer.get();
    Operation operation(stream, "a copy", nullptr);
    if (to == from) {
        operation.uses(job.to.buffer, ArgumentUse::read_write, 0);
    } else {
        if (from != nullptr) {
            operation.uses(job.from.buffer, ArgumentUse::read, 0);
            operation.only(bytes_of(job.shape, job.shape.from));
        }
        if (to != nullptr) {
            operation.uses(job.to.buffer, writes_whole(*to, job.shape) ? ArgumentUse::write : ArgumentUse::read_write,
                           1);
            operation.only(bytes_of(job.shape, job.shape.to));
        }
    }
    Result<std::uint64_t> issued = operation.issue([&] { return give_to_driver(stream, copy, job.shape); });
    return issued ? Result<void>() : std::move(issued).error();
}

Result<void> by_driver(StreamState& stream, const CopyJob& job, const DriverCopy& copy) {
    BufferState* const to = job.to.buffer.get();
    BufferState* const from = job.from.buffer.get();
    for (BufferState* const side : {from, to}) {
        if (side == nullptr || !foreign(stream, *side)) continue;
        if (Result<void> free = refuse_captured_users(stream, *side); !free) return free;
    }
    if (from != nullptr) {
        if (Result<void> ordered = order_before(stream, job.from.buffer, false, bytes_of(job.shape, job.shape.from));
            !ordered)
            return ordered;
    }
    if (to != nullptr) {
        if (Result<void> ordered = order_before(stream, job.to.buffer, true, bytes_of(job.shape, job.shape.to));
            !ordered)
            return ordered;
    }
    if (Result<void> issued = issue_copy(stream, job, copy); !issued) return issued;
    for (BufferState* const side : {from, to}) {
        if (side == nullptr) continue;
        if (Result<void> ordered = order_after(stream, *side); !ordered) return ordered;
    }
    return {};
}

// On a captured stream of the CPU device: each launch of the graph opens both sides as host views. The caller's memory
// has to live as long as the graph.
Result<void> record_on_host(StreamState& stream, const CopyJob& job) {
    DriverCopy copy;
    copy.to_host = copy.from_host = true;
    copy.direction = platform::CopyDirection::host_to_host;
    copy.to = driver_address(job.to, true) + job.shape.to.offset;
    copy.from = driver_address(job.from, true) + job.shape.from.offset;
    return issue_copy(stream, job, copy);
}

Result<void> carry(StreamState& stream, const CopyJob& job) {
    const rules::CopySideFacts to = facts_of(*stream.device, job.to);
    const rules::CopySideFacts from = facts_of(*stream.device, job.from);
    const bool recorded = stream.recording_id() != 0;
    const rules::CopyPlan plan = recorded ? rules::plan_recorded_copy(stream.device->synchronous, to, from)
                                          : rules::plan_copy(stream.device->synchronous, to, from);
    if (plan.path == CopyPath::on_host && stream.device->synchronous && recorded) return record_on_host(stream, job);
    const auto far = [&](const CopySide& side) { return side.buffer && foreign(stream, *side.buffer); };
    std::optional<UncapturedScope> uncaptured;
    if (plan.path != CopyPath::driver || far(job.to) || far(job.from)) {
        Result<UncapturedScope> entered = enter_unrecorded(stream);
        if (!entered) return std::move(entered).error();
        uncaptured.emplace(std::move(entered).value());
    }
    DriverCopy copy;
    switch (plan.path) {
        case CopyPath::refuse: return make_error<errors::copy_refused>(plan.reason, plan.remedy);
        case CopyPath::on_host: return copy_on_host(job);
        case CopyPath::bounce_up: return bounce_up(stream, job);
        case CopyPath::bounce_down: return bounce_down(stream, job);
        case CopyPath::between_devices:
            copy.between = true;
            copy.to_ordinal = job.to.buffer->device->driver->facts().ordinal;
            copy.from_ordinal = job.from.buffer->device->driver->facts().ordinal;
            break;
        case CopyPath::driver: copy.direction = plan.direction; break;
    }
    copy.to_host = rules::is_host_memory(to);
    copy.from_host = rules::is_host_memory(from);
    copy.to = driver_address(job.to, copy.to_host) + job.shape.to.offset;
    copy.from = driver_address(job.from, copy.from_host) + job.shape.from.offset;
    return by_driver(stream, job, copy);
}

}  // namespace

rules::CopySideFacts facts_of(const DeviceState& carrier, const CopySide& side) {
    rules::CopySideFacts facts;
    if (!side.buffer) {
        facts.kind = side.span_kind;
        facts.owner = rules::CopyOwner::caller;
        facts.reached = carrier.reaches(side.span_kind);
        return facts;
    }
    const BufferState& buffer = *side.buffer;
    facts.kind = buffer.memory->kind;
    facts.path = buffer.memory->path;
    if (buffer.device.get() == &carrier) {
        facts.owner = rules::CopyOwner::same;
        facts.reached = carrier.reaches(buffer.memory->kind);
    } else if (buffer.device->synchronous) {
        facts.owner = rules::CopyOwner::cpu_device;
        facts.reached = carrier.reaches(MemoryKind::host);
    } else {
        facts.owner = rules::CopyOwner::other_gpu;
        facts.reached = reaches_other(carrier, buffer);
    }
    return facts;
}

std::uint64_t driver_address(const CopySide& side, bool host_memory) {
    if (!side.buffer) return side.span;
    // The host's own address: the device may have another address for the same memory (K23).
    return host_memory ? reinterpret_cast<std::uintptr_t>(side.buffer->memory->host)
                       : side.buffer->memory->device_address;
}

bool writes_whole(const BufferState& buffer, const rules::CopyShape& shape) {
    return shape.rows == 1 && shape.slices == 1 && shape.width == buffer.memory->bytes;
}

rules::ByteRange bytes_of(const rules::CopyShape& shape, const rules::CopyStride& side) noexcept {
    return {side.offset, shape.width, shape.rows, shape.slices, side.row, side.slice};
}

Result<void> order_behind(StreamState& later, StreamState& earlier) {
    std::uint64_t position = 0;
    Result<FenceEvent*> fence = earlier.fence_behind_all(position);
    if (!fence) return std::move(fence).error();
    if (*fence == nullptr) return {};
    Result<void> waits = later.wait_behind((*fence)->handle, earlier, position);
    earlier.device->drop_event(*fence);
    return waits;
}

std::shared_ptr<StreamState> carrier_stream(DeviceState& device) {
    const std::lock_guard lock(device.copies.mutex);
    std::shared_ptr<StreamState> stream = device.copies.carrier.lock();
    if (!stream) {
        stream = StreamState::make(device.shared_from_this(), 0);
        device.copies.carrier = stream;
        device.add_stream(stream);
    }
    return stream;
}

Result<void> run_copy(StreamState& stream, const CopyJob& job) {
    const rules::CopyCarrier carrier = rules::copy_carrier(stream.device->synchronous, facts_of(*stream.device, job.to),
                                                           facts_of(*stream.device, job.from));
    if (carrier == rules::CopyCarrier::stream) return carry(stream, job);
    const Result<UncapturedScope> uncaptured = enter_unrecorded(stream);
    if (!uncaptured) return uncaptured.error();
    const CopySide& side = carrier == rules::CopyCarrier::owner_of_destination ? job.to : job.from;
    DeviceState& owner = *side.buffer->device;
    const std::shared_ptr<StreamState> own = carrier_stream(owner);
    const auto on_owners_side = [&](auto act) -> Result<void> {
        for (const CopySide* const one : {&job.from, &job.to}) {
            if (!one->buffer || one->buffer->device.get() != &owner) continue;
            if (Result<void> done = act(*one->buffer, one == &job.to); !done) return done;
        }
        return {};
    };
    Result<void> ordered =
        on_owners_side([&](BufferState& buffer, bool) { return refuse_captured_users(*own, buffer); });
    if (!ordered) return ordered;
    ordered = on_owners_side([&](BufferState& buffer, bool writes) { return wait_for_users(*own, buffer, writes); });
    if (ordered) ordered = order_behind(*own, stream);
    if (!ordered) return ordered;
    if (Result<void> carried = carry(*own, job); !carried) return carried;
    if (stream.device->synchronous) return Stream(own).synchronize();  // a call on the CPU device includes its work
    ordered = on_owners_side([&](BufferState& buffer, bool) { return hold_users_back(*own, buffer); });
    return ordered ? order_behind(stream, *own) : ordered;
}

namespace {
// By which way a copy goes: as the device plans it that carries it.
rules::CopyPlan copy_plan_of(const StreamState& stream, const CopySide& to, const CopySide& from) {
    const DeviceState* device = stream.device.get();
    const auto facts = [&](const CopySide& side) { return facts_of(*device, side); };
    const rules::CopyCarrier carrier = rules::copy_carrier(device->synchronous, facts(to), facts(from));
    if (carrier == rules::CopyCarrier::owner_of_destination && to.buffer) device = to.buffer->device.get();
    if (carrier == rules::CopyCarrier::owner_of_source && from.buffer) device = from.buffer->device.get();
    return rules::plan_copy(device->synchronous, facts(to), facts(from));
}

ObservedFacts observed_copy(const StreamState& stream, const CopyJob& job) {
    ObservedFacts facts = stream.observed(0, std::uint64_t{job.shape.width} * job.shape.rows * job.shape.slices);
    facts.reason = copy_plan_of(stream, job.to, job.from).reason;
    if (job.to.buffer) facts.kind = job.to.buffer->memory->kind;
    return facts;
}

[[gnu::cold]] void tell_sides(StreamState& stream, const CopyJob& job) noexcept {
    const auto tell = [&](const CopySide& side, ArgumentUse use, const rules::CopyStride& stride) {
        const rules::ByteRange range = bytes_of(job.shape, stride);
        side.buffer ? tell_use(stream, *side.buffer, use, range) : tell_use(stream, side.span, use, range);
    };
    tell(job.to, writing(job.to, job.shape), job.shape.to);
    tell(job.from, ArgumentUse::read, job.shape.from);
}
}  // namespace

Result<Stream> stream_of_destination(const std::shared_ptr<BufferState>& to) {
    if (!to) return make_error<errors::copy_of_empty_buffer>();
    std::optional<Stream> current = current_stream_of(*to->device);
    return current ? *std::move(current) : Stream(carrier_stream(*to->device));
}

}  // namespace detail

Result<void> Stream::copy_whole(const std::shared_ptr<detail::BufferState>& to,
                                const std::shared_ptr<detail::BufferState>& from, std::size_t element_bytes) {
    if (!to || !from) return make_error<errors::copy_of_empty_buffer>();
    if (to->memory->bytes != from->memory->bytes)
        return make_error<errors::copy_between_sizes>(from->memory->bytes, to->memory->bytes);
    if (to == from) return detail::check_buffer(*state_, &to, "a copy", "the buffer");
    return copy_request({{&to, 0, 0, {}}, {&from, 0, 0, {}}, {to->memory->bytes / element_bytes, 1, 1}, element_bytes});
}

Result<void> Stream::copy_request(const detail::CopyRequest& request) {
    Result<detail::CopyJob> job = detail::check_copy(*state_, request);
    if (!job) return std::move(job).error();
    if (job->shape.width == 0) return {};
    detail::ObservedSpan span(state_->device->observer(), Span::copy, "a copy",
                              [&] { return detail::observed_copy(*state_, *job); });
    if (span.facts() != nullptr) detail::tell_sides(*state_, *job);
    Result<void> done = detail::run_copy(*state_, *job);
    span.over(done);
    return done;
}

CopyExplanation Stream::explain_copy(const BufferBase& to, const BufferBase& from) const {
    if (!to || !from) return {CopyPath::refuse, "a buffer is empty, moved from or already released"};
    const detail::CopySide destination{to.state(), 0, MemoryKind::host};
    const detail::CopySide source{from.state(), 0, MemoryKind::host};
    for (const BufferBase* const side : {&to, &from}) {
        const bool lost = side->state()->device->is_lost() || detail::lost_owner(*state_->device, *side->state());
        if (lost) return {CopyPath::refuse, detail::owner_is_lost};
    }
    const rules::CopyPlan plan = detail::copy_plan_of(*state_, destination, source);
    return {plan.path, plan.reason};
}

}  // namespace v0
}  // namespace isthmus
