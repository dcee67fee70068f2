// SPDX-License-Identifier: Apache-2.0
// Order statistics: the interval between two ranks encloses the median as often as the binomial distribution says.
#include "statistics.hpp"

#include <algorithm>
#include <cmath>

namespace isthmus::tools::tune {

std::size_t rank_of_confidence(std::size_t count) {
    if (count < 6) return 1;
    // P(Bin(count, 1/2) < k) is the probability that the median lies below the k-th smallest value.
    constexpr double on_one_side = 0.025;
    const auto n = static_cast<double>(count);
    double below = 0;
    std::size_t rank = 0;
    for (std::size_t k = 0; k < count / 2; ++k) {
        const auto i = static_cast<double>(k);
        below += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) - n * std::log(2.0));
        if (below > on_one_side) break;
        rank = k + 1;
    }
    return std::max<std::size_t>(rank, 1);
}

Sample sample_of(std::vector<double> times) {
    Sample sample;
    if (times.empty()) return sample;
    std::sort(times.begin(), times.end());
    const std::size_t count = times.size();
    const std::size_t rank = rank_of_confidence(count);
    sample.median = count % 2 == 1 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
    sample.low = times[rank - 1];
    sample.high = times[count - rank];
    sample.count = static_cast<int>(count);
    return sample;
}

bool is_stable(const Sample& sample, double share) {
    constexpr double resolution = 50e-9;  // of steady_clock, with the calls that read it
    constexpr int least = 3;              // fewer show no spread
    if (sample.count < least) return false;
    const double allowed = std::max(sample.median * share, resolution);
    return sample.high - sample.median <= allowed && sample.median - sample.low <= allowed;
}

}  // namespace isthmus::tools::tune
