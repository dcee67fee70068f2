// Recording: what an open capture has been given so far on all of its streams. graph_state.hpp: what becomes of it.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include "buffer_state.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace isthmus::inline v0::detail {

struct StreamState;

// A buffer that a graph uses, and what it does with it. While it stands here, the buffer cannot be released.
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

// One launch, copy, fill or allocation. Records of events and waits for them are none: they become `after`.
struct RecordedOperation {
    const char* name = "";               // static storage
    const KernelInfo* kernel = nullptr;  // names the arguments
    std::uint64_t stream_id = 0;
    std::size_t device = 0;                                  // its index in the runtime
    std::vector<std::uint32_t> after;                        // operations that it directly follows; all before it
    std::vector<RecordedUse> uses;                           // by argument; not of memory that is the graph's own
    platform::NodeHandle node = platform::NodeHandle::none;  // the driver's, where somebody asked for it
    std::shared_ptr<void> closure;                           // of a host function: each launch calls it
    bool failed = false;  // the driver refused, maybe after some of its nodes were recorded: what they use is held
};

// A stream that takes part in a capture.
struct CaptureBranch {
    std::shared_ptr<StreamState> stream;  // empty: the origin, once the capture was given up
    std::uint64_t stream_id = 0;
    std::vector<std::uint32_t> tail;  // what its next operation will directly follow
};

// Which of the operations must have ended for all of `tail` to have ended.
std::vector<bool> followed_by(const std::vector<RecordedOperation>& operations, const std::vector<std::uint32_t>& tail);
// Streams that joined and whose last operations the first branch, the origin, does not follow.
std::vector<std::uint64_t> unjoined_streams(const std::vector<RecordedOperation>& operations,
                                            const std::vector<CaptureBranch>& branches);
// What a launch of all of them has to claim: each buffer once, with all that is done with it.
std::vector<RecordedUse> merged_uses(const std::vector<RecordedOperation>& operations);

// One capture. Streams that take part point to it (StreamState::recording) until they find that it has ended.
// Locks: a stream's mutex before this one, and this one held while the driver is given something for a captured
// stream: nothing ends the capture meanwhile. Never two streams' at once.
struct Recording {
    enum class State : std::uint8_t {
        open,
        given_up,  // its Capture is gone, and could not end it: done when one of its streams is next used by `thread`
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
    std::vector<std::pair<DeviceState*, platform::Allocation>> graph_memory;  // to be freed at the graph's end
    bool allocates = false;
    bool conditional = false;  // has loops or branches
    // Of graphs that were appended: devices that take part without a stream of theirs.
    std::vector<std::shared_ptr<DeviceState>> further;
    // An appended graph came into it and nothing waits for that one: no graph comes of it.
    bool spoiled = false;

    // All of these expect `mutex` to be held.
    CaptureBranch* branch_of(std::uint64_t stream_id) noexcept;
    // What the stream was given just now; says where it stands in `operations`.
    std::uint32_t add(const StreamState& stream, RecordedOperation operation);
    // Ends it in the driver, on the thread that began it. Whatever the outcome nothing is captured afterwards, unless
    // the driver lets go of nothing: then it is given up. `left`: its streams, to be dropped without the lock.
    Result<void> end(platform::GraphHandle& out, std::vector<CaptureBranch>& left);
    // Of a capture that was given up; refuses where this is not the thread that can.
    Result<void> end_given_up(std::vector<CaptureBranch>& left);

private:
    static std::uint64_t next_id() noexcept;
};

// The capture that a stream takes part in, which does not end while this lives; empty: none.
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

// Ends a capture; on the wrong thread it stays open. `out` is none where it was lost; `devices`: all that take part.
Result<void> end_recording(Recording& recording, platform::GraphHandle& out,
                           std::vector<std::shared_ptr<DeviceState>>& devices);
// Lets go of a capture that this thread cannot end. What it held is free, because its graph never comes to be.
void give_up_recording(Recording& recording);
// The end of a stream: a capture that was given up ends with its origin.
void leave_recording(StreamState& stream);

}  // namespace isthmus::inline v0::detail
