// SPDX-License-Identifier: Apache-2.0
// HostCalls: the closures given to a stream, from the call to their destruction, and what is deferred while one runs.
#pragma once

#include <isthmus/host_function.hpp>

#include "process.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The functions that the driver, or the CPU device, calls with the HostFunction as data: once, or at each launch of a
// graph.
void run_once(void* function);
void run_each_time(void* function);

// Thread-safe. Closures are destroyed without a lock: their destructors may run users' code.
class HostCalls {
public:
    void add(std::shared_ptr<HostFunction> function);
    bool any() const noexcept { return any_.load(std::memory_order_acquire); }
    // Destroys closures that have run.
    void reap();
    // For a device that runs nothing any more: destroys the closures that are not about to run. The driver still has
    // their addresses, so that an empty closure stays until the process ends.
    void drop_all();
    // Takes over those of `other`.
    void take(HostCalls& other);

private:
    std::mutex mutex_;
    std::vector<std::shared_ptr<HostFunction>> functions_;
    std::atomic<bool> any_{false};
};

// Destructors deferred from host functions, and other work that needs a driver call; drained by the next wait or
// allocation. Thread-safe.
class AfterHostFunctions {
public:
    void put_off(std::function<void()> work);
    void drain();

private:
    std::mutex mutex_;
    std::vector<std::function<void()>> work_;
    std::atomic<bool> any_{false};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
