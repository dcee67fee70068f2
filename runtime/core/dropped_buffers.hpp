// SPDX-License-Identifier: Apache-2.0
// DroppedBuffers: buffers of one device that were dropped while work used them, and that end when it has ended.
#pragma once

#include "cache_rules.hpp"
#include "wait_pause.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct DeviceState;

// Thread-safe. Takes memory from the heap only to hold more buffers than ever before. A buffer here holds its device:
// close() and end_dropped_buffers() come before the runtime's end.
class DroppedBuffers {
public:
    // One load. Those that a thread is about to end count until it puts back what is left.
    bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
    std::uint64_t bytes() const;
    // Whether threads are about to end some.
    bool taken() const;
    // Ending::later: the buffer is here from now on. Otherwise nothing has changed.
    rules::Ending add(BufferState& buffer, const rules::Dropped& how, std::uint64_t limit_bytes);
    // Nothing can be added from now on.
    void close();

private:
    friend std::uint64_t end_dropped_buffers(DeviceState& device, bool ask);
    friend std::uint64_t end_all_dropped_buffers(DeviceState& device, Wait wait);
    friend bool end_oldest_dropped_buffer(DeviceState& device);
    struct One {
        BufferState* buffer = nullptr;
        std::uint64_t bytes = 0;
    };
    using All = std::vector<One>;
    // Each take() is followed by a put_back(), which is told how many of them the caller has ended, of how many bytes.
    All take(bool asks);
    // After close(), answers all that is left: the caller ends them.
    All put_back(All left, std::size_t ended, std::uint64_t ended_bytes);
    One take_oldest();
    void part_with(std::size_t buffers, std::uint64_t bytes);  // with the lock

    mutable std::mutex mutex_;
    All all_;                         // oldest first
    rules::Outstanding outstanding_;  // with those that threads have taken
    bool closed_ = false;
    std::atomic<std::size_t> count_{0};  // outstanding_.buffers
};

// Ends the dropped buffers whose work has ended, and answers how many bytes they had. `ask`: asks the driver how far
// their streams have come, one query for each stream; otherwise by what is known. Nothing happens while a capture is
// open. Expects no lock; one load if there is none.
std::uint64_t end_dropped_buffers(DeviceState& device, bool ask);
// Ends the oldest, and waits for its work. false: there is none.
bool end_oldest_dropped_buffer(DeviceState& device);
// Ends all of them, and waits for other threads that end some, but for the end of the runtime. Answers how many bytes
// all had. The wait is for the work of all together; memory whose work does not end in time is given up (R5).
std::uint64_t end_all_dropped_buffers(DeviceState& device, Wait wait);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
