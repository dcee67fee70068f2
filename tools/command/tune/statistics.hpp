// SPDX-License-Identifier: Apache-2.0
// Medians with confidence intervals that assume nothing about how times are distributed.
#pragma once

#include "measurements.hpp"

#include <cstddef>
#include <vector>

namespace isthmus::tools::tune {

// The rank k (from 1) for which the k-th smallest and the k-th largest of `count` values enclose the median with a
// probability of at least 95 %: by the binomial distribution. Fewer than 6 values cannot enclose it so surely: then 1,
// the whole range of the values.
std::size_t rank_of_confidence(std::size_t count);

// Median and confidence interval of the times. No times: a Sample with count 0. Values far from the others change
// neither where they are few.
Sample sample_of(std::vector<double> times);

// Whether the interval is within `share` of the median on either side, or narrower than the resolution of clocks.
bool is_stable(const Sample& sample, double share);

}  // namespace isthmus::tools::tune
