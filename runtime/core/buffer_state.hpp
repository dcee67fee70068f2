// BufferState: one buffer. Its memory, its open views, its uses and its sides are members with files of their own.
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
#include "buffer_sides.hpp"
#include "buffer_storage.hpp"
#include "held_blocks.hpp"
#include "open_views.hpp"
#include "order_book.hpp"
#include "sharing_rules.hpp"
#include "stream_uses.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace isthmus::inline v0::detail {

class Deadline;
struct BufferState;
struct DeviceState;
struct FenceEvent;
struct StreamState;

// Each member has its own file, and there its rules. Their lock is `views`. Here are the steps that touch several.
// Begins with what every launch over device memory looks at, in one cache line.
struct alignas(64) BufferState : std::enable_shared_from_this<BufferState> {
    using Use = StreamUse;

    explicit BufferState(std::shared_ptr<DeviceState> owner) : device(std::move(owner)) {}
    // What its end does: the memory goes back, or is given up where it may still be used. Waits for work, and for other
    // threads that stand in the driver, within the runtime's timeout. Answers the streams that still name the state.
    std::vector<std::shared_ptr<StreamState>> end();

    const std::shared_ptr<DeviceState> device;
    FirstUse first_use;    // of memory that the host can never see
    BufferStorage memory;  // what it is
    OpenViews views;       // what the host has open of it; the lock of everything below, too
    StreamUses uses;       // which streams use it
    BufferSides sides;     // where it is copied or attached: which side has what
    HeldBlocks held;       // what gives the memory back
    OrderHistory order;    // guarded by the order checker

    // A buffer that shrank has fewer bytes than parts of it that were made before.
    bool holds(std::size_t first_byte, std::size_t count) const noexcept {
        return first_byte <= memory->bytes && count <= memory->bytes - first_byte;
    }
    static constexpr std::string_view part_beyond = "the buffer became smaller, and the part reaches beyond its end";
    static constexpr std::string_view part_again = "ask the buffer for a part that it still has, or grow it again";
    bool staged() const noexcept { return memory->staged(); }
    // Of copies between the two sides.
    void* copied_side() const noexcept { return memory->relay != nullptr ? memory->relay : memory->host; }
    // May the host have a part of it open while the rest is used? Only then must the parts of launches be told apart.
    bool views_of_parts() const noexcept {
        return memory->host != nullptr && !memory->aliased && !rules::by_turns(memory->path);
    }
    // Would a claim of these bytes draw their pages to the device? Expects the lock.
    bool prefetched_for(ArgumentUse use, const rules::ByteSpan& span) const noexcept {
        return memory->path == LaunchPath::prefetch && use != ArgumentUse::concurrent && views.pages_at_host(span);
    }
    void fill_relay();  // expects the lock, and nothing to copy from the relay
    void make_parted();

    // Expect the lock.
    void touch(StreamState& stream, std::uint64_t position, ArgumentUse use, const rules::ByteSpan& span = {});
    // Does an open view conflict with this use by a device, or may the memory only be read?
    bool host_forbids(ArgumentUse use, const rules::ByteSpan& span = {}) const noexcept;
    // What the use is then refused with. `argument`: what uses the buffer, for the message.
    Error refuse_at_host(std::string_view argument, ArgumentUse use, const rules::ByteSpan& span = {}) const;
    // Would opening any view of it find nothing to wait for, to copy, to note or to refuse (ADR 77)?
    bool opens_at_once() const noexcept;
    Error refuse_released(const char* what) const;
    // From here on nobody opens or uses a part. in_use: a view is open.
    Result<void> begin_release();

    // Device-only memory takes no lock on the first stream that uses it: nobody can view it, only release() wants to
    // know.
    void touch_device_only(StreamState& stream, std::uint64_t position) {
        if (first_use.is(stream)) {
            first_use.raise(position);
        } else {
            touch_locked(stream, position);
        }
    }
    // … while its owner may release it. invalid_handle: the owner does.
    Result<void> touch_parted(StreamState& stream, std::uint64_t position);

    // Was it made by this stream's device, used by this stream first, and can the host never see it?
    bool only_for(const StreamState& stream, const DeviceState& its_device) const noexcept {
        return first_use.is(stream) && device.get() == &its_device;
    }

    // What the books say about the way from another device to this very buffer (A4, A5).
    rules::PeerState peer_state(const DeviceState& user) const noexcept;
    // As its driver sees it: what attaching it to a stream needs.
    platform::Allocation whole() const noexcept {
        return {memory->kind, memory->host, memory->device_address, memory->bytes};
    }
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
    std::vector<Use> conflicting_locked(ArgumentUse host_use, const rules::ByteSpan& span);  // expects the lock
    Result<void> wait_for_uses(ArgumentUse host_use, Wait wait, const rules::ByteSpan& span = {});
    Result<void> wait_for_uses(const std::vector<Use>& found, ArgumentUse host_use, Wait wait);
    // As wait_for_uses(write), past what was lost with its device: a lost device runs nothing any more.
    Result<void> wait_until_unused(const Deadline& deadline);
    // Was the owner, or a device that used the buffer, lost?
    bool touched_by_loss();
    // Copies the device's side to the host's where it is newer, and waits for the copy.
    Result<void> download(Wait wait);
    // Can the memory be freed in the order of a stream? Not memory of other code, whose order is not known here.
    bool freed_in_order() const noexcept { return rules::is_pooled(held->block.kind) && !memory->adopted; }
    // Nothing uses the memory any more, or, where it is pooled, nothing will behind the stream that is returned
    // (nullptr: all uses were waited for). Waits for the device only where the kind of memory needs it.
    Result<std::shared_ptr<StreamState>> part_with_uses(Wait wait);
    // Gives everything back. On an error nothing has changed.
    Result<void> give_back(const std::shared_ptr<StreamState>& after);

private:
    void touch_locked(StreamState& stream, std::uint64_t position);
    void forget_ended_uses();
    Result<std::shared_ptr<StreamState>> gather_uses(const Deadline& deadline);
};

// A buffer in the making: whatever makes a buffer fills in what the memory is and the blocks that hold it, and calls
// make(). What did not become a buffer ends as one, so that a step that fails leaves nothing behind.
class NewBuffer {
public:
    explicit NewBuffer(std::shared_ptr<DeviceState> owner)
        : NewBuffer(std::make_unique<BufferState>(std::move(owner))) {}
    NewBuffer(const NewBuffer&) = delete;
    NewBuffer& operator=(const NewBuffer&) = delete;
    ~NewBuffer() {
        if (state_) (void)make();
    }

    // The kind, and what follows from it: the host's, and the path of launches. Nothing is staged.
    void be_of_kind(MemoryKind kind) noexcept;
    std::shared_ptr<BufferState> make();  // once; facts and blocks are the buffer's then
    const std::shared_ptr<DeviceState>& device() const noexcept { return state_->device; }

private:
    explicit NewBuffer(std::unique_ptr<BufferState> state) noexcept;
    std::unique_ptr<BufferState> state_;

public:
    StorageFacts& facts;
    BufferBlocks& blocks;
};

// Ends a buffer that neither an owner nor a view holds any more; later, where the driver refuses now what that needs.
void end_buffer(BufferState* buffer);
// Opens the buffer for the CPU: read, write (every byte), read_write or concurrent. Refuses conflicting views, waits
// for conflicting device work, brings the host's side up to date.
Result<ViewScope> open_scope(BufferState& buffer, ArgumentUse use, Wait wait, const rules::ByteSpan& span = {});
// … where open_at_once() was tried and did nothing.
Result<ViewScope> open_with_care(BufferState& buffer, ArgumentUse use, Wait wait, const rules::ByteSpan& span = {});
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
