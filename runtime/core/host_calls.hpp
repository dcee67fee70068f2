// HostCalls: the closures that a stream was given, from the call to their end; and what is put off while one runs.
#pragma once

#include <isthmus/host_function.hpp>

#include "process.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus::inline v0::detail {

// What the driver, or the CPU device, is given to call, with the HostFunction as its data: once, or at each launch of a
// graph.
void run_once(void* function);
void run_each_time(void* function);

// Thread-safe. Closures are destroyed without any lock: their ends may run users' code.
class HostCalls {
public:
    void add(std::shared_ptr<HostFunction> function);
    bool any() const noexcept { return any_.load(std::memory_order_acquire); }
    // Destroys those that have run.
    void reap();
    // Of a device that runs nothing any more: destroys those that nobody is about to run. The driver still knows where
    // they lay, so that an empty one stays there until the process ends.
    void drop_all();
    // Takes over another's.
    void take(HostCalls& other);

private:
    std::mutex mutex_;
    std::vector<std::shared_ptr<HostFunction>> functions_;
    std::atomic<bool> any_{false};
};

// What host functions let go of, and what only a driver call undoes: done by whoever waits or allocates next.
// Thread-safe.
class AfterHostFunctions {
public:
    void put_off(std::function<void()> work);
    void drain();

private:
    std::mutex mutex_;
    std::vector<std::function<void()>> work_;
    std::atomic<bool> any_{false};
};

}  // namespace isthmus::inline v0::detail
