// SPDX-License-Identifier: Apache-2.0
// What opening a runtime takes from observers and traces of the C interface.
#pragma once

#include <isthmus.h>
#include <isthmus/chrome_trace.hpp>
#include <isthmus/observer.hpp>
#include <isthmus/result.hpp>

#include <atomic>
#include <utility>

struct isthmus_trace {
    explicit isthmus_trace(isthmus::ChromeTrace made) : cpp(std::move(made)) {}
    isthmus::ChromeTrace cpp;
    std::atomic<bool> taken{false};  // by a runtime: from there on no observer is put behind it
};

namespace isthmus::c {

struct Call;
// The callbacks of a runtime's trace and of its observer, of which either may be NULL; nullptr: of neither. `made`
// keeps those of the observer, which is read at each callback.
Result<const ObserverCallbacks*> callbacks_of(const Call& call, const isthmus_observer* observer, isthmus_trace* trace,
                                              ObserverCallbacks& made);

}  // namespace isthmus::c
