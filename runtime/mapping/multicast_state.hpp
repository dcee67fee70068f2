// SPDX-License-Identifier: Apache-2.0
// Team: marks physical memory as a multicast object, and records what of its devices is bound to it.
#pragma once

#include "virtual_memory_state.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct Team {
    Team(std::size_t devices, std::size_t asked, std::size_t unit, bool with_others)
        : size(devices), asked_bytes(asked), granularity(unit), shared(with_others) {}

    // A bound range; holds its memory.
    struct Bound {
        std::shared_ptr<PhysicalState> memory;  // of its device
        std::size_t offset = 0;                 // in the object
        std::size_t bytes = 0;
    };

    const std::size_t size;  // number of devices it was made for
    const std::size_t asked_bytes;
    const std::size_t granularity;
    const bool shared;  // with other processes

    mutable std::mutex mutex;  // guards the members below; lock order: after a reservation's
    DeviceStates joined;       // devices of this process
    std::vector<Bound> bound;  // oldest first

    DeviceStates joined_now() const {
        const std::lock_guard lock(mutex);
        return joined;
    }
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
