// RunningServices: counting, refusing and putting off.
#include "running_services.hpp"

#include <algorithm>
#include <utility>

namespace isthmus::inline v0::detail {

Result<void> RunningServices::allow(rules::DriverUse use, std::string_view what) {
    if (!any()) return {};
    const rules::ServingAnswer& answer = rules::while_serving(use);
    if (!answer.waits) return {};
    forget_ended();
    const std::lock_guard lock(mutex_);
    if (services_.empty()) return {};
    return Error(Code::in_use,
                 std::string(what) + " was refused while the service '" + services_.front().name +
                     "' runs, because it would wait for it: " + std::string(answer.reason),
                 std::string(answer.remedy));
}

std::uint64_t RunningServices::begin(std::string name) {
    const std::lock_guard lock(mutex_);
    services_.push_back({++last_id_, std::move(name), {}});
    running_.store(static_cast<int>(services_.size()), std::memory_order_release);
    return last_id_;
}

void RunningServices::end(std::uint64_t id) {
    remove(id);
}

void RunningServices::watch(std::uint64_t id, HasEnded ended) {
    const std::lock_guard lock(mutex_);
    for (Service& service : services_) {
        if (service.id == id) service.ended = std::move(ended);
    }
}

bool RunningServices::put_off(rules::DriverUse use, std::function<void()> work) {
    if (!any() || !rules::while_serving(use).waits) return false;
    forget_ended();
    const std::lock_guard lock(mutex_);
    if (services_.empty()) return false;
    put_off_.push_back(std::move(work));
    return true;
}

// Asks without the lock: the answer comes from the driver.
void RunningServices::forget_ended() {
    std::vector<std::pair<std::uint64_t, HasEnded>> watched;
    {
        const std::lock_guard lock(mutex_);
        for (const Service& service : services_) {
            if (service.ended) watched.emplace_back(service.id, service.ended);
        }
    }
    for (const auto& [id, ended] : watched) {
        if (ended()) remove(id);
    }
}

void RunningServices::remove(std::uint64_t id) {
    std::vector<std::function<void()>> due;
    std::vector<Service> gone;  // ends without the lock: it may hold a stream
    {
        const std::lock_guard lock(mutex_);
        const auto found =
            std::find_if(services_.begin(), services_.end(), [&](const Service& known) { return known.id == id; });
        if (found == services_.end()) return;
        gone.push_back(std::move(*found));
        services_.erase(found);
        running_.store(static_cast<int>(services_.size()), std::memory_order_release);
        if (services_.empty()) due.swap(put_off_);
    }
    for (const std::function<void()>& work : due) work();
}

}  // namespace isthmus::inline v0::detail
