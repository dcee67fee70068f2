// SPDX-License-Identifier: Apache-2.0
// The result of a capture on the CPU device: ordered steps, and instances that run them.
#pragma once

#include <platform/driver.hpp>

#include "cpu_workers.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus::platform::cpu {

// One recorded operation. A kernel keeps its own copy of the arguments.
class Step {
public:
    static std::shared_ptr<const Step> of(const LaunchRequest& kernel);
    // As of(), for the one holder that may call take() later.
    static std::shared_ptr<Step> changeable(const LaunchRequest& kernel);
    static std::shared_ptr<const Step> of(std::function<Status()> work);

    std::uint64_t id() const noexcept { return id_; }                      // unique to this step
    const KernelInfo* kernel() const noexcept { return request_.kernel; }  // nullptr: no kernel
    Status run(CpuWorkers& workers) const;
    bool is_changeable() const noexcept { return changeable_; }
    // Becomes another launch, in the memory that it has. false: that is too small, and nothing changed. Only while the
    // caller is the only holder.
    bool take(const LaunchRequest& kernel) noexcept;

private:
    struct Free {
        void operator()(void* pack) const noexcept;
    };
    Step() noexcept;

    const std::uint64_t id_;
    LaunchRequest request_;
    std::unique_ptr<void, Free> pack_;
    std::size_t pack_room_bytes_ = 0;
    bool changeable_ = false;
    std::function<Status()> work_;
};
using Steps = std::vector<std::shared_ptr<const Step>>;

// Runs the kernel's CPU function over the whole index space, on the calling thread and the workers.
Status run_kernel(const LaunchRequest& request, CpuWorkers& workers);
// Runs the steps in order and stops at the first failure.
Status run(const Steps& steps, CpuWorkers& workers);

// Steps that can be replaced one by one. Runs are serialised, as in a driver; a replacement does not wait for a run and
// affects only runs that begin later. Thread-safe.
class Instance {
public:
    explicit Instance(Steps steps);
    Status run(CpuWorkers& workers);
    // Replaces a kernel step of the graph that this was made from. Code::invalid_handle: not a kernel, or not of this
    // instance.
    Status set_kernel(std::uint64_t id, const LaunchRequest& request);
    // Replaces all steps by another graph's and returns ""; otherwise nothing changes and the result is the difference.
    const char* update(Steps steps);

private:
    std::mutex mutex_;  // guards `steps_`, `spare_`, and the kernels of `played_`
    Steps steps_;
    std::shared_ptr<Step> spare_;                  // replaced last, for the next replacement
    std::map<std::uint64_t, std::size_t> places_;  // of the first graph's kernels
    std::mutex running_;                           // held during a run; taken before `mutex_`
    Steps played_;                                 // of the run; empty between runs, keeps its room
};

}  // namespace isthmus::platform::cpu
