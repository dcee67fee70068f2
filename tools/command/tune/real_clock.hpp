// SPDX-License-Identifier: Apache-2.0
// RealClock: turns of a device, timed. It keeps buffers from one turn to the next as far as its memory allows.
#pragma once

#include "clock.hpp"
#include "turn_buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace isthmus::tools::tune {

// The ways of these that the device has, in their order; each was tried with a small buffer. The way that the policy
// takes where nothing is declared but single reads of the device comes first.
std::vector<Way> ways_of(Device& device, const std::vector<Way>& candidates);

class RealClock : public TurnClock {
public:
    // `kept_bytes`: what all buffers together may take; the buffers of one size are kept in any case.
    RealClock(Device& device, std::uint64_t kept_bytes) : device_(device), kept_bytes_(kept_bytes) {}

    Result<double> turn(const Way& way, Role device, std::size_t bytes, int passes) override;
    Result<double> host(const Way& way, Role host, std::size_t bytes) override;
    void renew(std::size_t bytes) override;
    double now() override;

    // Gives back all memory.
    void clear() {
        held_.clear();
        retired_.clear();
    }

private:
    struct Held {
        Way way;
        std::size_t bytes = 0;
        std::uint64_t used = 0;  // the number of the last use
        TurnBuffer buffer;
    };
    Result<TurnBuffer*> find(const Way& way, std::size_t bytes);
    void make_room(std::size_t bytes);

    Device& device_;
    std::uint64_t kept_bytes_;
    std::uint64_t uses_ = 0;
    std::vector<Held> held_;
    std::deque<TurnBuffer> retired_;  // so that new memory is not the old one
};

}  // namespace isthmus::tools::tune
