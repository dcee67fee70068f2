// What every exported function does first: count, play planned faults, refuse where the process may not call.
#pragma once

#include "driver.hpp"
#include "exports.hpp"
#include "faults.hpp"

namespace isthmus::sim {

// 0: go on. Answers of a process that forked (3), is exiting (4), never called cuInit (3), or calls from inside one
// of its own host functions (800).
Result admission();

// Body: Result(Driver&).
template <class Body>
Result call(CallId id, Body&& body) {
    if (const Result planned = count_call(id)) return planned;
    if (const Result refused = admission()) return refused;
    Driver& d = *driver();
    d.engine().progress();
    return body(d);
}

// For functions that need no cuInit. Body: Result().
template <class Body>
Result call_without_driver(CallId id, Body&& body) {
    if (const Result planned = count_call(id)) return planned;
    return body();
}

// As call(), for functions of the current context: 201 without one, its device's sticky code after a fault.
// Body: Result(Driver&, Context&).
template <class Body>
Result call_in_context(CallId id, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        Context* context = nullptr;
        if (const Result refused = need_context(d, context)) return refused;
        return body(d, *context);
    });
}

}  // namespace isthmus::sim
