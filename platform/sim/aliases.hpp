// SPDX-License-Identifier: Apache-2.0
// What a kernel finds in memory that it is given under several addresses: through one of them the memory itself,
// through the others what was there when the kernel began, or at its last alias fence.
#pragma once

#include "driver.hpp"
#include "twins.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace isthmus::sim {

// The hardware keeps accesses to one address in order, not accesses to two addresses of the same memory, and may show
// what is stale for as long as the kernel runs and fences nothing. This one always does: each further address is a copy
// of its own, whose changes reach the memory, and which sees the memory's, at a fence and at the kernel's end. From the
// ninth fence of a kernel on its aliases are one memory, because copying for every thread of a large grid would take
// too long. Memory that an argument declares as used concurrently is never copied: what the CPU writes there meanwhile
// has to come through. Arguments alone are looked at, not addresses that lie in memory.
class AliasedMemory {
public:
    // Gives the pack the addresses to use. The driver's mutex held.
    AliasedMemory(Driver& d, const Twin& twin, std::byte* pack);
    ~AliasedMemory();
    AliasedMemory(const AliasedMemory&) = delete;
    AliasedMemory& operator=(const AliasedMemory&) = delete;

    void fence() noexcept;

private:
    struct Copy;   // of the memory under one further address
    struct Range;  // addresses without a gap, as the kernel gets them: the memory itself and copies, side by side
    bool build(const std::vector<Region*>& mappings, const std::vector<Region*>& copied);
    void forget() noexcept;  // unmaps what was built

    Driver& d_;
    std::vector<Range> ranges_;
    std::vector<Copy> copies_;
    int fences_left_ = 8;
};

}  // namespace isthmus::sim
