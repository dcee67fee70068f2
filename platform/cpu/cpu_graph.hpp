// What a capture on the CPU device leaves: steps in their order, and instances that run them.
#pragma once

#include <platform/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus::platform::cpu {

// One recorded operation; never changes. A kernel keeps its own copy of the arguments.
class Step {
public:
    static std::shared_ptr<const Step> of(const LaunchRequest& kernel);
    static std::shared_ptr<const Step> of(std::function<Status()> work);

    std::uint64_t id() const noexcept { return id_; }                      // never that of another step
    const KernelInfo* kernel() const noexcept { return request_.kernel; }  // nullptr: no kernel
    Status run() const;

private:
    struct Free {
        void operator()(void* pack) const noexcept;
    };
    Step() noexcept;

    const std::uint64_t id_;
    LaunchRequest request_;
    std::unique_ptr<void, Free> pack_;
    std::function<Status()> work_;
};
using Steps = std::vector<std::shared_ptr<const Step>>;

// Runs the kernel's CPU function over the whole index space, on the calling thread.
Status run_kernel(const LaunchRequest& request);
// In their order; the first that fails is the last that ran.
Status run(const Steps& steps);

// Steps that can be exchanged one by one. Runs follow each other, as a driver has it; what is exchanged meanwhile waits
// for no run and changes only those that begin later. Thread-safe.
class Instance {
public:
    explicit Instance(Steps steps);
    Status run();
    Steps steps() const;
    // Of a step of the graph that this was made from. Code::invalid_handle: it is no kernel, or none of this instance.
    Status set_kernel(std::uint64_t id, const LaunchRequest& request);
    // Exchanges all steps for those of another graph. Otherwise nothing has changed, and the answer is how they differ.
    const char* update(Steps steps);

private:
    mutable std::mutex mutex_;  // guards `steps_`
    Steps steps_;
    std::map<std::uint64_t, std::size_t> places_;  // of the first graph's kernels
    std::mutex running_;
};

}  // namespace isthmus::platform::cpu
