// SPDX-License-Identifier: Apache-2.0
// ShardedCounter: its errors; the rest is inline.
#include <isthmus/concurrent/sharded_counter.hpp>

#include "concurrent_errors.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {

Error counter_without_slots() {
    return make_error<errors::sharded_counter_without_slots>();
}
Error no_such_counter_slot() {
    return make_error<errors::sharded_counter_slot>();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
