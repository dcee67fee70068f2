// Which of the driver's answers to a handle an import passes on.
#include "refused_handle.hpp"

namespace isthmus::inline v0::detail {

HandleRefusal judge_refused_handle(const Error& why) noexcept {
    switch (why.code()) {
        case Code::device_lost:
        case Code::unsupported:
        case Code::out_of_memory:
        case Code::system_limit: return HandleRefusal::passed_on;
        default: break;
    }
    constexpr int same_process = 201;
    return why.driver_code() == same_process ? HandleRefusal::own : HandleRefusal::unknown;
}

}  // namespace isthmus::inline v0::detail
