// SPDX-License-Identifier: Apache-2.0
// What the turns of a recording's shared buffers take by a measured profile. Pure.
#pragma once

#include "recording.hpp"
#include "tune/cost_model.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace isthmus::tools::replay {

// What memory of the recording became on a machine.
struct Became {
    MemoryKind kind = MemoryKind::unknown;
    LaunchPath path = LaunchPath::pass;
};

// How often each memory went from the host to the device: the first use by a device, and each one behind a host view.
std::vector<std::uint64_t> turns(const Recording& recording);

// What a shared use is measured as.
tune::UseCase use_case(const SharedUse& use);

// The time of all turns of shared buffers; passes and sizes as they were declared. Nothing: none of them was measured.
// `became` has an element for each memory of the recording.
std::optional<double> hand_over_seconds(const Recording& recording, const std::vector<std::optional<Became>>& became,
                                        const tune::CostModel& costs);

}  // namespace isthmus::tools::replay
