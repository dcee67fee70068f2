// SPDX-License-Identifier: Apache-2.0
// The simulated machine: the record that ISTHMUS_SIM names, with fast access to the facts that the simulator uses.
#pragma once

#include <machines/record.hpp>

#include <string>

namespace isthmus::sim {

class Machine {
public:
    // Reads ISTHMUS_SIM once; problem() has the reason if there is no machine.
    Machine();
    bool found() const { return problem_.empty(); }
    const std::string& problem() const { return problem_; }

    const platform::machines::MachineRecord& record() const { return record_; }
    const platform::machines::DeviceRecord& device(int ordinal) const { return record_.devices[ordinal]; }
    int device_count() const { return static_cast<int>(record_.devices.size()); }
    // 0 where the record does not have the attribute.
    int attribute(int ordinal, int id) const { return record_.devices[ordinal].facts.attribute(id).value_or(0); }
    const platform::machines::PeerRecord* peer(int ordinal, int other) const;

private:
    platform::machines::MachineRecord record_;
    std::string problem_;
};

const Machine& machine();  // read at the first call

}  // namespace isthmus::sim
