// SPDX-License-Identifier: Apache-2.0
// leading_done(): the number of done elements at the front of a sequence, found with few queries.
#pragma once

#include <cstddef>

namespace isthmus {
inline namespace v0 {
namespace detail {

// ask(index) → bool: is this element done? All done elements precede the others. One query if none is done; at most 2
// log2(n) + 2 queries if n are done, whatever the length of the sequence.
template <class Ask>
std::size_t leading_done(std::size_t count, Ask ask) {
    std::size_t done = 0, step = 1;  // all elements before `done` are done
    std::size_t not_done = count;    // this element is not done, or it is the end
    while (done < not_done) {        // doubling steps from the known part
        const std::size_t at = done + step - 1;
        if (at >= not_done) break;
        if (!ask(at)) {
            not_done = at;
            break;
        }
        done = at + 1;
        step *= 2;
    }
    while (done < not_done) {  // bisection
        const std::size_t middle = done + (not_done - done) / 2;
        if (ask(middle)) {
            done = middle + 1;
        } else {
            not_done = middle;
        }
    }
    return done;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
