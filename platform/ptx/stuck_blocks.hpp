// SPDX-License-Identifier: Apache-2.0
// Blocks and clusters whose threads all wait for each other: their kernel ends with a fault.
#pragma once

#include "state.hpp"

namespace isthmus::ptx {

// Groups that only the object at which they wait could release, and no others. Where that holds twice, and each
// group has tested in between, no object can change any more: shared memory is reached by the cluster alone, and
// copies in bulk are done at once.
void look_for_endless_waits(Cluster& cluster);

// The fault is that of lanes that wait for others of their warp, if there are any: it says where the first one
// waits.
void deadlock(Block& block);

}  // namespace isthmus::ptx
