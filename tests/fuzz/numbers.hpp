// SPDX-License-Identifier: Apache-2.0
// The random numbers by which inputs are changed: the same for a seed, everywhere.
#pragma once

#include <cstdint>

class Numbers {  // xorshift64*
public:
    explicit Numbers(std::uint64_t seed) : state_(seed * 2 + 1) {}
    std::uint64_t below(std::uint64_t limit) {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return (state_ * 0x2545f4914f6cdd1du >> 16) % limit;
    }

private:
    std::uint64_t state_;
};
