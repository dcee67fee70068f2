// SPDX-License-Identifier: Apache-2.0
// Green contexts: a share of a device's multiprocessors, with streams of its own. Everything else of it is the primary
// context's. The simulator keeps the shares and does not play them: kernels run as fast as everywhere.
#pragma once

#include "driver.hpp"

#include <vector>

namespace isthmus::sim {

// Multiprocessors of one device, from one split or not split at all.
struct Share {
    int device = 0;
    unsigned begin = 0, count = 0;
    std::uint64_t split = 0;  // the number of the split that made it; 0: it may be split
};

// What cuDevResourceGenerateDesc makes.
struct ResourceDescription {
    int device = 0;
    unsigned count = 0;
};

struct GreenContext {
    Context* context = nullptr;  // of cuCtxFromGreenCtx
    int device = 0;
    unsigned count = 0;  // of multiprocessors
    std::uint64_t id = 0;
};

// The sizes in which a device of this major compute capability is split.
struct ShareSizes {
    unsigned least, multiple;
};
ShareSizes share_sizes(int cc_major, bool ignore_coscheduling) noexcept;

}  // namespace isthmus::sim
