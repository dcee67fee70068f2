// SPDX-License-Identifier: Apache-2.0
// Which driver errors on a handle an import passes on.
#include "refused_handle.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {

HandleRefusal judge_refused_handle(const Error& why) noexcept {
    switch (why.code()) {
        case Code::driver_error:
        case Code::invalid_argument:
        case Code::invalid_handle: break;
        default: return HandleRefusal::passed_on;
    }
    constexpr int same_process = 201;
    return why.driver_code() == same_process ? HandleRefusal::own : HandleRefusal::unknown;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
