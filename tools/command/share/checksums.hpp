// SPDX-License-Identifier: Apache-2.0
// Checksums of frames, and one number for all of them, by which two processes are compared.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::tools::share {

// The checksum of each frame is kept until the end, so the count is bounded.
inline constexpr std::uint64_t max_checksums = 100000;

// An error text about the options; empty: they are valid. `frames` 0: no number was given.
inline std::string checksums_problem(bool checksums, std::uint64_t frames) {
    if (!checksums || (frames != 0 && frames <= max_checksums)) return {};
    return "--checksums keeps a number for each frame: give --frames, at most " + std::to_string(max_checksums) +
           "; without --checksums, the digest at the end is of all frames";
}

inline std::string hex(std::uint64_t value) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
    return digits;
}

// FNV-1a over 64 bits, eight bytes at a step. It detects errors, not manipulation.
class Checksums {
public:
    explicit Checksums(bool keep) : keep_(keep) {}
    void add(std::uint64_t number, std::span<const std::uint8_t> frame) {
        std::uint64_t value = start;
        std::size_t at = 0;
        for (; at + 8 <= frame.size(); at += 8) {
            std::uint64_t word = 0;
            for (std::size_t byte = 0; byte < 8; ++byte) word |= std::uint64_t{frame[at + byte]} << (8 * byte);
            value = (value ^ word) * prime;
        }
        for (; at < frame.size(); ++at) value = (value ^ frame[at]) * prime;
        candidate_ = {number, value};
    }
    // Includes the frame that was added last. A reader calls it when the frame was complete.
    void accept() {
        all_ = ((all_ ^ candidate_.first) * prime ^ candidate_.second) * prime;
        if (keep_) frames_.push_back(candidate_);
    }
    std::string digest() const { return hex(all_); }
    const std::vector<std::pair<std::uint64_t, std::uint64_t>>& frames() const noexcept { return frames_; }

private:
    static constexpr std::uint64_t start = 0xcbf29ce484222325u;
    static constexpr std::uint64_t prime = 0x100000001b3u;
    bool keep_;
    std::uint64_t all_ = start;
    std::pair<std::uint64_t, std::uint64_t> candidate_{};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> frames_;
};

}  // namespace isthmus::tools::share
