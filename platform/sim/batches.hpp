// SPDX-License-Identifier: Apache-2.0
// Checks that batches of copies, prefetches and discards share.
#pragma once

#include "driver.hpp"

#include <cstddef>

namespace isthmus::sim {

// Observed for prefetches, assumed for batches: a capturing stream refuses them, and the capture is lost.
Result check_not_capturing(Driver& d, const StreamTarget& stream);

// Whether `ranges` indices ascend from 0 and stay below `count`, so that each entry has its range.
bool ascend_from_zero(const std::size_t* first_of, std::size_t ranges, std::size_t count);

}  // namespace isthmus::sim
