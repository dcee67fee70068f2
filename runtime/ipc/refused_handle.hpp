// What an import says where the driver did not open a handle of another process.
#pragma once

#include <isthmus/result.hpp>

#include "error_entry.hpp"

#include <cstdint>
#include <utility>

namespace isthmus::inline v0::detail {

// What the driver says to a handle that it does not know differs by what is wrong with it (observed on driver 580: 205
// for no handle, 201 within one process, 999 for no memory).
enum class HandleRefusal : std::uint8_t {
    passed_on,  // a lost device, a missing function or permission, memory or files that ran short
    own,        // the handle is one of this very process
    unknown,    // the driver knows no such handle
};
HandleRefusal judge_refused_handle(const Error& why) noexcept;

// `why` is what the driver answered. What it says to a handle that it does not know differs by what is wrong with it, and
// becomes invalid_argument; what has another cause is passed on. Own and Unknown: entries with the code invalid_argument
// and the driver's message as their one field.
template <const auto& Own, const auto& Unknown>
Error refused_handle(Error why) {
    const HandleRefusal refusal = judge_refused_handle(why);
    if (refusal == HandleRefusal::passed_on) return why;
    Error refused = refusal == HandleRefusal::own ? make_error<Own>(why.message()) : make_error<Unknown>(why.message());
    return std::move(refused).from_call(why.call(), why.driver_code());
}

}  // namespace isthmus::inline v0::detail
