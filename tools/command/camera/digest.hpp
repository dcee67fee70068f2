// SPDX-License-Identifier: Apache-2.0
// Digest: one number for a run's corners, by which runs on different machines are compared.
#pragma once

#include "corner_tracker.hpp"

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace isthmus::tools::camera {

// FNV-1a over 64 bits. Numbers are hashed byte by byte, the lowest first, on every machine.
class Digest {
public:
    void add(std::uint32_t value) noexcept {
        for (int at = 0; at < 4; ++at) {
            value_ = (value_ ^ (value & 0xff)) * 0x100000001b3u;
            value >>= 8;
        }
    }
    // Hashes a frame: the count of corners, then x, y and score of each.
    void add_corners(std::span<const Corner> corners) noexcept {
        add(static_cast<std::uint32_t>(corners.size()));
        for (const Corner& corner : corners) {
            add(corner.x);
            add(corner.y);
            add(static_cast<std::uint32_t>(corner.score));
        }
    }
    std::uint64_t value() const noexcept { return value_; }
    std::string text() const {
        char digits[17];
        std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value_));
        return digits;
    }

private:
    std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace isthmus::tools::camera
