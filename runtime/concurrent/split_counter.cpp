// SPDX-License-Identifier: Apache-2.0
// SplitCounter: its errors; the rest is inline.
#include <isthmus/concurrent/split_counter.hpp>

#include "concurrent_errors.hpp"

namespace isthmus::inline v0::detail {

Error counter_without_slots() {
    return make_error<errors::split_counter_without_slots>();
}
Error no_such_counter_slot() {
    return make_error<errors::split_counter_slot>();
}

}  // namespace isthmus::inline v0::detail
