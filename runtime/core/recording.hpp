// SPDX-License-Identifier: Apache-2.0
// Recording: what an open capture has been given so far on all of its streams. The resulting graph: graph_state.hpp.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include "buffer_state.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct StreamState;

// A buffer that a graph uses, and how. While this exists, the buffer cannot be released.
class RecordedUse {
public:
    RecordedUse(std::shared_ptr<BufferState> used, ArgumentUse how, std::uint32_t at = 0);
    RecordedUse(RecordedUse&&) noexcept = default;
    RecordedUse& operator=(RecordedUse&&) noexcept = default;
    ~RecordedUse();
    void join(ArgumentUse further) noexcept;

    std::shared_ptr<BufferState> buffer;
    ArgumentUse use;
    std::uint32_t argument;
    rules::ByteRange range;  // for the order checker
};

// Code that a recorded kernel runs and that is not part of the program: a ready-made module. The module stays loaded
// while this is held.
struct HeldCode {
    // Work of the stream up to `position` may run the code, also after this is let go.
    virtual void used_until(StreamState& stream, std::uint64_t position) noexcept = 0;

protected:
    ~HeldCode() = default;
};
using HeldCodes = std::vector<std::shared_ptr<HeldCode>>;

// One launch, copy, fill or allocation. Records of events and waits for them are no operations: they become `after`.
struct RecordedOperation {
    const char* name = "";               // static storage
    const KernelInfo* kernel = nullptr;  // names the arguments
    std::uint64_t stream_id = 0;
    std::size_t device = 0;                                  // its index in the runtime
    std::vector<std::uint32_t> after;                        // operations that it directly follows, all of them earlier
    std::vector<RecordedUse> uses;                           // by argument; without memory that the graph owns
    platform::NodeHandle node = platform::NodeHandle::none;  // the driver's, if it was asked for
    std::shared_ptr<void> closure;                           // of a host function: each launch calls it
    HeldCodes code;                                          // what it runs of ready-made modules
    // The driver refused it, perhaps after recording some of its nodes: the graph holds what they use.
    bool failed = false;
};

// A stream that takes part in a capture.
struct CaptureBranch {
    std::shared_ptr<StreamState> stream;  // empty: the origin, after the capture was given up
    std::uint64_t stream_id = 0;
    std::vector<std::uint32_t> tail;  // the operations that its next operation will directly follow
};

// Which operations must have ended once all of `tail` have ended.
std::vector<bool> followed_by(const std::vector<RecordedOperation>& operations, const std::vector<std::uint32_t>& tail);
// The streams that joined and whose last operations the origin (the first branch) does not follow.
std::vector<std::uint64_t> unjoined_streams(const std::vector<RecordedOperation>& operations,
                                            const std::vector<CaptureBranch>& branches);
// What a launch of all operations has to claim: each buffer once, with all of its uses.
std::vector<RecordedUse> merged_uses(const std::vector<RecordedOperation>& operations);

// One capture. Streams that take part point to it (StreamState::recording) until they find it ended.
// Locks: a stream's mutex is taken before this one; never two streams' at once. This one is held while the driver is
// given something for a captured stream, so that the capture does not end meanwhile.
struct Recording {
    enum class State : std::uint8_t {
        open,
        given_up,  // its Capture was destroyed and could not end it; it ends when `thread` next uses one of its streams
        ended,
    };

    Recording(const std::shared_ptr<StreamState>& origin, platform::StreamHandle origin_handle);

    const std::thread::id thread = std::this_thread::get_id();
    const std::uint64_t id = next_id();  // never reused
    const std::uint64_t origin_id;
    const platform::StreamHandle origin_handle;
    const std::shared_ptr<DeviceState> device;  // the origin's

    std::mutex mutex;  // guards what follows
    State state = State::open;
    std::vector<CaptureBranch> branches;  // the origin first
    std::vector<RecordedOperation> operations;
    std::vector<std::pair<DeviceState*, platform::Allocation>> graph_memory;  // to be freed when the graph ends
    bool allocates = false;
    bool conditional = false;  // has loops or branches
    // Devices of appended graphs that take part without a stream of their own.
    std::vector<std::shared_ptr<DeviceState>> further;
    // An appended graph was recorded but nothing waits for it: the capture makes no graph.
    bool spoiled = false;
    // Work of other code that failed, perhaps with some of its nodes in the capture: no graph either (W4).
    const char* failed_work = nullptr;
    // The same, because the body of a loop or a branch was not recorded to its end.
    bool body_failed = false;
    // While the body of a loop or a branch is recorded, this capture's streams take nothing. Changes with `mutex` held.
    std::atomic<bool> body_open{false};
    // Of such a body: the capture that its node belongs to, and what the driver knows of the node. Constant.
    std::shared_ptr<Recording> outer;
    platform::ConditionalBody body;

    // These functions expect `mutex` to be held.
    // Lets the origin wait in the driver for streams that it does not follow.
    void join_strays(const std::vector<std::uint64_t>& away);
    CaptureBranch* branch_of(std::uint64_t stream_id) noexcept;
    // Adds what the stream was just given; returns its index in `operations`.
    std::uint32_t add(const StreamState& stream, RecordedOperation operation);
    // Ends the capture in the driver, on the thread that began it. Afterwards no stream is captured, whatever the
    // outcome; if the driver releases nothing, the capture is given up. `left`: streams to release without the lock.
    Result<void> end(platform::GraphHandle& out, std::vector<CaptureBranch>& left);
    // Ends a capture that was given up; refuses on a thread that cannot.
    Result<void> end_given_up(std::vector<CaptureBranch>& left);

private:
    static std::uint64_t next_id() noexcept;
};

// The capture that a stream takes part in; it does not end while this lives. Empty: none.
class HeldCapture {
public:
    HeldCapture() = default;
    explicit HeldCapture(std::shared_ptr<Recording> recording)
        : recording_(std::move(recording)), lock_(recording_->mutex) {}
    explicit operator bool() const noexcept { return recording_ != nullptr; }
    Recording* operator->() const noexcept { return recording_.get(); }
    Recording& operator*() const noexcept { return *recording_; }

private:
    std::shared_ptr<Recording> recording_;
    std::unique_lock<std::mutex> lock_;
};

// Ends a capture; on the wrong thread it stays open. `out` is none if it was lost; `devices`: all that take part.
Result<void> end_recording(Recording& recording, platform::GraphHandle& out,
                           std::vector<std::shared_ptr<DeviceState>>& devices);
// Gives up a capture that this thread cannot end. What it held is released, because no graph comes of it.
void give_up_recording(Recording& recording);
// Called when a stream ends: a capture that was given up ends with its origin.
void leave_recording(StreamState& stream);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
