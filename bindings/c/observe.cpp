// SPDX-License-Identifier: Apache-2.0
// Observers and traces.
#include "observe.hpp"

#include "calls.hpp"
#include "handles.hpp"

#include <cstddef>
#include <string>

using namespace isthmus;

namespace {

isthmus_observed observed_of(int32_t what, std::string_view name, const ObservedFacts& facts) noexcept {
    isthmus_observed seen{};
    seen.size = sizeof seen;
    seen.what = what;
    seen.device = facts.device;
    seen.stream = facts.stream;
    seen.position = facts.position;
    seen.bytes = facts.bytes;
    seen.address = facts.address;
    seen.kind = static_cast<int32_t>(facts.kind);
    seen.code = static_cast<int32_t>(facts.code);
    seen.name = name.data();
    seen.name_length = name.size();
    seen.error = facts.error.data();
    seen.error_length = facts.error.size();
    seen.reason = facts.reason.data();
    seen.reason_length = facts.reason.size();
    return seen;
}

using Told = void (*isthmus_observer::*)(void*, const isthmus_observed*);

template <Told function, class What>
void tell(void* context, What what, std::string_view name, const ObservedFacts& facts) noexcept {
    const auto& observer = *static_cast<const isthmus_observer*>(context);
    if (observer.*function == nullptr) return;
    const isthmus_observed seen = observed_of(static_cast<int32_t>(what), name, facts);
    (observer.*function)(observer.context, &seen);
}

}  // namespace

Result<const ObserverCallbacks*> c::callbacks_of(const Call& call, const isthmus_observer* observer,
                                                 isthmus_trace* trace, ObserverCallbacks& made) {
    if (observer != nullptr) {
        // Refuses a size that no version has; the struct itself is read at each call.
        constexpr isthmus_observer nobody = ISTHMUS_OBSERVER_INIT;
        ISTHMUS_TRY(c::read_struct(call, "options.observer", observer, sizeof(isthmus_observer), nobody));
        made.context = const_cast<isthmus_observer*>(observer);
        made.begin = tell<&isthmus_observer::begin, Span>;
        made.end = tell<&isthmus_observer::end, Span>;
        made.mark = tell<&isthmus_observer::mark, Mark>;
    }
    const ObserverCallbacks* const next = observer != nullptr ? &made : nullptr;
    if (trace == nullptr) return next;
    const bool was_taken = trace->taken.exchange(true);
    if (next != nullptr && was_taken) {
        return call.refuse("options.observer", "comes behind a trace that another runtime records into",
                           "open a trace for this runtime");
    }
    return trace->cpp.callbacks(next);
}

isthmus_code isthmus_trace_open(const char* file, isthmus_trace** trace, isthmus_error** error) {
    return c::guarded("isthmus_trace_open", error, [&](const c::Call& call) -> Result<void> {
        c::prepare_errors();
        ISTHMUS_TRY(call.needs({{"trace", trace}}));
        return c::make_handle(trace, file != nullptr ? ChromeTrace::open(file) : ChromeTrace::from_environment());
    });
}

isthmus_code isthmus_trace_close(isthmus_trace* trace, isthmus_error** error) {
    return c::guarded("isthmus_trace_close", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"trace", trace}}));
        return trace->cpp.close();
    });
}

uint64_t isthmus_trace_dropped(const isthmus_trace* trace) {
    return trace == nullptr ? 0 : trace->cpp.counts().dropped;
}

void isthmus_trace_free(isthmus_trace* trace) {
    delete trace;
}
