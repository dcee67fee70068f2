// SPDX-License-Identifier: Apache-2.0
// EventBlocks: a block of events for each thread that records. A thread writes to its own block alone, without a lock.
#pragma once

#include "recorded_event.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace isthmus::trace {

// A number of the calling thread, from 1; never that of another thread of this process.
std::uint64_t this_thread() noexcept;

struct alignas(64) EventBlock {
    std::atomic<std::uint64_t> owner{0};  // this_thread(); 0: nobody's
    std::atomic<bool> busy{false};        // its thread records just now
    std::atomic<std::size_t> count{0};    // written by its thread; the events before it are complete
    std::unique_ptr<RecordedEvent[]> events;
};

class EventBlocks {
public:
    // false: no memory.
    bool make(std::size_t threads, std::size_t events_each) noexcept;

    template <class Fill>
    void record(Fill fill) noexcept {
        EventBlock* const block = mine();
        if (block == nullptr) return;
        // Sequentially consistent, as the store in close(): either this thread sees that the blocks are closed, or
        // close() sees that it is busy.
        block->busy.store(true, std::memory_order_seq_cst);
        if (!closed_.load(std::memory_order_seq_cst)) {
            const std::size_t at = block->count.load(std::memory_order_relaxed);
            if (at < events_each_) {
                fill(block->events[at]);
                block->count.store(at + 1, std::memory_order_release);  // pairs with the acquire in recorded()
            } else {
                dropped_.fetch_add(1, std::memory_order_relaxed);
            }
        }
        block->busy.store(false, std::memory_order_release);  // pairs with the acquire in close()
    }

    // From here on nothing is recorded. Waits for threads that record just now. false: it was closed before.
    bool close() noexcept;
    // After close().
    std::size_t size() const noexcept;
    const EventBlock& operator[](std::size_t at) const noexcept { return blocks_[at]; }
    void give_back() noexcept;

    std::uint64_t recorded() const noexcept;
    std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

private:
    // The thread's block; nullptr: there is none left, which is counted.
    EventBlock* mine() noexcept;

    static std::uint64_t next_id() noexcept;

    const std::uint64_t id_ = next_id();  // an address serves again
    std::unique_ptr<EventBlock[]> blocks_;
    std::size_t threads_ = 0;
    std::size_t events_each_ = 0;
    std::atomic<std::size_t> taken_{0};  // may exceed threads_
    std::atomic<bool> closed_{false};
    std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace isthmus::trace
