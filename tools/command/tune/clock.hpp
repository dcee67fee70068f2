// SPDX-License-Identifier: Apache-2.0
// TurnClock: what measures one turn. The sampler sees only this interface, so that real devices and synthetic machines
// with known cost functions are the same to it.
#pragma once

#include "measurements.hpp"

#include <isthmus/result.hpp>

#include <cstddef>

namespace isthmus::tools::tune {

// Sizes are multiples of 64 bytes. For one thread.
class TurnClock {
public:
    virtual ~TurnClock() = default;
    // The seconds of one turn (measurements.hpp). The first use of the memory by either side, and the allocation, are
    // not part of the time. Errors: those of allocations and launches; the sampler then leaves the point out.
    virtual Result<double> turn(const Way& way, Role device, std::size_t bytes, int passes) = 0;
    // The seconds of one pass of the host over memory that it had its turn with just before.
    virtual Result<double> host(const Way& way, Role host, std::size_t bytes) = 0;
    // The next turns of this size get other memory: where a buffer lies in caches and memory channels changes a turn by
    // a tenth and more, and a program's buffers lie anywhere.
    virtual void renew(std::size_t bytes) = 0;
    // Seconds since a fixed time, which allocations and turns advance.
    virtual double now() = 0;
};

}  // namespace isthmus::tools::tune
