// What an import says where the driver did not open a handle of another process.
#pragma once

#include <isthmus/result.hpp>

namespace isthmus::inline v0::detail {

// Static storage.
struct HandleWords {
    const char* own;      // the handle is one of this very process
    const char* unknown;  // the driver knows no such handle
    const char* own_remedy;
    const char* unknown_remedy;
};

// `why` is what the driver answered. What it says to a handle that it does not know differs by what is wrong with it
// (observed on driver 580: 205 for no handle, 201 within one process, 999 for no memory), and becomes invalid_argument;
// what has another cause is passed on: a lost device, a missing function or permission, memory or files that ran short.
Error refused_handle(Error why, const HandleWords& words);

}  // namespace isthmus::inline v0::detail
