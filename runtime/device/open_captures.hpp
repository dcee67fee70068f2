// SPDX-License-Identifier: Apache-2.0
// OpenCaptures: how many captures of a runtime are open, on which threads, and the work deferred to the end of the
// last.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Thread-safe. Frees issued while any capture is open are deferred, and done in order when the last capture has ended,
// on every path (K10): the driver would accept some of them, and free memory that a graph is going to use.
class OpenCaptures {
public:
    bool any() const noexcept { return open_.load(std::memory_order_acquire) != 0; }
    // true: the calling thread began a capture that is still open. Such a thread may only allocate as part of the graph
    // (K13).
    bool here() const;
    void begun();
    // Ends the capture that this thread began. If it was the last open capture, does the deferred work.
    void ended(std::thread::id by = std::this_thread::get_id());
    // Does the work now, or when the last open capture ends.
    void when_none_is_open(std::function<void()> work);

private:
    std::atomic<int> open_{0};
    mutable std::mutex mutex_;
    std::vector<std::thread::id> threads_;
    std::vector<std::function<void()>> put_off_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
