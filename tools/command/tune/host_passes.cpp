// SPDX-License-Identifier: Apache-2.0
// Loops without dependencies from lane to lane, so that the memory's speed is measured and not the adder's.
#include "host_passes.hpp"

#include <cstddef>

namespace isthmus::tools::tune {
namespace {

// The compiler must take it that the memory was written, or that the value is needed.
void keep(const void* memory) noexcept {
    asm volatile("" : : "g"(memory) : "memory");
}
void keep(std::uint64_t value) noexcept {
    asm volatile("" : : "r"(value));
}

}  // namespace

void write_lanes(std::span<Lane> lanes, std::uint64_t salt) noexcept {
    Lane* const data = lanes.data();
    for (std::size_t at = 0; at < lanes.size(); ++at) data[at] = {at + salt, salt};
    keep(data);
}

void read_lanes(std::span<const Lane> lanes) noexcept {
    const Lane* const data = lanes.data();
    std::uint64_t a = 0, b = 0, c = 0, d = 0;
    std::size_t at = 0;
    for (; at + 3 < lanes.size(); at += 4) {
        a += data[at].low + data[at].high;
        b += data[at + 1].low + data[at + 1].high;
        c += data[at + 2].low + data[at + 2].high;
        d += data[at + 3].low + data[at + 3].high;
    }
    for (; at < lanes.size(); ++at) a += data[at].low + data[at].high;
    keep(a + b + c + d);
}

void update_lanes(std::span<Lane> lanes, std::uint64_t salt) noexcept {
    Lane* const data = lanes.data();
    for (std::size_t at = 0; at < lanes.size(); ++at) data[at].low += salt;
    keep(data);
}

}  // namespace isthmus::tools::tune
