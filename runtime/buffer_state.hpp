// BufferState: one buffer's memory, who has it open, who used it last, and which side of a staged pair is newer.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/allocator.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/wait.hpp>

#include <platform/driver.hpp>

#include "access_rules.hpp"
#include "order_book.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace isthmus::inline v0::detail {

struct DeviceState;
struct FenceEvent;
struct PoolState;
struct StreamState;

// Begins with what every launch over device memory looks at, in one cache line.
struct alignas(64) BufferState : std::enable_shared_from_this<BufferState> {
    // Its end, too, is put off while a capture is open: a graph may be about to use the memory (K10).
    static std::shared_ptr<BufferState> make(std::shared_ptr<DeviceState> owner);
    explicit BufferState(std::shared_ptr<DeviceState> owner) : device(std::move(owner)) {}
    ~BufferState();

    // Set when the buffer is made, constant afterwards.
    const std::shared_ptr<DeviceState> device;
    std::uint64_t device_address = 0;

private:
    std::atomic<StreamState*> first_stream_{nullptr};
    std::atomic<std::uint64_t> first_position_{0};

public:
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::unknown;
    MemoryKind host_kind = MemoryKind::unknown;
    LaunchPath path = LaunchPath::pass;
    std::string_view reason;
    void* host = nullptr;  // nullptr: the CPU may not view it
    // What handed the memory out and takes it back; two of them where the buffer is staged.
    Allocator allocator;
    MemoryBlock block;
    Allocator host_allocator;
    MemoryBlock host_block;
    std::uint64_t users_id = 0;             // in the ledger, where a user's allocator gave no identity
    std::shared_ptr<const PoolState> pool;  // that the memory came from, if one: whom it lets in (A5)
    // Memory that was allocated in the order of a stream: other streams wait for that once, before their first use.
    // nullptr: nothing to wait for, or no more. Changes with the mutex held, which keeps the stream in `uses`.
    std::atomic<StreamState*> ordered_on{nullptr};
    std::uint64_t ordered_position = 0;

    std::mutex downloading;  // held for a copy to the host's side; before all other locks
    std::mutex mutex;        // guards what follows, but the atomics
    int readers = 0;         // open host views
    bool writer = false;
    bool host_newer = false;    // stage: the host wrote, the device's side is stale
    bool device_newer = false;  // stage: the device wrote, the host's side is stale
    bool host_touched =
        false;                 // prefetch: the host had it open since the device's last use, so that pages may be there
    std::uint64_t claims = 0;  // stage: operations that looked at the two, so that only the last one undoes itself
    StreamState* attached_to = nullptr;
    std::atomic<std::uint64_t> staged_bytes{0};
    std::atomic<int> graphs{0};     // that use it: their work has its addresses
    std::uint64_t recorded_in = 0;  // memory of a graph: the recording that allocated it; constant afterwards

    struct Use {
        std::shared_ptr<StreamState> stream;
        std::uint64_t last = 0;        // position of the last operation that uses the buffer
        std::uint64_t last_write = 0;  // … that writes it
    };
    std::vector<Use> uses;               // one entry per stream
    StreamState* uploaded_on = nullptr;  // stage, attach: where the last upload or return was queued, and its position
    std::uint64_t upload_position = 0;

    OrderHistory order;  // guarded by the order checker

    bool staged() const noexcept { return path == LaunchPath::stage; }
    // Expect `mutex` to be held.
    void touch(StreamState& stream, std::uint64_t position, bool writes);
    // Refuses where an open view conflicts with device work (the message continues a sentence that begins with who it
    // is).
    Result<void> refuse_open_views(bool device_writes) const;

    // Device-only memory takes no lock on the first stream that uses it: nobody can view it, only release() wants to
    // know. The place stays that stream's: were it handed on, a late store could pass for another stream's position.
    void touch_device_only(StreamState& stream, std::uint64_t position) {
        if (first_stream_.load(std::memory_order_relaxed) == &stream) {
            first_position_.store(position, std::memory_order_relaxed);
        } else {
            touch_locked(stream, position);
        }
    }

    // Was it made by this stream's device, used by this stream first, and can the host never see it?
    bool only_for(const StreamState& stream, const DeviceState& its_device) const noexcept {
        return first_stream_.load(std::memory_order_relaxed) == &stream && device.get() == &its_device;
    }
    void mark_used(std::uint64_t position) noexcept { first_position_.store(position, std::memory_order_relaxed); }

    // What the books say about the way from another device to this very buffer (A4, A5).
    rules::PeerState peer_state(const DeviceState& user) const noexcept;
    // As its driver sees it: what attaching it to a stream needs.
    platform::Allocation whole() const noexcept { return {kind, host, device_address, bytes}; }
    // The memory is there once `stream` has reached the position; the stream itself may use it at once.
    void order_on(StreamState& stream, std::uint64_t position);
    // What `stream` has to wait for before its first use: another stream's allocation, by a reference to an event
    // behind it; nullptr: nothing. Expects no lock.
    struct Making {
        std::shared_ptr<StreamState> stream;
        std::uint64_t position = 0;
        FenceEvent* fence = nullptr;
    };
    Result<Making> making_before_use(StreamState& stream);

    // What a release, or a view, must wait for.
    std::vector<Use> conflicting(bool host_writes);
    Result<void> wait_for_uses(bool host_writes, Wait wait);
    // As wait_for_uses(true), past what was lost with its device: a lost device runs nothing any more.
    Result<void> wait_until_unused(Wait wait);
    // Was the owner, or a device that used the buffer, lost?
    bool touched_by_loss();
    // Copies the device's side to the host's where it is newer, and waits for the copy.
    Result<void> download(Wait wait);
    // Nothing uses the memory any more, or, where it is pooled, nothing will behind the stream that is returned
    // (nullptr: all uses were waited for). Waits for the device only where the kind of memory needs it.
    Result<std::shared_ptr<StreamState>> part_with_uses(Wait wait);
    // Gives everything back. Tries all parts and reports the first failure.
    Result<void> free_memory(const std::shared_ptr<StreamState>& after);

private:
    void touch_locked(StreamState& stream, std::uint64_t position);
    void forget_ended_uses();
    Result<std::shared_ptr<StreamState>> gather_uses();
    Result<std::shared_ptr<StreamState>> part_for_good();
};

// Opens the buffer for the CPU: read, write (every byte) or read_write. Refuses conflicting views, waits for
// conflicting device work, brings the host's side up to date. Also what a launch on the CPU device does.
Result<ViewScope> open_scope(const std::shared_ptr<BufferState>& buffer, ArgumentUse use, Wait wait);
// Opens the host's side of a lost device's buffer as it is, waiting for nothing.
Result<ViewScope> open_salvage(const std::shared_ptr<BufferState>& buffer);

}  // namespace isthmus::inline v0::detail
