// SPDX-License-Identifier: Apache-2.0
// Figures for people: what a machine's memory costs beside the turns. No choice reads them.
#pragma once

#include "measurements.hpp"

#include <isthmus/runtime.hpp>

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace isthmus::tools::tune {

// The speed of one pass of the device, by way, role and size: from the turns with fewest and most passes.
std::vector<Figure> bandwidth_figures(const std::vector<TurnSample>& turns);
// The time of a turn with one pass over the smallest size.
std::vector<Figure> latency_figures(const std::vector<TurnSample>& turns);

struct FigureRequest {
    std::vector<Way> ways;
    std::size_t largest = 0;  // bytes; the figures use at most 64 MiB of it
    double until = 0;         // of steady_clock, in seconds; the figures that do not fit are left out
    std::function<void(double share, std::string_view what)> progress{};
};
// Hand-overs, copies, allocations, first touches, NUMA nodes, the CPU's own passes, and both sides at the same time.
std::vector<Figure> measure_figures(Runtime& runtime, Device& device, const FigureRequest& request);

}  // namespace isthmus::tools::tune
