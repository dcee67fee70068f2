// SPDX-License-Identifier: Apache-2.0
// StreamState: the operations of one stream by position, and the fences that tell how far it has come.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/allocator.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <platform/driver.hpp>

#include "device_state.hpp"
#include "first_use.hpp"
#include "host_calls.hpp"
#include "store_lock.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct CurrentScope;
class HeldCapture;
struct Recording;

// A counter that is written under its owner's lock; any thread may read it.
class SharedCount {
public:
    operator std::uint64_t() const noexcept { return value_.load(std::memory_order_relaxed); }
    void operator++() noexcept { become(value_.load(std::memory_order_relaxed) + 1); }
    void become(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

// Queries the event until it has completed; Code::timed_out after `timeout`.
platform::Status poll_event(const DeviceState& device, platform::EventHandle event, std::chrono::nanoseconds timeout);

using StreamLock = std::unique_lock<StoreLock>;

// Operations are numbered from 1 in the order in which the driver got them (`issued`). A fence is a pooled event
// recorded behind a position.
// Departure fence: consecutive operations that use the same buffers share one fence, recorded just before the first
// operation that leaves one of them. A host view then waits for the last use of its buffer and for nothing after it,
// and any other launch costs one driver call.
// Locks: a stream's mutex is taken before a buffer's; never two streams' at once. It is held during driver calls that
// give work, which block while the stream's queue is full behind a kernel that hangs (R5): waits with a deadline,
// queries and cleanup take it by lock_within(). Neither a buffer's mutex nor the fences', which comes last, is held
// during such a call: recorded fences can be waited for meanwhile.
struct StreamState : std::enable_shared_from_this<StreamState> {
    // If a host function drops the last reference, the destructor is deferred.
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
    const std::uint64_t external_id;  // the driver's id of an external stream; 0: an own stream
    // Other code has the handle and may give it work, which has no position: only the driver knows whether that has
    // ended.
    std::atomic<bool> handed_out{false};
    bool others() const noexcept { return external || handed_out.load(std::memory_order_acquire); }
    std::atomic<LaunchMode> mode;
    // The number of buffers whose uses name this stream; if nothing else holds it, no more work can come.
    std::atomic<long> standing{0};

    // For the runtime's observer.
    ObservedFacts observed(std::uint64_t position = 0, std::uint64_t bytes = 0) const noexcept;

    HostCalls host_calls;  // thread-safe
    // Of a device's first stream: the streams that threads made current without a scope. Owned here, because a thread
    // may outlive the runtime, and nothing of that may stay with it.
    struct ChosenStreams {
        std::mutex mutex;  // no other lock is taken while it is held, and no stream ends
        std::vector<std::shared_ptr<CurrentScope>> all;
    };
    ChosenStreams chosen;
    // The stream runs a service. Its kernel ends when the service is stopped, and only that waits for it.
    std::atomic<bool> serves{false};

    StoreLock mutex;  // guards what follows; `issued` is read without it
    // Created at the first use. For an external stream: none while no wrapper of it is left, because it may be
    // destroyed.
    platform::StreamHandle handle = platform::StreamHandle::none;
    std::atomic<int> wrappers{0};  // of an external stream: the number that users hold
    SharedCount issued;
    PieceCache::Behind kept_behind;  // pool memory released in the order of this own stream; guarded by the cache
    // The capture that this stream takes part in. It may have ended meanwhile; see capture().
    std::shared_ptr<Recording> recording;
    // The number of UncapturedScopes: unless it is 0, no capture begins on the stream or includes it. Incremented with
    // the lock held, decremented without.
    std::atomic<int> in_parts{0};
    std::vector<BufferState*> tail;  // host-viewable buffers that the last operations use and no fence covers

    // Takes the mutex for callers that give no work. not_ready or timed_out: another thread holds it, blocked in the
    // driver call that the error names. Deducts the time waited from `wait`. `what` begins the message.
    Result<StreamLock> lock_within(Wait& wait, const char* what);
    // Notes the next driver call that gives work, for messages in case it does not return. Expects `mutex`.
    void gives(const char* operation) noexcept { giving_.store(operation, std::memory_order_relaxed); }
    std::uint64_t tail_parts = 0;  // the parts of them that are used (part_key)

    // The following functions expect `mutex` to be held unless stated otherwise.
    Result<void> open_handle();
    // The open capture, locked so that it does not end; empty: none, or no longer. Ends one that was given up, and
    // refuses on a thread that cannot. For what cannot be recorded: refuse_captured().
    Result<HeldCapture> capture();
    // Records a fence behind everything issued, unless there is one. Returns attached buffers to the host first.
    // `recorded` receives a reference to the event, if one was recorded.
    Result<void> fence(FenceEvent** recorded = nullptr);
    std::uint64_t recording_id();  // expects `mutex` not to be held; 0: the stream is not captured
    // For operations that cannot be recorded: refuses while the stream is captured. The capture continues.
    Result<void> refuse_captured(const char* what);
    // The capture that code beside the runtime has open on this external stream; 0: none. One driver call; own streams
    // are not asked. Errors: a lost capture; a default stream that conflicts with another stream's capture (906).
    Result<std::uint64_t> foreign_capture();
    bool captured_elsewhere();
    // For operations that only the runtime's own captures record. Expects `mutex` not to be held; own streams are not
    // asked.
    Result<void> refuse_captured_elsewhere(const char* what);
    // Called after each operation of an external stream: no fence can be recorded once the stream is captured or
    // destroyed.
    void fence_external() noexcept;
    // Called before an operation on `uses`: records a fence if the operation leaves a buffer of the tail.
    Result<void> depart(BufferState* const* uses, std::size_t count);
    // Numbers the operation that was just given to the driver (or refused by it), and keeps its name for messages:
    // static storage, or name_of().
    std::uint64_t advance(const char* operation) noexcept;
    // The name that advance() got for the position; nullptr: too long ago. Expects no lock.
    const char* name_of(std::uint64_t position) const noexcept {
        if (issued - position >= names_.size()) return nullptr;
        return names_[position % names_.size()].load(std::memory_order_relaxed);
    }
    platform::Status resolve(const KernelInfo& kernel, platform::FunctionHandle& out);
    // What this stream knows of a kernel. A kernel of another library may lie at its address later, with another first
    // use (ADR 94).
    struct CachedKernel {
        const KernelInfo* kernel = nullptr;
        std::uint64_t first_use = 0;
        platform::FunctionHandle function = platform::FunctionHandle::none;  // none: call resolve()
        const char* name = nullptr;  // for advance() and gives(); lives as long as the runtime's books

        bool is(const KernelInfo& other) const noexcept {
            return kernel == &other && first_use == other.first_use.ns.load(std::memory_order_relaxed);
        }
    };
    // nullptr: nothing yet.
    const CachedKernel* cached(const KernelInfo& kernel) const noexcept {
        const CachedKernel& known = kernels_[slot(kernel)];
        return known.is(kernel) ? &known : nullptr;
    }
    // The kernel's name as text that outlives its library.
    const char* name_of(const KernelInfo& kernel) { return known(kernel).name; }

    // Waits until the position is reached. Expects `mutex` not to be held.
    Result<void> wait_until(std::uint64_t position, Wait wait);
    // Makes later work of this stream wait for the event; the host does not wait. The caller has a reference to the
    // event, recorded behind `position` of `other`.
    Result<void> wait_behind(platform::EventHandle event, StreamState& other, std::uint64_t position, Wait wait = {});
    // Waits for all work of the stream, also that of other code; on a captured stream, for the work before the capture
    // (waiting for a whole device is always possible).
    Result<void> wait_for_all(Wait wait);
    // A reference to an event behind all work of the stream, also that of other code, and of ours up to `position`;
    // nullptr: it has ended.
    Result<FenceEvent*> fence_behind_all(std::uint64_t& position);
    // Waits for an event that was recorded behind the position.
    Result<void> wait_for(platform::EventHandle event, std::uint64_t position, Wait wait);
    // A reference to the fence at or behind the position, for other streams to wait for; nullptr: already reached. The
    // host waits only for another thread that is blocked in the driver.
    Result<FenceEvent*> fence_behind(std::uint64_t position, Wait wait = {});
    bool reached(std::uint64_t position) const noexcept {
        return completed_.load(std::memory_order_acquire) >= position;
    }
    // As raise(); also releases the fences up to there. Expects the fences' mutex not to be held.
    void note_reached(std::uint64_t position);
    // Work up to the position is known to have ended, and no buffer that it used needs a fence any more. No lock.
    void raise(std::uint64_t position) noexcept;

    // Asks the driver how far the stream has come: one query if nothing new has ended, about 2 log2(n) if n fences
    // have. Also on a captured stream, whose earlier work is fenced. While another thread is blocked in the driver:
    // what the recorded fences show.
    Result<std::uint64_t> poll();
    // Records a fence behind everything issued, and returns that position. timed_out: another thread is blocked in the
    // driver.
    Result<std::uint64_t> mark();
    // Expects `mutex`. Records a user's event. true: it also serves as the fence that the stream owes, if it owes one.
    Result<bool> record_user_event(FenceEvent& event);
    // Removes a buffer that ends from the tail. `last`: its last use here; if that was reached, a fence stands behind
    // it and nothing is waited for. false: another thread is blocked in the driver, and the tail may still name the
    // buffer.
    bool forget(const BufferState* buffer, std::uint64_t last) noexcept;
    // Keeps a buffer for which forget() returned false until the stream ends.
    void keep_until_end(std::shared_ptr<BufferState> buffer);
    // Whether the stream can be given more work: not an external stream without a wrapper. Expects `mutex` not to be
    // held.
    bool takes_work();

private:
    struct Fence {
        std::uint64_t position;
        FenceEvent* event;
    };
    // At most `most` of them, ascending. The list is bounded, because no wait may ever come; see thin_fences().
    class Fences {
    public:
        static constexpr std::size_t most = 64;
        std::size_t size() const noexcept { return count_; }
        bool empty() const noexcept { return count_ == 0; }
        Fence& operator[](std::size_t at) noexcept { return ring_[(first_ + at) % most]; }
        Fence& front() noexcept { return ring_[first_]; }
        void push_back(const Fence& fence) noexcept { (*this)[count_++] = fence; }
        void pop_front() noexcept {
            first_ = (first_ + 1) % most;
            --count_;
        }
        void keep_first(std::size_t count) noexcept { count_ = count; }

    private:
        std::array<Fence, most> ring_;
        std::size_t first_ = 0;
        std::size_t count_ = 0;
    };
    // Kernels of one image lie at equal distances, often at a multiple of 256 bytes. A multiple of the golden ratio
    // (Fibonacci hashing) places such neighbours apart.
    static constexpr std::size_t cached_kernels = 32;
    static std::size_t slot(const KernelInfo& kernel) noexcept {
        return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(&kernel) * 0x9e3779b97f4a7c15u) >> 59);
    }
    static_assert(cached_kernels == 1u << (64 - 59));
    CachedKernel& known(const KernelInfo& kernel);
    Fence recorded_fence(std::uint64_t position);  // with a reference; without an event: none. Expects no lock
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
    std::mutex fences_mutex_;  // also held while events are queried, which gives the driver no work
    Fences fences_;            // appended to with both locks held
    SharedCount fenced_;       // position of the newest recorded fence; changes with `mutex` held
    std::vector<std::shared_ptr<BufferState>> kept_;  // guarded by fences_mutex_
    std::array<CachedKernel, cached_kernels> kernels_{};
    std::array<std::atomic<const char*>, 64> names_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
