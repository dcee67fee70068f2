// SPDX-License-Identifier: Apache-2.0
// EventBlocks: which block is a thread's.
#include "event_blocks.hpp"

#include <algorithm>
#include <new>
#include <thread>

namespace isthmus::trace {
namespace {

// The block that the thread used last, and whose. Initial-exec: dynamic storage would be allocated at the first use.
struct LastUsed {
    std::uint64_t thread = 0;
    std::uint64_t blocks = 0;
    EventBlock* block = nullptr;
};
constinit thread_local LastUsed last [[gnu::tls_model("initial-exec")]];

}  // namespace

std::uint64_t this_thread() noexcept {
    static std::atomic<std::uint64_t> threads{0};
    if (last.thread == 0) last.thread = threads.fetch_add(1, std::memory_order_relaxed) + 1;
    return last.thread;
}

std::uint64_t EventBlocks::next_id() noexcept {
    static std::atomic<std::uint64_t> ids{0};
    return ids.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool EventBlocks::make(std::size_t threads, std::size_t events_each) noexcept {
    blocks_.reset(new (std::nothrow) EventBlock[threads]);
    if (blocks_ == nullptr) return false;
    for (std::size_t at = 0; at < threads; ++at) {
        blocks_[at].events.reset(new (std::nothrow) RecordedEvent[events_each]);
        if (blocks_[at].events == nullptr) return false;
    }
    threads_ = threads;
    events_each_ = events_each;
    return true;
}

EventBlock* EventBlocks::mine() noexcept {
    if (last.blocks == id_) return last.block;
    const std::uint64_t self = this_thread();
    EventBlock* found = nullptr;
    const std::size_t known = size();
    for (std::size_t at = 0; at < known && found == nullptr; ++at) {
        if (blocks_[at].owner.load(std::memory_order_relaxed) == self) found = &blocks_[at];  // stored by this thread
    }
    if (found == nullptr) {
        // Asked before it is counted, so that the number does not grow without end.
        const std::size_t at = known < threads_ ? taken_.fetch_add(1, std::memory_order_relaxed) : threads_;
        if (at >= threads_) {
            if (!closed_.load(std::memory_order_relaxed)) dropped_.fetch_add(1, std::memory_order_relaxed);
            return nullptr;
        }
        found = &blocks_[at];
        found->owner.store(self, std::memory_order_relaxed);
    }
    last.blocks = id_;
    last.block = found;
    return found;
}

std::size_t EventBlocks::size() const noexcept {
    return std::min(taken_.load(std::memory_order_relaxed), threads_);
}

bool EventBlocks::close() noexcept {
    if (closed_.exchange(true, std::memory_order_seq_cst)) return false;
    for (std::size_t at = 0; at < threads_; ++at) {
        while (blocks_[at].busy.load(std::memory_order_seq_cst)) std::this_thread::yield();
    }
    return true;
}

// The blocks themselves stay, small as they are: threads look at them before they see that they are closed.
void EventBlocks::give_back() noexcept {
    for (std::size_t at = 0; at < threads_; ++at) blocks_[at].events.reset();
}

std::uint64_t EventBlocks::recorded() const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < size(); ++at) sum += blocks_[at].count.load(std::memory_order_acquire);
    return sum;
}

}  // namespace isthmus::trace
