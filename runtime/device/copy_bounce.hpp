// SPDX-License-Identifier: Apache-2.0
// CopyBounce: a device's few bounce buffers (pinned) for copies of pageable memory, kept for reuse.
#pragma once

#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceSession;
struct FenceEvent;

// Thread-safe. A holder of a range may wait for the device, but never for another range: this prevents deadlock.
class CopyBounce {
public:
    // Two of them stay in a core's second cache, while the one is filled and the other is copied.
    static constexpr std::size_t buffer_bytes = std::size_t{512} << 10;
    static constexpr std::size_t buffers = 8;

    struct Range {  // of a bounce buffer
        std::size_t slot = 0;
        std::byte* data = nullptr;  // nullptr: none was free
    };
    // Waits until a bounce buffer is free, for at most the runtime's wait timeout. The first call allocates the pinned
    // memory. Consecutive small copies of one stream share a buffer, so that many fit before one has to wait.
    Result<Range> take(DeviceSession& device, std::uint64_t stream_id, std::size_t bytes);
    // The same without waiting.
    Result<Range> try_take(DeviceSession& device, std::uint64_t stream_id, std::size_t bytes);
    // Takes ownership of one reference to the event after which the range is free; nullptr: it is free now.
    void give_back(DeviceSession& device, const Range& range, std::uint64_t stream_id, FenceEvent* event);
    // The device may still use the range, and no event marks the end of that use: the buffer is not reused.
    void give_up(const Range& range);
    // Frees the pinned memory if it is unused; true: memory was freed.
    bool trim(DeviceSession& device);
    std::size_t memory_bytes() const;
    // Called when the device closes, after all work was waited for.
    void close(DeviceSession& device);

private:
    struct Slot {
        std::size_t used = 0;  // bytes handed out since the buffer was last free
        std::uint64_t stream_id = 0;
        FenceEvent* event = nullptr;
        bool held = false;
        bool lost = false;
    };
    Result<void> make(DeviceSession& device);  // expects mutex_ to be held, as does note_finished()
    // Queries the events of at most `looks` buffers in use, until one has completed, or all of them.
    platform::Status note_finished(DeviceSession& device, std::size_t looks, bool all = false);
    bool idle(const Slot& slot) const { return !slot.held && !slot.lost && slot.event == nullptr; }
    Range hand_out(Slot& slot, std::uint64_t stream_id, std::size_t bytes);

    mutable std::mutex mutex_;
    platform::Allocation memory_;
    std::vector<platform::Allocation> abandoned_;  // all of their buffers were given up
    std::array<Slot, buffers> slots_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
