// SPDX-License-Identifier: Apache-2.0
// Decides what is measured next, and when it has been measured often enough. Pure over TurnClock.
#pragma once

#include "clock.hpp"
#include "plan.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::tune {

struct SamplerRequest {
    Effort effort;
    std::vector<Way> ways;
    std::size_t largest = most_bytes;
    double until = 0;  // TurnClock::now() at which nothing more is measured
    // Called between rounds: the share of the time that is over, and what is measured now. May be empty.
    std::function<void(double share, std::string_view what)> progress{};
};

struct Sampled {
    std::vector<TurnSample> turns;
    std::vector<HostSample> hosts;
    // Median over all points of (the last visit's time / the first visit's); 1 where no point was visited twice. Above
    // 1 the machine became slower.
    double drift = 1;
    std::vector<std::string> notes;  // what was left out, and why
};

// Measures each size in visits. A visit goes in rounds over all ways, roles and passes of its size, so that a change of
// the machine's speed meets every way alike; points whose confidence interval is narrow enough are passed over.
// First all planned sizes, ascending, as far as the time is enough; then sizes between those where the best way
// changes; then every size once more, and what is not stable yet until the time is over. No turn begins that would
// end after `until`, as far as earlier ones tell.
Sampled sample_turns(TurnClock& clock, const SamplerRequest& request);

}  // namespace isthmus::tools::tune
