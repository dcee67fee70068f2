// The word that says who has a buffer open on the host: its bits, and when one operation on it opens or closes a view.
// Pure; ViewLock carries it out.
#pragma once

#include <cstdint>

namespace isthmus::rules {

struct ViewWord {
    using Bits = std::uint32_t;
    static constexpr Bits locked = 1;
    static constexpr Bits contended = 2;  // somebody may sleep until it is unlocked
    // Opening takes the lock: there may be something to wait for, to copy, to note or to refuse. Changes with the lock.
    static constexpr Bits slow = 4;
    static constexpr Bits read_only = 8;   // opening it for writing does
    static constexpr Bits others = 16;     // views are open that are not counted here. Changes with the lock
    static constexpr Bits abandoned = 32;  // nothing but views holds the buffer: it ends with the last of them
    static constexpr Bits writer = 64;
    static constexpr Bits reader = 128;  // times how many there are
    static constexpr Bits most_readers = Bits{1} << 20;

    Bits bits = slow;

    constexpr bool has(Bits some) const noexcept { return (bits & some) != 0; }
    constexpr Bits readers() const noexcept { return bits / reader; }
    constexpr bool any_open() const noexcept { return has(writer | others) || bits >= reader; }
    // No view is open, and opening one for reading would find nothing to do.
    constexpr bool at_rest() const noexcept { return (bits & ~read_only) == 0; }

    // What opening such a view adds, and closing it takes away.
    static constexpr Bits step(bool writes) noexcept { return writes ? writer : reader; }
    // May a view be opened without the lock? Beside readers a further one may be; a writer is alone.
    constexpr bool opens_at_once(bool writes) const noexcept {
        return writes ? bits == 0 : !has(locked | slow | others | abandoned | writer | reader * most_readers);
    }
    // Did the step that left this take the last view of a buffer that nothing else holds?
    constexpr bool ends() const noexcept { return has(abandoned) && !any_open(); }
};

}  // namespace isthmus::rules
