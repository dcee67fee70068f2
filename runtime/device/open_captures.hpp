// OpenCaptures: how many captures of a runtime are open, on which threads, and what waits for the last of them to end.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace isthmus::inline v0::detail {

// Thread-safe. Frees that come while any capture is open are kept and done in their order when the last one has ended,
// however it ended (K10): the driver would accept some of them, and pull memory away under a graph that will use it.
class OpenCaptures {
public:
    bool any() const noexcept { return open_.load(std::memory_order_acquire) != 0; }
    // Did the calling thread begin one that is still open? Such a thread allocates by the graph or not at all (K13).
    bool here() const;
    void begun();
    // The capture that this thread began. Does what was put off when it was the last one.
    void ended(std::thread::id by = std::this_thread::get_id());
    // Does it now, or when the last open capture ends.
    void when_none_is_open(std::function<void()> work);

private:
    std::atomic<int> open_{0};
    mutable std::mutex mutex_;
    std::vector<std::thread::id> threads_;
    std::vector<std::function<void()>> put_off_;
};

}  // namespace isthmus::inline v0::detail
