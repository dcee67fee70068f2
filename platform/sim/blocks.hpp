// SPDX-License-Identifier: Apache-2.0
// The block of mapped memory that contains an address, where its program divides the reservation (isthmus_sim_lend).
#pragma once

#include "types.hpp"

#include <cstddef>
#include <optional>

namespace isthmus::sim {

class Driver;

struct BlockInUse {
    Address first = 0;
    std::size_t bytes = 0;
};
// nullopt: the reservation has no blocks, or the address is in none. Requires the driver's mutex.
std::optional<BlockInUse> block_in_use(const Driver& d, Address address);

}  // namespace isthmus::sim
