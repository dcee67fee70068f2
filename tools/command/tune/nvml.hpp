// SPDX-License-Identifier: Apache-2.0
// Nvml: the driver's management library, opened by name where it is there. It is only asked; it changes nothing.
#pragma once

#include <isthmus/uuid.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::tune {

// One GPU. For one thread.
class Nvml {
public:
    // Nothing: the library is missing (Jetson boards have none before JetPack 6), or does not know the device.
    static std::unique_ptr<Nvml> open(const Uuid& device);
    ~Nvml();
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    std::optional<double> clock_hz() const;       // of the multiprocessors, now
    std::optional<double> most_clock_hz() const;  // that they may have
    std::optional<double> power_limit_watts() const;
    std::optional<std::uint64_t> free_memory_bytes() const;
    // Why the clocks are lower than they could be, in words; idling and the set application clocks are not among them.
    std::vector<std::string> throttle_reasons() const;

private:
    struct Calls;
    explicit Nvml(std::unique_ptr<Calls> calls);
    std::unique_ptr<Calls> calls_;
};

}  // namespace isthmus::tools::tune
