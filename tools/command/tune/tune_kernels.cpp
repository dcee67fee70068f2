// SPDX-License-Identifier: Apache-2.0
// Each thread of the reading kernels keeps four lanes in flight, so that the link's latency is hidden.
#include "tune_kernels.hpp"

namespace isthmus::tools::tune {

ISTHMUS_KERNEL(tune_read, isthmus::Index i, isthmus::View<std::uint64_t> sum,
               isthmus::View<const isthmus::tools::tune::Lane> lanes, std::uint64_t threads, std::uint64_t never) {
    std::uint64_t total = 0;
    std::uint64_t at = i;
    for (; at + 3 * threads < lanes.size(); at += 4 * threads) {
        const Lane a = lanes[at], b = lanes[at + threads], c = lanes[at + 2 * threads], d = lanes[at + 3 * threads];
        total += a.low + a.high + b.low + b.high + c.low + c.high + d.low + d.high;
    }
    for (; at < lanes.size(); at += threads) {
        const Lane a = lanes[at];
        total += a.low + a.high;
    }
    if (total == never) sum[0] = total;
}

ISTHMUS_KERNEL(tune_write, isthmus::Index i, isthmus::Out<isthmus::tools::tune::Lane> lanes, std::uint64_t threads,
               std::uint64_t salt) {
    for (std::uint64_t at = i; at < lanes.size(); at += threads) lanes[at] = Lane{at + salt, salt};
}

ISTHMUS_KERNEL(tune_update, isthmus::Index i, isthmus::View<isthmus::tools::tune::Lane> lanes, std::uint64_t threads,
               std::uint64_t salt) {
    std::uint64_t at = i;
    for (; at + 3 * threads < lanes.size(); at += 4 * threads) {
        Lane a = lanes[at], b = lanes[at + threads], c = lanes[at + 2 * threads], d = lanes[at + 3 * threads];
        a.low += salt, b.low += salt, c.low += salt, d.low += salt;
        lanes[at] = a, lanes[at + threads] = b, lanes[at + 2 * threads] = c, lanes[at + 3 * threads] = d;
    }
    for (; at < lanes.size(); at += threads) {
        Lane a = lanes[at];
        a.low += salt;
        lanes[at] = a;
    }
}

}  // namespace isthmus::tools::tune
