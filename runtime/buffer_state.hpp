// BufferState: one buffer's memory, who has it open, who used it last, and which side of a staged pair is newer.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/wait.hpp>

#include <platform/driver.hpp>
#include <platform/os.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace isthmus::inline v0::detail {

struct DeviceState;
struct StreamState;

struct BufferState : std::enable_shared_from_this<BufferState> {
    explicit BufferState(std::shared_ptr<DeviceState> owner) : device(std::move(owner)) {}
    ~BufferState();

    // Set when the buffer is made, constant afterwards.
    const std::shared_ptr<DeviceState> device;
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::unknown;
    MemoryKind host_kind = MemoryKind::unknown;
    LaunchPath path = LaunchPath::pass;
    std::string_view reason;
    platform::Allocation allocation;  // of the driver; bytes 0: none
    platform::Allocation host_side;   // stage: the host's memory, where the driver made it
    platform::os::HostPages pages;    // where the system made it
    bool registered = false;          // pages were given to register_host
    void* host = nullptr;             // nullptr: the CPU may not view it
    std::uint64_t device_address = 0;

    std::mutex downloading;  // held for a copy to the host's side; before all other locks
    std::mutex mutex;        // guards what follows, but the atomics
    int readers = 0;         // open host views
    bool writer = false;
    bool host_newer = false;    // stage: the host wrote, the device's side is stale
    bool device_newer = false;  // stage: the device wrote, the host's side is stale
    std::uint64_t claims = 0;   // stage: operations that looked at the two, so that only the last one undoes itself
    StreamState* attached_to = nullptr;
    std::atomic<std::uint64_t> staged_bytes{0};

    struct Use {
        std::shared_ptr<StreamState> stream;
        std::uint64_t last = 0;        // position of the last operation that uses the buffer
        std::uint64_t last_write = 0;  // … that writes it
    };
    std::vector<Use> uses;               // one entry per stream
    StreamState* uploaded_on = nullptr;  // stage: where the last upload was queued, and its position
    std::uint64_t upload_position = 0;

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

    // What a release, or a view, must wait for.
    std::vector<Use> conflicting(bool host_writes);
    Result<void> wait_for_uses(bool host_writes, Wait wait);
    Result<void> wait_for_release();
    // As wait_for_uses(true), past what was lost with its device: a lost device runs nothing any more.
    Result<void> wait_until_unused(Wait wait);
    // Was the owner, or a device that used the buffer, lost?
    bool touched_by_loss();
    // Copies the device's side to the host's where it is newer, and waits for the copy.
    Result<void> download(Wait wait);
    // Frees everything; the caller has waited. Tries all parts and reports the first failure.
    Result<void> free_memory();

private:
    void touch_locked(StreamState& stream, std::uint64_t position);

    std::atomic<StreamState*> first_stream_{nullptr};
    std::atomic<std::uint64_t> first_position_{0};
};

// Opens the buffer for the CPU: read, write (every byte) or read_write. Refuses conflicting views, waits for
// conflicting device work, brings the host's side up to date. Also what a launch on the CPU device does.
Result<ViewScope> open_scope(const std::shared_ptr<BufferState>& buffer, ArgumentUse use, Wait wait);
// Opens the host's side of a lost device's buffer as it is, waiting for nothing.
Result<ViewScope> open_salvage(const std::shared_ptr<BufferState>& buffer);

}  // namespace isthmus::inline v0::detail
