// SPDX-License-Identifier: Apache-2.0
// Steps and instances: owned arguments, ordered runs, replaceable kernels.
#include "cpu_graph.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace isthmus::platform::cpu {
namespace {

// No parameter needs more; the pack's type, which would tell, is erased.
constexpr std::size_t pack_alignment_bytes = 64;

std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Status run_kernel(const LaunchRequest& request, CpuWorkers& workers) {
    if (!request.kernel || !request.kernel->twin) return {Code::unsupported, ENOEXEC, "launch"};
    const Extent& extent = request.extent;
    if (extent.x == 0 || extent.y == 0 || extent.z == 0) return {};
    workers.run(request);
    return {};
}

Status run(const Steps& steps, CpuWorkers& workers) {
    for (const std::shared_ptr<const Step>& step : steps) {
        if (const Status status = step->run(workers); !status.ok()) return status;
    }
    return {};
}

void Step::Free::operator()(void* pack) const noexcept {
    std::free(pack);
}

Step::Step() noexcept : id_(next_id()) {}

std::shared_ptr<Step> Step::changeable(const LaunchRequest& kernel) {
    std::shared_ptr<Step> step(new Step);
    const std::size_t bytes = kernel.kernel->pack_bytes;
    const std::size_t rounded = (bytes + pack_alignment_bytes) / pack_alignment_bytes * pack_alignment_bytes;
    step->pack_.reset(std::aligned_alloc(pack_alignment_bytes, rounded));
    step->pack_room_bytes_ = step->pack_ ? rounded : 0;
    step->changeable_ = true;
    if (!step->take(kernel)) step->request_ = kernel;  // without a pack: run() says so
    return step;
}

std::shared_ptr<const Step> Step::of(const LaunchRequest& kernel) {
    std::shared_ptr<Step> step = changeable(kernel);
    step->changeable_ = false;
    return step;
}

bool Step::take(const LaunchRequest& kernel) noexcept {
    const std::size_t bytes = kernel.kernel->pack_bytes;
    if (bytes >= pack_room_bytes_) return false;
    if (bytes > 0) std::memcpy(pack_.get(), kernel.pack, bytes);
    request_ = kernel;
    request_.pack = pack_.get();
    return true;
}

std::shared_ptr<const Step> Step::of(std::function<Status()> work) {
    std::shared_ptr<Step> step(new Step);
    step->work_ = std::move(work);
    return step;
}

Status Step::run(CpuWorkers& workers) const {
    if (work_) return work_();
    if (!pack_) return {Code::out_of_memory, ENOMEM, "aligned_alloc"};
    return run_kernel(request_, workers);
}

Instance::Instance(Steps steps) : steps_(std::move(steps)) {
    for (std::size_t at = 0; at < steps_.size(); ++at) {
        if (steps_[at]->kernel() != nullptr) places_[steps_[at]->id()] = at;
    }
}

Status Instance::run(CpuWorkers& workers) {
    const std::lock_guard one_at_a_time(running_);
    {
        const std::lock_guard lock(mutex_);
        played_ = steps_;
    }
    const Status status = cpu::run(played_, workers);
    {
        const std::lock_guard lock(mutex_);  // set_kernel() looks whether it is a step's only holder
        for (std::shared_ptr<const Step>& step : played_) {
            if (step->is_changeable()) step.reset();
        }
    }
    played_.clear();  // without the lock: a step may destroy what a host function holds
    return status;
}

Status Instance::set_kernel(std::uint64_t id, const LaunchRequest& request) {
    const auto place = places_.find(id);
    if (place == places_.end()) return {Code::invalid_handle, EINVAL, "set_kernel_arguments"};
    const Extent& extent = request.extent;
    if (!request.kernel || !request.kernel->twin || extent.x == 0 || extent.y == 0 || extent.z == 0) {
        return {Code::invalid_argument, EINVAL, "set_kernel_arguments"};
    }
    std::shared_ptr<Step> step;
    {
        const std::lock_guard lock(mutex_);
        if (spare_ && spare_.use_count() == 1 && spare_->take(request)) step = std::move(spare_);
    }
    if (!step) step = Step::changeable(request);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Step>& here = steps_[place->second];
    // All holders of a step that this instance made are its own members.
    if (here->is_changeable()) spare_ = std::const_pointer_cast<Step>(here);
    here = std::move(step);
    return {};
}

const char* Instance::update(Steps steps) {
    const std::lock_guard lock(mutex_);
    if (steps.size() != steps_.size()) return "the graphs have other nodes or edges";
    for (std::size_t at = 0; at < steps.size(); ++at) {
        if ((steps[at]->kernel() == nullptr) != (steps_[at]->kernel() == nullptr)) return "a node is of another type";
    }
    steps_ = std::move(steps);
    return "";
}

}  // namespace isthmus::platform::cpu
