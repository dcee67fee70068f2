// RunningServices: the persistent kernels of one device, what is refused while they run, and what waits for their end.
#pragma once

#include <isthmus/result.hpp>

#include "service_rules.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::inline v0::detail {

// Thread-safe. Asking whether any service runs is one load.
class RunningServices {
public:
    // Has the kernel of a service ended by now, of its own accord or late?
    using HasEnded = std::function<bool()>;

    bool any() const noexcept { return running_.load(std::memory_order_acquire) != 0; }
    // Code::in_use, naming the service, where a call that begins `what` would wait for one in the driver.
    Result<void> allow(rules::DriverUse use, std::string_view what);
    std::uint64_t begin(std::string name);
    // Does what was put off when it was the last one. Expects no lock.
    void end(std::uint64_t id);
    // It counts until it is ended, or `ended` says that it has. `ended` holds neither device nor stream.
    void watch(std::uint64_t id, HasEnded ended);
    // Keeps `work` until no service runs; false: none does, and nothing was kept.
    bool put_off(rules::DriverUse use, std::function<void()> work);
    // Asks after all that are watched.
    void forget_ended();

private:
    struct Service {
        std::uint64_t id;
        std::string name;
        HasEnded ended;  // nothing: its kernel was not given to the driver yet
    };
    void remove(std::uint64_t id);

    std::atomic<int> running_{0};
    std::mutex mutex_;
    std::uint64_t last_id_ = 0;
    std::vector<Service> services_;
    std::vector<std::function<void()>> put_off_;
};

}  // namespace isthmus::inline v0::detail
