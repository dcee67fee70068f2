// StreamState: one stream's operations by position, and the fences that tell how far it has come.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/allocator.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <platform/driver.hpp>

#include "device_state.hpp"
#include "host_calls.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus::inline v0::detail {

struct BufferState;
class HeldCapture;
struct Recording;

// Counts up under the lock of what it belongs to; anybody may read it.
class SharedCount {
public:
    operator std::uint64_t() const noexcept { return value_.load(std::memory_order_relaxed); }
    void operator++() noexcept { become(value_.load(std::memory_order_relaxed) + 1); }
    void become(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

// Queries the event until it is done, or answers Code::timed_out.
platform::Status poll_event(const DeviceState& device, platform::EventHandle event, std::chrono::nanoseconds timeout);

// Operations are numbered from 1 in the order in which they were given to the driver (`issued`). A fence is a pooled
// event recorded behind a position. The departure fence: operations in a row that use the same buffers share one
// fence, recorded just before the first operation that leaves one of them, so that a host view waits for the last
// use of its buffer and for nothing behind it, and a launch costs one driver call otherwise.
// Locks: a stream's mutex is taken before a buffer's, never two streams' at once. It is held while the driver is given
// work, which blocks where the stream's queue is full behind a kernel that hangs (R5): who waits with a deadline, asks
// or cleans up takes it by lock_within(). A buffer's mutex is not held there, and neither is that of the fences, which
// comes last: fences that are there can be waited for whoever stands in the driver.
struct StreamState : std::enable_shared_from_this<StreamState> {
    // The end of one that a host function lets go of is put off.
    static std::shared_ptr<StreamState> make(std::shared_ptr<DeviceState> owner, int wanted_priority);
    static std::shared_ptr<StreamState> make(std::shared_ptr<DeviceState> owner,
                                             const platform::ForeignStream& foreign);
    StreamState(std::shared_ptr<DeviceState> owner, int wanted_priority,
                const platform::ForeignStream* foreign = nullptr);
    ~StreamState();

    const std::shared_ptr<DeviceState> device;
    const int priority;
    const std::uint64_t id;           // of the runtime; never reused
    const bool external;              // made by other code: Device::wrap_stream
    const std::uint64_t external_id;  // the driver's id of one that others made; 0: an own one
    // Other code has its handle and may give it work, which has no position: it is known to have ended only where the
    // driver is asked.
    std::atomic<bool> handed_out{false};
    bool others() const noexcept { return external || handed_out.load(std::memory_order_acquire); }
    std::atomic<LaunchMode> mode;
    std::atomic<long> standing{0};  // in how many buffers' uses: where nobody else holds it, no more work can come

    HostCalls host_calls;  // thread-safe
    // Its kernel ends when its service is stopped: nobody but that waits for it.
    std::atomic<bool> serves{false};

    std::mutex mutex;  // guards what follows; `issued` is read without it
    // Made by the first use; of an external stream none while no wrapper of it is left: it may have gone.
    platform::StreamHandle handle = platform::StreamHandle::none;
    std::atomic<int> wrappers{0};  // of an external stream: what users hold
    SharedCount issued;
    Allocator pool_memory;  // of the device's own pool; made by the first allocation on this stream
    // The capture that this stream takes part in, which may have ended meanwhile: capture() says.
    std::shared_ptr<Recording> recording;
    // UncapturedScopes: no capture begins or takes the stream in meanwhile. Counts up with the lock held, down without.
    std::atomic<int> in_parts{0};
    std::vector<BufferState*> tail;  // host-viewable buffers that the last operations use and no fence covers

    // The mutex for those who give no work. not_ready, timed_out: another thread stands in the driver with it; the
    // error names what it gives. What was waited is taken off `wait`. `what` begins the message.
    Result<std::unique_lock<std::mutex>> lock_within(Wait& wait, const char* what);
    // The driver is given this next: what stands there, where it does not come back. Expects `mutex`.
    void gives(const char* operation) noexcept { giving_.store(operation, std::memory_order_relaxed); }
    std::uint64_t tail_parts = 0;  // … and which parts of them (part_key)

    // All of these expect `mutex` to be held.
    Result<void> open_handle();
    // The open capture, held so that it does not end; empty: none, or no more. Ends one that was given up, and
    // refuses where this is not the thread that can. For what cannot be recorded: refuse_captured().
    Result<HeldCapture> capture();
    // Records a fence behind everything issued, where none is there yet. Attached buffers go back to the host first.
    // `recorded`: where to leave a reference to the event, which is not touched where none was recorded.
    Result<void> fence(FenceEvent** recorded = nullptr);
    std::uint64_t recording_id();  // expects `mutex` not to be held; 0: the stream is not captured
    // For what cannot be recorded: refuses while the stream is captured, and the capture goes on.
    Result<void> refuse_captured(const char* what);
    // The capture that code beside the runtime has open on this external stream; 0: none. One driver call; own streams
    // are not asked. A lost one is an error, and so is a default stream that stands in the way of another's (906).
    Result<std::uint64_t> foreign_capture();
    bool captured_elsewhere();
    // For what only own captures record. Expects `mutex` not to be held; nothing is asked on own streams.
    Result<void> refuse_captured_elsewhere(const char* what);
    // Behind each operation of an external stream, because no fence can be recorded once it is captured or gone.
    void fence_external() noexcept;
    // Before an operation on `uses`: a fence where it leaves a buffer of the tail.
    Result<void> depart(BufferState* const* uses, std::size_t count);
    // Numbers the operation just given to the driver (or refused by it) and remembers its name for messages.
    std::uint64_t advance(const char* operation) noexcept;
    platform::Status resolve(const KernelInfo& kernel, platform::FunctionHandle& out);
    // What resolve() found before on this stream; none: ask it.
    platform::FunctionHandle cached_function(const KernelInfo& kernel) const noexcept {
        const CachedFunction& cached = functions_[slot(kernel)];
        return cached.kernel == &kernel ? cached.function : platform::FunctionHandle::none;
    }

    // Expects `mutex` not to be held. Waits until the position is reached.
    Result<void> wait_until(std::uint64_t position, Wait wait);
    // What comes from now on waits for the event, a reference to which the caller has and which stands behind the
    // other stream's position; the host does not.
    Result<void> wait_behind(platform::EventHandle event, StreamState& other, std::uint64_t position, Wait wait = {});
    // Waits for all that was given, by other code as well; on a captured stream for what ran before (a whole device can
    // always be waited for).
    Result<void> wait_for_all(Wait wait);
    // A reference to an event behind all that was given, by other code as well, and that of ours up to `position`;
    // nullptr: it has ended.
    Result<FenceEvent*> fence_behind_all(std::uint64_t& position);
    // Waits for an event that was recorded behind the position.
    Result<void> wait_for(platform::EventHandle event, std::uint64_t position, Wait wait);
    // A reference to the fence at or behind the position, for other streams to wait for; nullptr: already reached. The
    // host waits for no work, only for another thread that stands in the driver.
    Result<FenceEvent*> fence_behind(std::uint64_t position, Wait wait = {});
    bool reached(std::uint64_t position) const noexcept {
        return completed_.load(std::memory_order_acquire) >= position;
    }
    // As raise(), and lets go of the fences up to there. Expects the fences' mutex not to be held.
    void note_reached(std::uint64_t position);
    // Work up to the position is known to have ended, and no buffer that it used has to be fenced any more. No lock.
    void raise(std::uint64_t position) noexcept;

    // Asks the driver how far the stream has come, and answers that position: one query where nothing new ended, about
    // 2 log2(n) where n fences did. Also on a captured stream, whose earlier work is fenced. While another thread
    // stands in the driver: what the fences tell.
    Result<std::uint64_t> poll();
    // A fence behind all that was issued; answers that position. timed_out: another thread stands in the driver.
    Result<std::uint64_t> mark();
    // Expects `mutex`. Records a user's event. true: it serves as the fence that the stream owes, if it owes one.
    Result<bool> record_user_event(FenceEvent& event);
    // The buffer, whose last use here has the position, ends. false: another thread stands in the driver while the tail
    // may name it. Nothing is waited for where the position was reached, as a fence stands behind it then.
    bool forget(const BufferState* buffer, std::uint64_t last) noexcept;
    // Keeps what forget() answered false for until the stream ends.
    void keep_until_end(std::shared_ptr<BufferState> buffer);
    // Can it be given more? Not an external stream of which no wrapper is left. Expects `mutex` not to be held.
    bool takes_work();

private:
    struct Fence {
        std::uint64_t position;
        FenceEvent* event;
    };
    struct CachedFunction {
        const KernelInfo* kernel = nullptr;
        platform::FunctionHandle function = platform::FunctionHandle::none;
    };
    static constexpr std::size_t cached_functions = 32;
    static std::size_t slot(const KernelInfo& kernel) noexcept {
        return (reinterpret_cast<std::uintptr_t>(&kernel) / alignof(KernelInfo)) % cached_functions;
    }
    Fence recorded_fence(std::uint64_t position);  // with a reference; none: there is none. Expects no lock
    bool any_fence();
    Result<Fence> covering_fence(std::uint64_t position);
    Result<Fence> covering_all();
    Result<void> wait_for_fence(const Fence& fence, std::uint64_t position, Wait wait);
    void leave_last_work();
    Result<void> return_attached();
    Result<void> poll_fences();
    Result<void> poll_rest();
    void add_fence(FenceEvent* event);
    Result<void> record_fence(FenceEvent** recorded = nullptr);
    void thin_fences();

    std::atomic<std::uint64_t> completed_{0};
    std::atomic<const char*> giving_{nullptr};
    std::mutex fences_mutex_;   // also held while events are asked, which gives the driver no work
    std::deque<Fence> fences_;  // ascending; appended to with both locks held
    SharedCount fenced_;        // position of the newest fence that was recorded; changes with `mutex` held
    std::vector<std::shared_ptr<BufferState>> kept_;  // guarded by fences_mutex_
    std::array<CachedFunction, cached_functions> functions_{};
    std::array<std::atomic<const char*>, 64> names_{};
};

}  // namespace isthmus::inline v0::detail
