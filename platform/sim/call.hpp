// SPDX-License-Identifier: Apache-2.0
// The common start of every exported function: counts the call, applies planned faults, and refuses calls that the
// process may not make.
#pragma once

#include "driver.hpp"
#include "exports.hpp"
#include "faults.hpp"
#include "logs.hpp"
#include "statistics.hpp"

#include <new>
#include <stdexcept>

namespace isthmus::sim {

// 0: continue. Otherwise the code for a process that forked (3), is exiting (4), never called cuInit (3), or calls from
// inside one of its own host functions (800, except calls that were observed to work there).
Result admission(CallId id);

// Whether a call works although the calling thread's current context was destroyed; the other calls answer 709.
bool works_beside_a_dead_context(CallId id) noexcept;

// Counts and logs what a call answered. 600 is no failure.
inline Result answered(CallId id, Result code) {
    if (code != result::ok && code != result::not_ready) {
        count_statistics_answer(static_cast<int>(id), code);
        log_answer(id, code);
    }
    if (log_is_waiting.load(std::memory_order_relaxed)) deliver_log();
    return code;
}

template <class Body>
Result call_uncounted(CallId id, Body&& body) {
    if (const Result planned = count_call(id)) return planned;
    if (const Result refused = admission(id)) return refused;
    Driver& d = *driver();
    if (current_is_dead(d) && !works_beside_a_dead_context(id)) return result::context_is_destroyed;
    d.engine().progress();
    try {
        return body(d);
    } catch (const std::bad_alloc&) {
        return result::out_of_memory;
    } catch (const std::length_error&) {  // of a container, for a size that no program can have
        return result::out_of_memory;
    }
}

// Body: Result(Driver&).
template <class Body>
Result call(CallId id, Body&& body) {
    return answered(id, call_uncounted(id, body));
}

// For functions that do not need cuInit. Body: Result().
template <class Body>
Result call_without_driver(CallId id, Body&& body) {
    const Result planned = count_call(id);
    return answered(id, planned != result::ok ? planned : body());
}

// As call(), for functions of the current context: 201 without one, and the device's sticky code after a fault. Body:
// Result(Driver&, Context&).
template <class Body>
Result call_in_context(CallId id, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        Context* context = nullptr;
        if (const Result refused = need_context(d, context)) return refused;
        return body(d, *context);
    });
}

// As call_in_context(), for functions that answer on a lost device too (observed).
template <class Body>
Result call_in_lost_context(CallId id, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        Context* context = nullptr;
        const Result refused = need_context(d, context);
        if (!context) return refused;
        return body(d, *context);
    });
}

}  // namespace isthmus::sim
