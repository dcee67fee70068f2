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
#include "part_book.hpp"
#include "sharing_rules.hpp"
#include "view_lock.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace isthmus::inline v0::detail {

class Deadline;
struct DeviceState;
struct FenceEvent;
struct PoolState;
struct StreamState;

// Begins with what every launch over device memory looks at, in one cache line.
struct alignas(64) BufferState : std::enable_shared_from_this<BufferState> {
    // Its end, too, is put off while a capture is open: a graph may be about to use the memory (K10).
    static std::shared_ptr<BufferState> make(std::shared_ptr<DeviceState> owner);
    explicit BufferState(std::shared_ptr<DeviceState> owner) : device(std::move(owner)) {}
    // What its end does: the memory goes back, or is given up where it may still be used. Waits for work, and for other
    // threads that stand in the driver, within the runtime's timeout. Answers the streams that still name the state.
    std::vector<std::shared_ptr<StreamState>> end();

    // Set when the buffer is made, constant afterwards.
    const std::shared_ptr<DeviceState> device;
    std::uint64_t device_address = 0;

private:
    std::atomic<StreamState*> first_stream_{nullptr};
    std::atomic<std::uint64_t> first_position_{0};

public:
    std::size_t bytes = 0;  // of a growable buffer its owner changes it, while nobody else uses it
    MemoryKind kind = MemoryKind::unknown;
    bool in_several = false;  // parts of it lie on other devices: what a kernel may do with it is judged each time
    MemoryKind host_kind = MemoryKind::unknown;
    LaunchPath path = LaunchPath::pass;
    std::string_view reason;
    void* host = nullptr;  // nullptr: the CPU may not view it
    ViewLock mutex;        // guards what begins with `concurrents`, but the atomics; counts plain views of all of it
    // What handed the memory out and takes it back; two of them where the buffer is staged.
    Allocator allocator;
    MemoryBlock block;
    Allocator host_allocator;
    MemoryBlock host_block;
    // Memory that somebody else owns (Device::adopt). Where it is staged and could not be registered, `host` is its
    // and copies go through host_block, because what the CPU can read need not be what a copy engine reaches.
    bool adopted = false;
    bool registered_here = false;           // this runtime registered it, and unregisters it
    bool read_only = false;                 // nobody may write it
    bool io_memory = false;                 // of a device: no atomics, and no concurrent use
    bool shared = false;                    // between processes, by a descriptor (shared_memory.hpp)
    bool aliased = false;                   // the same memory stands at two of its addresses: its parts are not apart
    MemoryBlock adopted_block;              // where it is staged; else `block` is it
    void* relay = nullptr;                  // of host_block; nullptr: copies go from and to `host`
    std::uint64_t users_id = 0;             // in the ledger, where a user's allocator gave no identity
    std::shared_ptr<const PoolState> pool;  // that the memory came from, if one: whom it lets in (A5)
    // Memory that was allocated in the order of a stream: other streams wait for that once, before their first use.
    // nullptr: nothing to wait for, or no more. Changes with the mutex held, which keeps the stream in `uses`.
    std::atomic<StreamState*> ordered_on{nullptr};
    std::uint64_t ordered_position = 0;

    std::mutex downloading;          // held for a copy to the host's side; before all other locks
    int concurrents = 0;             // open host views of concurrent use
    std::vector<std::size_t> seams;  // of mapped memory of the host: the bytes where its handles meet, rising
    bool host_newer = false;         // stage: the host wrote, the device's side is stale
    bool device_newer = false;       // stage: the device wrote, the host's side is stale
    bool relay_stale = false;        // the host wrote since the relay was filled
    bool host_touched = false;       // prefetch: the host had it open since the device's last use, so that pages may be
                                     // there; where there are parts they know
    std::uint64_t claims = 0;  // stage: operations that looked at the two, so that only the last one undoes itself
    StreamState* attached_to = nullptr;
    std::atomic<std::uint64_t> staged_bytes{0};
    std::atomic<signed char> of_file{-1};  // is it memory of a file? -1: nobody has asked so far (atomic_guard.cpp)
    std::atomic<int> graphs{0};            // that use it: their work has its addresses
    std::uint64_t recorded_in = 0;         // memory of a graph: the recording that allocated it; constant afterwards

    struct Use : LastUse {
        std::shared_ptr<StreamState> stream;
    };
    std::vector<Use> uses;               // one entry per stream
    StreamState* uploaded_on = nullptr;  // stage, attach: where the last upload or return was queued, and its position
    std::uint64_t upload_position = 0;

    OrderHistory order;  // guarded by the order checker

    // A buffer that shrank has fewer bytes than parts of it that were made before.
    bool holds(std::size_t first_byte, std::size_t count) const noexcept {
        return first_byte <= bytes && count <= bytes - first_byte;
    }
    static constexpr std::string_view part_beyond = "the buffer became smaller, and the part reaches beyond its end";
    static constexpr std::string_view part_again = "ask the buffer for a part that it still has, or grow it again";
    bool staged() const noexcept { return path == LaunchPath::stage; }
    void* copied_side() const noexcept { return relay != nullptr ? relay : host; }  // of copies between the two sides
    // May the host have a part of it open while the rest is used? Only then must the parts of launches be told apart.
    bool views_of_parts() const noexcept { return host != nullptr && !aliased && !rules::by_turns(path); }
    // Would a claim of these bytes draw their pages to the device? Expects `mutex`.
    bool prefetched_for(ArgumentUse use, const rules::ByteSpan& span) const noexcept {
        if (path != LaunchPath::prefetch || use == ArgumentUse::concurrent) return false;
        return parts == nullptr ? host_touched : parts->at_host.meets(span) && !parts->any_open(span);
    }
    void fill_relay();  // expects `mutex` to be held, and nothing to copy from it
    // Set for good by the first part of memory whose parts can be used by themselves: from then on `parts` knows who
    // uses what. Before, and of other memory, everybody uses all of it.
    std::atomic<bool> parted{false};
    std::unique_ptr<PartBook> parts;
    void make_parted();
    std::atomic<bool> has_parts{false};  // of whatever memory: others than the owner may use it
    std::atomic<bool> releasing{false};

    // Expect `mutex` to be held.
    void touch(StreamState& stream, std::uint64_t position, ArgumentUse use, const rules::ByteSpan& span = {});
    // Refuses where an open view conflicts with device work (the message continues a sentence that begins with who it
    // is).
    Result<void> refuse_open_views(ArgumentUse use, const rules::ByteSpan& span = {}) const;
    // What the host has open that may not go together with this use.
    OpenUse open_against(ArgumentUse use, const rules::ByteSpan& span = {}) const noexcept {
        const rules::ViewWord open = mutex.seen();
        if (open.has(rules::ViewWord::writer)) return {ArgumentUse::read_write, {}};
        if (open.readers() > 0 && use != ArgumentUse::read) return {ArgumentUse::read, {}};
        if (concurrents > 0 && use != ArgumentUse::concurrent) return {ArgumentUse::concurrent, {}};
        return parts == nullptr ? OpenUse{} : parts->open_against(use, span);
    }
    // Would opening any view of it find nothing to wait for, to copy, to note or to refuse (ADR 77)? Whatever changes
    // that says so (ViewLock::open_slowly) before it lets go of the lock.
    bool opens_at_once() const noexcept;
    // Was it released, or is about to be, although somebody who has a part of it is there? Set with the mutex held, so
    // that whoever finds it unset there is waited for; unset again where the release fails.
    bool released() const noexcept { return releasing.load(std::memory_order_acquire); }
    Error refuse_released(const char* what) const;
    // From here on nobody opens or uses a part. in_use: a view is open.
    Result<void> begin_release();

    // Device-only memory takes no lock on the first stream that uses it: nobody can view it, only release() wants to
    // know. The place stays that stream's: were it handed on, a late store could pass for another stream's position.
    void touch_device_only(StreamState& stream, std::uint64_t position) {
        if (first_stream_.load(std::memory_order_relaxed) == &stream) {
            first_position_.store(position, std::memory_order_relaxed);
        } else {
            touch_locked(stream, position);
        }
    }
    // … while its owner may release it. invalid_handle: he does.
    Result<void> touch_parted(StreamState& stream, std::uint64_t position);

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

    // What a release, or a view of this use, must wait for; a release as a view that writes.
    std::vector<Use> conflicting(ArgumentUse host_use, const rules::ByteSpan& span = {});
    std::vector<Use> conflicting_locked(ArgumentUse host_use, const rules::ByteSpan& span);  // expects `mutex`
    Result<void> wait_for_uses(ArgumentUse host_use, Wait wait, const rules::ByteSpan& span = {});
    Result<void> wait_for_uses(const std::vector<Use>& found, ArgumentUse host_use, Wait wait);
    // As wait_for_uses(write), past what was lost with its device: a lost device runs nothing any more.
    Result<void> wait_until_unused(const Deadline& deadline);
    // Was the owner, or a device that used the buffer, lost?
    bool touched_by_loss();
    // Copies the device's side to the host's where it is newer, and waits for the copy.
    Result<void> download(Wait wait);
    // Nothing uses the memory any more, or, where it is pooled, nothing will behind the stream that is returned
    // (nullptr: all uses were waited for). Waits for the device only where the kind of memory needs it.
    Result<std::shared_ptr<StreamState>> part_with_uses(Wait wait);
    // Gives everything back. On an error nothing has changed.
    Result<void> free_memory(const std::shared_ptr<StreamState>& after);

private:
    void touch_locked(StreamState& stream, std::uint64_t position);
    void forget_ended_uses();
    Result<std::shared_ptr<StreamState>> gather_uses(const Deadline& deadline);
    Result<std::shared_ptr<StreamState>> part_for_good();
};

// Ends a buffer whose last view was closed when nothing else held it any more.
void end_behind_views(BufferState& buffer);
// Opens the buffer for the CPU: read, write (every byte), read_write or concurrent. Refuses conflicting views, waits
// for conflicting device work, brings the host's side up to date.
Result<ViewScope> open_scope(BufferState& buffer, ArgumentUse use, Wait wait, const rules::ByteSpan& span = {});
// … for a launch on the CPU device. Where nobody may use it concurrently, a kernel that would has it to itself.
Result<ViewScope> open_for_launch(BufferState& buffer, ArgumentUse use, const rules::ByteSpan& span = {});
// What an operation that touches these bytes claims: all of it, unless parts of it are in use.
rules::ByteSpan touched(const BufferState& buffer, const rules::ByteRange& range) noexcept;
// A number for a set of parts, one after the other: the same for the same parts in the same order. 0: none.
inline std::uint64_t part_key(std::uint64_t before, const BufferState& buffer, const rules::ByteSpan& span) noexcept {
    constexpr std::uint64_t odd = 0x9E3779B97F4A7C15u;
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&buffer));
    return ((((before + address) * odd ^ span.begin) * odd) ^ span.end) * odd | 1;
}
// Bytes from here on as one buffer knows them: a part that is all of it is the whole.
rules::ByteSpan span_of(const BufferState& buffer, std::size_t first_byte, std::size_t bytes) noexcept;
// Opens the host's side of a lost device's buffer as it is, waiting for nothing.
Result<ViewScope> open_salvage(BufferState& buffer);

}  // namespace isthmus::inline v0::detail
