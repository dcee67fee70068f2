// Which of the driver's answers to a handle an import passes on.
#include "refused_handle.hpp"

#include "composed.hpp"

namespace isthmus::inline v0::detail {

Error refused_handle(Error why, const HandleWords& words) {
    switch (why.code()) {
        case Code::driver_error:
        case Code::invalid_argument:
        case Code::invalid_handle: break;
        default: return why;
    }
    constexpr int same_process = 201;
    const bool own = why.driver_code() == same_process;
    return Error(Code::invalid_argument, composed("{} ({})", own ? words.own : words.unknown, why.message()),
                 own ? words.own_remedy : words.unknown_remedy)
        .from_call(why.call(), why.driver_code());
}

}  // namespace isthmus::inline v0::detail
