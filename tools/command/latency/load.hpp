// SPDX-License-Identifier: Apache-2.0
// What disturbs the loop: threads that keep CPUs, memory, the page cache or the device busy until they are ended.
#pragma once

#include "plan.hpp"

#include <isthmus/device.hpp>
#include <isthmus/result.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace isthmus::tools::latency {

struct LoadReport {
    LoadKind kind = LoadKind::cpu;
    std::size_t threads = 0;
    std::uint64_t rounds = 0;  // how often its threads did their work
    std::string trouble{};     // why it did not run, or ended early; empty: it ran to the end
};

// Everything that a load needs is allocated and loaded by make(), so that none of it waits for a service. Call start()
// before the loop's thread is prepared: its threads must not inherit the priority. Each run starts and stops them.
class Loads {
public:
    // `small`: for devices whose work runs on this CPU, simulated ones and the CPU device.
    static std::unique_ptr<Loads> make(Device& device, const Request& request, bool small);
    virtual ~Loads() = default;  // ends the threads
    virtual void start() = 0;
    virtual std::vector<LoadReport> stop() = 0;  // what they did since start()
};

}  // namespace isthmus::tools::latency
