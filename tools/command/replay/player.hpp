// SPDX-License-Identifier: Apache-2.0
// Plays a recording on a runtime, without its kernels: the same memory, views, launches and copies.
#pragma once

#include "costs.hpp"
#include "outcome.hpp"
#include "recording.hpp"

#include <isthmus/runtime.hpp>

#include <functional>
#include <optional>
#include <vector>

namespace isthmus::tools::replay {

struct Played {
    Outcome outcome;
    std::vector<std::optional<Became>> became;  // for each memory of the recording
    Uuid device;
    bool simulated = false;
};

// Opens the runtime with the observer of the replay.
using OpenObserved = std::function<Result<Runtime>(const ObserverCallbacks*)>;
using ChooseDevice = std::function<Device&(Runtime&)>;

// Calls of all threads are made by this thread, in the order in which they began. A runtime that does not open, and a
// device that does not exist, throw Failure.
Played play(const Recording& recording, const OpenObserved& open, const ChooseDevice& choose);

}  // namespace isthmus::tools::replay
