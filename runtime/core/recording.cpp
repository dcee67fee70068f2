// SPDX-License-Identifier: Apache-2.0
// Recording: the order of operations in a capture of several streams, and how it ends on all of them.
#include "recording.hpp"

#include "core_errors.hpp"
#include "device_state.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <atomic>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// For calls whose failure would leave streams captured for good, or make a graph that can be launched only once.
constexpr int tries = 3;

Error unjoined_error(const std::vector<std::uint64_t>& streams) {
    if (streams.size() == 1) return make_error<errors::capture_lacks_a_stream>(streams.front());
    std::string which;
    for (std::size_t at = 0; at < streams.size(); ++at) {
        which += (at == 0 ? "" : at + 1 == streams.size() ? " and " : ", ") + std::to_string(streams[at]);
    }
    return make_error<errors::capture_lacks_streams>(which);
}

}  // namespace

std::vector<bool> followed_by(const std::vector<RecordedOperation>& operations,
                              const std::vector<std::uint32_t>& tail) {
    std::vector<bool> followed(operations.size(), false);
    for (const std::uint32_t at : tail) followed[at] = true;
    for (std::size_t at = operations.size(); at-- > 0;) {  // an operation follows earlier ones only
        if (!followed[at]) continue;
        for (const std::uint32_t earlier : operations[at].after) followed[earlier] = true;
    }
    return followed;
}

RecordedUse::RecordedUse(std::shared_ptr<BufferState> used, ArgumentUse how, std::uint32_t at)
    : buffer(std::move(used)), use(how), argument(at) {
    buffer->make_book().uses.enter_graph();
}
RecordedUse::~RecordedUse() {
    if (buffer) buffer->make_book().uses.leave_graph();
}
void RecordedUse::join(ArgumentUse further) noexcept {
    if (use != further) use = ArgumentUse::read_write;
}

std::vector<std::uint64_t> unjoined_streams(const std::vector<RecordedOperation>& operations,
                                            const std::vector<CaptureBranch>& branches) {
    std::vector<std::uint64_t> away;
    if (branches.size() < 2) return away;
    const std::vector<bool> joined = followed_by(operations, branches.front().tail);
    for (std::size_t at = 1; at < branches.size(); ++at) {
        const std::vector<std::uint32_t>& tail = branches[at].tail;
        if (std::all_of(tail.begin(), tail.end(), [&](std::uint32_t last) { return joined[last]; })) continue;
        away.push_back(branches[at].stream_id);
    }
    return away;
}

std::vector<RecordedUse> merged_uses(const std::vector<RecordedOperation>& operations) {
    std::vector<RecordedUse> merged;
    for (const RecordedOperation& operation : operations) {
        for (const RecordedUse& use : operation.uses) {
            const auto known = std::find_if(merged.begin(), merged.end(),
                                            [&](const RecordedUse& one) { return one.buffer == use.buffer; });
            if (known != merged.end()) {
                known->join(use.use);
            } else {
                merged.emplace_back(use.buffer, use.use, use.argument);
            }
        }
    }
    return merged;
}

Recording::Recording(const std::shared_ptr<StreamState>& origin, platform::StreamHandle handle_of_origin)
    : origin_id(origin->id), origin_handle(handle_of_origin), device(origin->device) {
    branches.push_back({origin, origin->id, {}});
}

std::uint64_t Recording::next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

CaptureBranch* Recording::branch_of(std::uint64_t stream_id) noexcept {
    const auto found = std::find_if(branches.begin(), branches.end(),
                                    [&](const CaptureBranch& branch) { return branch.stream_id == stream_id; });
    return found == branches.end() ? nullptr : &*found;
}

void Recording::join_strays(const std::vector<std::uint64_t>& away) {
    platform::Execution& execution = device->execution;
    for (const CaptureBranch& branch : branches) {
        if (std::find(away.begin(), away.end(), branch.stream_id) == away.end() || !branch.stream) continue;
        platform::EventHandle event = platform::EventHandle::none;
        if (!execution.create_event(platform::EventKind::plain, event).ok()) return;
        if (execution.record_event(event, branch.stream->handle).ok()) (void)execution.wait_event(origin_handle, event);
        (void)execution.destroy_event(event);
    }
}

std::uint32_t Recording::add(const StreamState& stream, RecordedOperation operation) {
    const auto at = static_cast<std::uint32_t>(operations.size());
    operation.stream_id = stream.id;
    operation.device = stream.device->index;
    if (CaptureBranch* branch = branch_of(stream.id)) {
        operation.after = std::move(branch->tail);
        branch->tail = {at};
    }
    operations.push_back(std::move(operation));
    return at;
}

Result<void> Recording::end(platform::GraphHandle& out, std::vector<CaptureBranch>& left) {
    platform::Captures& captures = *device->driver->captures();
    const std::vector<std::uint64_t> away = unjoined_streams(operations, branches);
    // A body that ends with a stream that has not joined takes its node's graph along, and the driver crashes when the
    // capture around it ends (580.159.04). So the driver sees the streams join; the error is the same.
    if (outer) join_strays(away);
    platform::Status unfreed;
    // The graph must free what it allocates; otherwise a second launch would find it allocated (the driver returns 1).
    for (const auto& [owner, memory] : std::exchange(graph_memory, {})) {
        if (!away.empty()) break;  // work that the origin does not follow may use it, and no graph is made
        platform::Status freed;
        for (int attempt = 0; attempt == 0 || (!freed.ok() && attempt < tries); ++attempt) {
            freed = owner->driver->memory().release(memory, origin_handle);
        }
        if (!freed.ok()) unfreed = freed;  // also if the capture is lost: its end reports that, below
    }
    platform::Status status;
    platform::CaptureState now = platform::CaptureState::none;
    for (int attempt = 0; attempt < tries; ++attempt) {
        status =
            outer ? captures.end_body(outer->origin_handle, origin_handle, body) : captures.end(origin_handle, out);
        now = platform::CaptureState::none;
        if (status.ok() || !captures.state(origin_handle, now).ok() || now == platform::CaptureState::none) break;
    }
    // Only the thread that began the capture can end it, and a failed call may succeed later.
    state = now == platform::CaptureState::none ? State::ended : State::given_up;
    if (state == State::ended) {
        left.swap(branches);
    } else {
        // The stream owns the capture, not the reverse.
        left.push_back({std::move(branches.front().stream), origin_id, {}});
    }
    const bool unfinished = spoiled || failed_work != nullptr || body_failed;
    if (status.ok() && away.empty() && unfreed.ok() && !unfinished) return {};
    if (out != platform::GraphHandle::none) (void)captures.destroy(out);
    out = platform::GraphHandle::none;
    if (status.ok() && !away.empty()) return unjoined_error(away);
    if (status.ok() && spoiled) return make_error<errors::capture_with_unordered_append>();
    if (status.ok() && failed_work != nullptr) return make_error<errors::capture_with_failed_work>(failed_work);
    if (status.ok() && body_failed) return make_error<errors::capture_with_unfinished_body>();
    if (status.ok()) return device->failure(unfreed, "freeing the memory of a graph at its end");
    Error failed = device->failure(status, "ending a capture");
    if (away.empty() || device->is_lost()) return failed;
    return unjoined_error(away).from_call(status.call, status.driver_code);
}

Result<void> Recording::end_given_up(std::vector<CaptureBranch>& left) {
    if (thread != std::this_thread::get_id()) {
        return make_error<errors::capture_dropped_by_another_thread>();
    }
    platform::GraphHandle graph = platform::GraphHandle::none;
    Result<void> ended = end(graph, left);
    if (graph != platform::GraphHandle::none) (void)device->driver->captures()->destroy(graph);
    return state == State::ended ? Result<void>() : ended;  // once the capture has ended, its error does not matter
}

Result<void> end_recording(Recording& recording, platform::GraphHandle& out,
                           std::vector<std::shared_ptr<DeviceState>>& devices) {
    DeviceState& device = *recording.device;
    if (device.bars(rules::PublicCall::end_capture)) {
        if (device.bar(rules::PublicCall::end_capture) == rules::Bar::forked) {
            // Without the locks, which another thread of the parent may have held.
            for (const CaptureBranch& branch : recording.branches) {
                if (branch.stream) branch.stream->recording.reset();
            }
        }
        return device.refusal(rules::PublicCall::end_capture);
    }
    if (recording.thread != std::this_thread::get_id()) {
        return make_error<errors::capture_ended_by_another_thread>();
    }
    std::vector<CaptureBranch> left;
    std::vector<std::shared_ptr<DeviceState>> further;
    std::vector<RecordedOperation> nothing;  // operations of a capture that cannot be ended: destroyed without the lock
    Result<void> ended;
    bool over = false;
    {
        const std::lock_guard lock(recording.mutex);
        if (recording.body_open) return make_error<errors::capture_records_a_body>(recording.origin_id);
        ended = recording.end(out, left);
        over = recording.state == Recording::State::ended;
        if (!over) {
            nothing.swap(recording.operations);
            for (CaptureBranch& branch : recording.branches) branch.tail.clear();  // tails refer to those operations
        }
        further.swap(recording.further);
    }
    for (const CaptureBranch& branch : left) {
        const std::shared_ptr<DeviceState>& takes_part = branch.stream->device;
        if (std::find(devices.begin(), devices.end(), takes_part) == devices.end()) devices.push_back(takes_part);
        const std::lock_guard lock(branch.stream->mutex);
        if (over && branch.stream->recording.get() == &recording) branch.stream->recording.reset();
    }
    for (std::shared_ptr<DeviceState>& takes_part : further) {
        if (std::find(devices.begin(), devices.end(), takes_part) == devices.end()) {
            devices.push_back(std::move(takes_part));
        }
    }
    device.books->captures.ended();  // without a stream's lock: deferred work may need it
    return ended;
}

void give_up_recording(Recording& recording) {
    std::vector<RecordedOperation> held;  // destroyed without the lock: the end of a buffer may need it
    std::shared_ptr<StreamState> origin;
    {
        const std::lock_guard lock(recording.mutex);
        if (recording.state != Recording::State::open) return;
        recording.state = Recording::State::given_up;
        held.swap(recording.operations);
        for (CaptureBranch& branch : recording.branches) branch.tail.clear();
        origin.swap(recording.branches.front().stream);  // the stream owns the capture now, not the reverse
    }
    recording.device->books->captures.ended(recording.thread);
}

void leave_recording(StreamState& stream) {
    const std::shared_ptr<Recording> recording = std::move(stream.recording);
    if (recording == nullptr || recording->origin_id != stream.id) return;
    std::vector<CaptureBranch> left;
    const std::lock_guard lock(recording->mutex);
    if (recording->state == Recording::State::ended) return;
    // If its owner has destroyed an external stream, that has ended the capture.
    const bool there = stream.handle != platform::StreamHandle::none;
    if (there && !recording->device->is_lost()) (void)recording->end_given_up(left);
    // If the capture could not be ended, the destruction of its origin ends it; the other streams find that out.
    recording->state = Recording::State::ended;
    for (CaptureBranch& branch : recording->branches) left.push_back(std::move(branch));
    recording->branches.clear();
}

// Expects the stream's mutex.
Result<HeldCapture> StreamState::capture() {
    if (recording == nullptr) return HeldCapture();
    std::vector<CaptureBranch> left;  // released without the capture's lock
    {
        HeldCapture held(recording);
        if (held->state == Recording::State::given_up) {
            if (Result<void> ended = held->end_given_up(left); !ended) return std::move(ended).error();
        }
        if (held->state == Recording::State::open && held->body_open) {
            return make_error<errors::capture_records_a_body>(id);
        }
        if (held->state == Recording::State::open) return Result<HeldCapture>(std::move(held));
    }
    recording.reset();
    return HeldCapture();
}

std::uint64_t StreamState::recording_id() {
    const std::lock_guard lock(mutex);
    Result<HeldCapture> held = capture();  // also ends a capture that was given up, where this thread can
    if (!held) return recording->id;
    if (*held) return (*held)->id;
    if (!external || handle == platform::StreamHandle::none) return 0;
    const Result<std::uint64_t> elsewhere = foreign_capture();
    return elsewhere ? *elsewhere : 0;
}

Result<void> StreamState::refuse_captured(const char* what) {
    Result<HeldCapture> held = capture();
    if (!held) return std::move(held).error();
    if (!*held) {
        if (!external || handle == platform::StreamHandle::none) return {};
        Result<std::uint64_t> elsewhere = foreign_capture();
        if (!elsewhere) return std::move(elsewhere).error();
        if (*elsewhere == 0) return {};
    }
    return make_error<errors::call_on_captured_stream>(what);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
