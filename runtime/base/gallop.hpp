// SPDX-License-Identifier: Apache-2.0
// leading_done: how many of a row are done, where those that are stand in front, asking few of them.
#pragma once

#include <cstddef>

namespace isthmus {
inline namespace v0 {
namespace detail {

// ask(at) → bool. One question where none is done; at most 2 log2(n) + 2 where n are, however long the row is.
template <class Ask>
std::size_t leading_done(std::size_t count, Ask ask) {
    std::size_t done = 0, step = 1;  // all before `done` are done
    std::size_t not_done = count;    // whoever stands here is not, or the row ends here
    while (done < not_done) {        // steps that double, from what is known
        const std::size_t at = done + step - 1;
        if (at >= not_done) break;
        if (!ask(at)) {
            not_done = at;
            break;
        }
        done = at + 1;
        step *= 2;
    }
    while (done < not_done) {  // then halves
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
