// SPDX-License-Identifier: Apache-2.0
// Errors of an import whose handle from another process the driver did not open.
#pragma once

#include <isthmus/result.hpp>

#include "error_entry.hpp"

#include <cstdint>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The driver's code for an unknown handle depends on what is wrong with it (observed on driver 580: 205 for no handle,
// 201 within one process, 999 for no memory).
enum class HandleRefusal : std::uint8_t {
    passed_on,  // lost device, missing function or permission, no memory or descriptors left
    own,        // the handle was made by this process
    unknown,    // the driver does not know the handle
};
HandleRefusal judge_refused_handle(const Error& why) noexcept;

// `why`: the driver's error. Codes that mean an unknown handle become invalid_argument; other errors are passed on. Own
// and Unknown: entries with the code invalid_argument and the driver's message as their only field.
template <const auto& Own, const auto& Unknown>
Error refused_handle(Error why) {
    const HandleRefusal refusal = judge_refused_handle(why);
    if (refusal == HandleRefusal::passed_on) return why;
    // Some callers give one entry for both cases. NOLINTNEXTLINE(bugprone-branch-clone)
    Error refused = refusal == HandleRefusal::own ? make_error<Own>(why.message()) : make_error<Unknown>(why.message());
    return std::move(refused).from_call(why.call(), why.driver_code());
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
