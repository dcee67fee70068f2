// SPDX-License-Identifier: Apache-2.0
// ViewWord: the word that records a buffer's open host views, its bits, and when one operation on it opens or closes a
// view. Pure; ViewLock carries it out.
#pragma once

#include <cstdint>

namespace isthmus::rules {

struct ViewWord {
    using Bits = std::uint32_t;
    static constexpr Bits locked = 1;
    static constexpr Bits contended = 2;  // a thread may sleep until it is unlocked
    // Opening takes the lock: there may be something to wait for, to copy, to note or to refuse. Changes under the
    // lock.
    static constexpr Bits slow = 4;
    static constexpr Bits read_only = 8;   // opening for writing takes the lock
    static constexpr Bits others = 16;     // views are open that are not counted here. Changes under the lock
    static constexpr Bits abandoned = 32;  // only views hold the buffer: it ends with the last of them
    static constexpr Bits writer = 64;
    static constexpr Bits reader = 128;  // times the number of readers
    static constexpr Bits max_readers = Bits{1} << 20;

    Bits bits = slow;

    constexpr bool has(Bits some) const noexcept { return (bits & some) != 0; }
    constexpr Bits readers() const noexcept { return bits / reader; }
    constexpr bool any_open() const noexcept { return has(writer | others) || bits >= reader; }
    // No view is open, and opening one for reading finds nothing to do.
    constexpr bool at_rest() const noexcept { return (bits & ~read_only) == 0; }

    // What opening such a view adds, and closing it subtracts.
    static constexpr Bits step(bool writes) noexcept { return writes ? writer : reader; }
    // Whether a view may be opened without the lock. Readers may open beside readers; a writer is alone.
    constexpr bool opens_at_once(bool writes) const noexcept {
        return writes ? bits == 0 : !has(locked | slow | others | abandoned | writer | reader * max_readers);
    }
    // Whether a stream that claimed the memory before claims it again by a store alone: opening any view takes the
    // lock, nobody has it, and no view is open.
    constexpr bool claimed_again() const noexcept { return (bits & ~read_only) == slow; }
    // Whether the step that left this word closed the last view of a buffer that nothing else holds.
    constexpr bool ends() const noexcept { return has(abandoned) && !any_open(); }
};

}  // namespace isthmus::rules
