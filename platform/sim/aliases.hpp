// SPDX-License-Identifier: Apache-2.0
// Memory that a kernel gets under several addresses: through one address the kernel sees the memory itself, through the
// others its content at the kernel's start or at the last alias fence.
#pragma once

#include "driver.hpp"
#include "twins.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace isthmus::sim {

// The hardware orders accesses to one address, but not accesses to two addresses of the same memory, and may show stale
// data until the kernel executes a fence. The simulator always does: each further address is a copy, which exchanges
// changes with the memory at a fence and at the kernel's end. From the ninth fence of a kernel on its aliases are one
// memory, because copying for every thread of a large grid would take too long. Memory of an argument declared for
// concurrent use is never copied, because the CPU's writes must be visible there. Only arguments are examined, not
// addresses that are stored in memory.
class AliasedMemory {
public:
    // Replaces the addresses in the pack. Requires the driver's mutex.
    AliasedMemory(Driver& d, const Twin& twin, std::byte* pack);
    ~AliasedMemory();
    AliasedMemory(const AliasedMemory&) = delete;
    AliasedMemory& operator=(const AliasedMemory&) = delete;

    void fence() noexcept;

private:
    struct Copy;   // of the memory, under one further address
    struct Range;  // consecutive addresses as the kernel gets them: the memory itself and copies, side by side
    bool build(const std::vector<Region*>& mappings, const std::vector<Region*>& copied);
    void forget() noexcept;  // unmaps the copies

    Driver& d_;
    std::vector<Range> ranges_;
    std::vector<Copy> copies_;
    int fences_left_ = 8;
};

}  // namespace isthmus::sim
