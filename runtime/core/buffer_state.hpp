// SPDX-License-Identifier: Apache-2.0
// BufferState: one buffer. Its memory, its open views, its uses and its sides are members with files of their own.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/allocator.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/observer.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/wait.hpp>

#include <platform/driver.hpp>

#include "access_rules.hpp"
#include "buffer_storage.hpp"
#include "held_blocks.hpp"
#include "lane_rules.hpp"
#include "open_views.hpp"
#include "out_of_line.hpp"
#include "sharing_rules.hpp"
#include "stream_uses.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

class Deadline;
struct BufferState;
struct DeviceState;
struct FenceEvent;
struct StateBlock;
struct StreamState;

// The members' rules are in their own files; their lock is `views`. Here are the steps that touch several members. What
// every launch over device memory reads lies in the first cache line, what views change in the second, and what most
// buffers never have out of line (ADR 128).
struct BufferState {
    using Use = StreamUse;

    explicit BufferState(std::shared_ptr<DeviceState> owner) : device(std::move(owner)) {}
    // Returns the memory, or gives it up where it may still be used. Waits for work, and for threads blocked in the
    // driver. Returns the streams that still name the state.
    std::vector<std::shared_ptr<StreamState>> end(Wait wait);

    FirstUse first_use;  // the stream that claims it by a store
    const std::shared_ptr<DeviceState> device;
    BufferStorage memory;  // the facts about the memory
    OpenViews views;       // open host views; the lock; and what is out of line

    // The streams that use it. Expects the lock.
    std::span<const Use> uses() const noexcept {
        const BufferBook* const book = views.out_of_line.book();
        return book != nullptr ? std::span<const Use>(book->uses.begin(), book->uses.size()) : std::span<const Use>();
    }
    // A reference to a stream that uses it; nullptr: it does not. Expects the lock.
    std::shared_ptr<StreamState> held(const StreamState* stream) const noexcept {
        const BufferBook* const book = views.out_of_line.book();
        return book != nullptr ? book->uses.held(stream) : nullptr;
    }
    // Called as the buffer ends: returns the uses, which no longer count.
    StreamUses::Uses take_uses() noexcept {
        BufferBook* const book = views.out_of_line.book();
        return book != nullptr ? book->uses.take_all() : StreamUses::Uses();
    }
    // Whether there is an allocation that some stream may have to wait for. Expects no lock.
    bool ordered() const noexcept {
        const BufferBook* const book = views.out_of_line.book();
        return book != nullptr && book->uses.ordered();
    }
    bool in_graphs() const noexcept {  // expects no lock
        const BufferBook* const book = views.out_of_line.book();
        return book != nullptr && book->uses.in_graphs();
    }
    // nullptr: it has one memory, which is attached to no stream. Expects no lock, other than what is in there.
    BufferSides* sides() const noexcept {
        BufferExtras* const extras = views.out_of_line.extras();
        return extras != nullptr ? &extras->sides : nullptr;
    }
    HeldBlocks blocks() noexcept { return HeldBlocks(views.out_of_line); }  // the blocks to give back
    const BufferExtras* extras() const noexcept { return views.out_of_line.extras(); }
    BufferBook& make_book() {
        if (BufferBook* const book = views.out_of_line.book()) return *book;
        return first_book();
    }
    BufferExtras& make_extras();

    // A buffer that shrank may have fewer bytes than parts that were made before.
    bool holds(std::size_t first_byte, std::size_t count) const noexcept {
        return first_byte <= memory->bytes && count <= memory->bytes - first_byte;
    }
    static constexpr std::string_view part_beyond = "the buffer became smaller, and the part reaches beyond its end";
    static constexpr std::string_view part_again = "ask the buffer for a part that it still has, or grow it again";
    bool staged() const noexcept { return memory->staged(); }
    // Whether the host may access the memory while a device does: what concurrent views and atomics of both sides need.
    AccessAnswer concurrent_access() const;
    // The host memory of copies between the two sides.
    void* copied_side() const noexcept { return relay() != nullptr ? relay() : memory->host; }
    void* relay() const noexcept { return memory->adopted && extras() != nullptr ? extras()->relay : nullptr; }
    const platform::os::DmaBuf* dma_buf() const noexcept {
        return memory->adopted && extras() != nullptr ? extras()->dma_buf : nullptr;
    }
    // Of memory of a graph: the recording that allocated it; 0: it is none.
    std::uint64_t recorded_in() const noexcept { return memory->of_graph ? extras()->recorded_in : 0; }
    std::string_view reason() const noexcept;  // why the memory is of this kind; static storage
    const PoolState* pool() const noexcept;    // that the memory came from; nullptr: none
    // The places where the handles of mapped memory meet change with its size. Expects the lock.
    void add_seam(std::size_t byte) { make_extras().seams.push_back(byte); }
    void drop_seams_from(std::size_t byte) noexcept;
    // Whether the host may have a part of it open while the rest is used. Only then are parts of launches
    // distinguished. The caches of a dma-buf are synchronised as a whole.
    bool views_of_parts() const noexcept {
        return memory->host != nullptr && !memory->aliased && dma_buf() == nullptr && !rules::by_turns(memory->path);
    }
    // Whether a claim of these bytes prefetches their pages to the device. Expects the lock.
    bool prefetched_for(ArgumentUse use, const rules::ByteSpan& span) const noexcept {
        return memory->path == LaunchPath::prefetch && use != ArgumentUse::concurrent && views.pages_at_host(span);
    }
    // For the runtime's observer: the buffer, and a use of it on a stream.
    ObservedFacts observed() const noexcept;
    ObservedFacts observed(const StreamState& stream, std::uint64_t position) const noexcept;
    // Expects no lock, and a use that is entered. An error: it is as stale as before.
    Result<void> fill_relay();
    // Error: not_permitted (a sealed scope, and the device keeps no memory for what that takes). Nothing has changed.
    Result<void> make_parted();

    // touch() and the functions up to opens_at_once() expect the lock.
    void touch(StreamState& stream, std::uint64_t position, ArgumentUse use, const rules::ByteSpan& span = {});
    // touch() for a use of all of it in place; later ones of the same sort by this stream need only uses_again() and
    // FirstUse::raise(). Expects the stream's lock, too.
    void touch_viewable(StreamState& stream, std::uint64_t position, ArgumentUse use) {
        touch(stream, position, use);
        if (StreamState* const first = first_use.stream(); first != nullptr && first != &stream) return;
        enter_first_use();
        first_use.begin_viewable(stream, position, rules::writes(use));
    }
    bool uses_again(const StreamState& stream, ArgumentUse use) const noexcept {
        return use != ArgumentUse::concurrent && first_use.is_again(stream, rules::writes(use)) &&
               views.seen().claimed_again();
    }
    // Whether an open view, a native scope, or memory that may only be read, forbids this use by a device.
    // `own`: the native scope that the use belongs to, whose marks do not count.
    bool host_forbids(ArgumentUse use, const rules::ByteSpan& span = {}, const void* own = nullptr) const noexcept;
    // The error for a forbidden use. `argument`: what uses the buffer, for the message.
    Error refuse_at_host(std::string_view argument, ArgumentUse use, const rules::ByteSpan& span = {},
                         const void* own = nullptr) const;
    // Whether opening any view finds nothing to wait for, to copy, to note or to refuse (ADR 77).
    bool opens_at_once() const noexcept;
    Error refuse_released(const char* what) const;
    // From here on no part can be opened or used. Errors: in_use (a view or a native scope is open).
    Result<void> begin_release();

    // A native scope begins to use these bytes: from here on conflicting views, uses and the release are refused.
    // `beside_views`: the scope has opened host views for them (the CPU device). Errors, with which nothing is marked:
    // in_use, invalid_handle (released). The scope holds the buffer until end_native(), which removes all of its marks.
    Result<void> begin_native(const void* scope, std::string_view argument, const OpenUse& use, bool beside_views);
    void end_native(const void* scope) noexcept;

    // Device-only memory takes no lock on the first stream that uses it: no view of it can open, and only release()
    // reads the position.
    void touch_device_only(StreamState& stream, std::uint64_t position) {
        if (first_use.is(stream)) {
            first_use.raise(position);
        } else {
            touch_locked(stream, position);
        }
    }
    // The same while its owner may release it. Errors: invalid_handle (it was released).
    Result<void> touch_parted(StreamState& stream, std::uint64_t position);

    // Whether this device made it, this stream used it first, and the host can never view it.
    bool only_for(const StreamState& stream, const DeviceState& its_device) const noexcept {
        return first_use.is(stream) && device.get() == &its_device;
    }

    // The recorded access of device `user` to this buffer (A4, A5).
    rules::PeerState peer_state(const DeviceState& user) const noexcept;
    // The driver's allocation, for it to be attached to a stream: only whole allocations are.
    platform::Allocation whole() const noexcept {
        const std::size_t lead = extras() != nullptr ? extras()->lead_bytes : 0;
        return {memory->kind, nullptr, memory->device_address - lead, memory->bytes + lead};
    }
    // The memory is ready once `stream` has reached the position; the stream itself may use it at once. Expects a
    // buffer that nobody else knows yet, so that only a far use takes the lock.
    void order_on(StreamState& stream, std::uint64_t position);
    // What `stream` has to wait for before its first use: another stream's allocation, with a reference to an event
    // behind it; nullptr: nothing. Expects no lock.
    struct Making {
        std::shared_ptr<StreamState> stream;
        std::uint64_t position = 0;
        FenceEvent* fence = nullptr;
    };
    Result<Making> making_before_use(StreamState& stream);

    // Whether no stream has used it so far.
    bool unused();
    // The same without the lock, of a buffer that nobody holds any more: who used it has let it go, and what no stream
    // uses is named by none.
    bool unused_at_end() const noexcept { return uses().empty() && first_use.stream() == nullptr; }
    // The uses that a view of this use must wait for; a release waits as a writing view does.
    using Running = StreamUses::Running;
    Running conflicting(ArgumentUse host_use, const rules::ByteSpan& span = {});
    Running conflicting_locked(ArgumentUse host_use, const rules::ByteSpan& span);  // expects the lock
    Result<void> wait_for_uses(ArgumentUse host_use, Wait wait, const rules::ByteSpan& span = {});
    Result<void> wait_for_uses(const Running& found, ArgumentUse host_use, Wait wait);
    // As wait_for_uses(write), without the work that was lost with its device: a lost device runs nothing any more.
    Result<void> wait_until_unused(const Deadline& deadline);
    // Whether the owner, or a device that used the buffer, was lost.
    bool touched_by_loss();
    // Copies the device's side to the host's where it is newer, and waits for the copy.
    Result<void> download(Wait wait);
    // Whether the memory can be freed in the order of a stream. Not memory of other code, whose order is not known
    // here.
    bool freed_in_order() noexcept { return rules::is_pooled(blocks().block().kind) && !memory->adopted; }
    // Waits until nothing uses the memory, and returns nullptr; for pooled memory, may instead return a stream behind
    // whose work nothing does. Waits for the device only where the kind of memory needs it.
    Result<std::shared_ptr<StreamState>> part_with_uses(Wait wait);
    // Gives all memory back. On an error nothing has changed.
    Result<void> give_back(const std::shared_ptr<StreamState>& after);

    // Enters into `uses` what the first stream's launches stored without the lock. Expects it.
    void enter_first_use();

private:
    BufferBook& first_book();
    void touch_and_begin(StreamState& stream, std::uint64_t position);
    void touch_locked(StreamState& stream, std::uint64_t position);
    void forget_ended_uses();
    Result<void> may_have_parts(std::string_view what);
    void note_far_use(const DeviceState& user);
    Result<std::shared_ptr<StreamState>> gather_uses(const Deadline& deadline);
    bool only_known_uses_ended();
    void exclude_from_cache();
};

// A buffer under construction. Its maker fills in facts and blocks, and calls make(); without that, the destructor
// makes the buffer and ends it, so that a failed step leaves nothing behind. The state begins at a cache line, in a
// block that the device keeps for the next buffer.
class NewBuffer {
public:
    explicit NewBuffer(std::shared_ptr<DeviceState> owner);
    NewBuffer(const NewBuffer&) = delete;
    NewBuffer& operator=(const NewBuffer&) = delete;
    ~NewBuffer() {
        if (state_) begin();
    }

    // Sets the kind and what follows from it: the host's kind, and the launch path. Nothing is staged.
    void be_of_kind(MemoryKind kind) noexcept;
    // For the observer. The use lives until make().
    void asked_for(MemoryKind kind) noexcept { asked_kind_ = kind; }
    void asked_for(const SharedUse& use) noexcept { asked_ = &use; }
    void explain(std::string_view reason);  // why the memory is of this kind; static storage
    std::shared_ptr<BufferState> make();    // call once; facts and blocks then belong to the buffer
    SecondSide& second_side();              // of a staged buffer
    void of_request(const rules::SharedRequest& request) noexcept;  // that decided all of it
    const std::shared_ptr<DeviceState>& device() const noexcept { return state_->device; }
    // The block: a piece of the device's own, whose block it is, or any other.
    void take(Piece& own) noexcept { state_->views.out_of_line.begin(own); }
    void take(const MemoryBlock& other) { extras().block = other; }
    const MemoryBlock& block() noexcept { return state_->blocks().block(); }
    BufferExtras& extras() { return state_->make_extras(); }
    bool has_relay() const noexcept { return state_->relay() != nullptr; }

private:
    friend bool begin_again(StateBlock& block, const StreamState* order);
    friend bool begin_with(StateBlock& block, Piece& piece, std::size_t bytes, std::string_view reason);
    static void begin(BufferState& state);
    static bool begin_with(BufferState& state, Piece& piece, std::size_t bytes, std::string_view reason);
    void begin() {
        begin(*state_);
        if (facts.staged()) (void)second_side();
    }
    std::shared_ptr<BufferState> state_;
    const SharedUse* asked_ = nullptr;
    MemoryKind asked_kind_ = MemoryKind::unknown;

public:
    StorageFacts& facts;
};

// Ends a buffer that neither an owner nor a view holds any more; deferred where the driver refuses what that needs, and
// where work uses it that need not be waited for (rules::ending()).
void end_buffer(BufferState* buffer);
// The same for one whose end was put off behind work: it ends now.
void end_dropped(BufferState* buffer, Wait wait);
// Opens the buffer for the CPU: read, write (every byte), read_write or concurrent. Refuses beside a conflicting view,
// waits for conflicting device work, and brings the host's side up to date.
Result<ViewScope> open_scope(BufferState& buffer, ArgumentUse use, Wait wait, const rules::ByteSpan& span = {});
// The same after open_at_once() was tried and did nothing.
Result<ViewScope> open_with_care(BufferState& buffer, ArgumentUse use, Wait wait, const rules::ByteSpan& span = {});
// The same for a launch on the CPU device. If the memory allows no concurrent use, a kernel that uses it concurrently
// gets exclusive use.
Result<ViewScope> open_for_launch(BufferState& buffer, ArgumentUse use, const rules::ByteSpan& span = {});
// The bytes that an operation on this range claims: the whole buffer, unless parts of it are in use.
rules::ByteSpan touched(const BufferState& buffer, const rules::ByteRange& range) noexcept;
// A number for a sequence of parts, extended by one part: equal for the same parts in the same order. 0: none.
inline std::uint64_t part_key(std::uint64_t before, const BufferState& buffer, const rules::ByteSpan& span) noexcept {
    constexpr std::uint64_t odd = 0x9E3779B97F4A7C15u;
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&buffer));
    return ((((before + address) * odd ^ span.begin) * odd) ^ span.end) * odd | 1;
}
// The bytes from `first_byte` on as the buffer's books take them: a part that is all of it is the whole.
rules::ByteSpan span_of(const BufferState& buffer, std::size_t first_byte, std::size_t bytes) noexcept;
// Opens the host's side of a lost device's buffer as it is, without waiting.
Result<ViewScope> open_salvage(BufferState& buffer);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
