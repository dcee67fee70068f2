// SPDX-License-Identifier: Apache-2.0
// Observer: the calls of the callbacks, during which the thread may not call the runtime.
#include "observed.hpp"

#include "process.hpp"

#include <array>
#include <new>

namespace isthmus {
inline namespace v0 {
namespace {

constexpr std::array<std::string_view, span_count> span_names{
    "launch",   "copy",    "fill",  "read_back",  "graph_launch", "native_work", "native_scope", "host_view", "wait",
    "allocate", "release", "adopt", "ring_begin", "ring_publish", "ring_next",   "ring_finish",  "hint"};
constexpr std::array<std::string_view, mark_count> mark_names{"upload",      "download", "fence",      "prefetch",
                                                              "attach",      "detach",   "refused",    "budget_refused",
                                                              "reader_lost", "buffer",   "buffer_end", "argument"};

template <std::size_t count>
std::string_view text(const std::array<std::string_view, count>& names, std::uint32_t value) noexcept {
    return value < count ? names[value] : std::string_view("unknown");
}

}  // namespace

std::string_view name(Span span) noexcept {
    return text(span_names, static_cast<std::uint32_t>(span));
}
std::string_view name(Mark mark) noexcept {
    return text(mark_names, static_cast<std::uint32_t>(mark));
}

namespace detail {
namespace {

// Spans that are open on this thread, of any runtime; and whether it is in a callback.
constinit thread_local int depth [[gnu::tls_model("initial-exec")]] = 0;
constinit thread_local bool telling [[gnu::tls_model("initial-exec")]] = false;

// A call that was told not to wait, or that asks for what does not come any more, has its answer.
constexpr bool is_answer(Code code) noexcept {
    return code == Code::not_ready || code == Code::ended;
}

// While it lives, calls of the runtime on this thread are refused as those of a thread that holds a stream's lock, and
// nobody is told of them.
class InCallback {
public:
    InCallback() noexcept : before_(std::exchange(process::here.on_stream, true)) { telling = true; }
    InCallback(const InCallback&) = delete;
    InCallback& operator=(const InCallback&) = delete;
    ~InCallback() {
        telling = false;
        process::here.on_stream = before_;
    }

private:
    const bool before_;
};

}  // namespace

bool Observer::readable(const ObserverCallbacks& callbacks) noexcept {
    return callbacks.size >= sizeof(ObserverCallbacks);
}

Observer::Observer(const ObserverCallbacks* callbacks) noexcept : on_(callbacks != nullptr) {
    if (on_) callbacks_ = *callbacks;
}

void Observer::begin(Span span, std::string_view name, const ObservedFacts& facts) const noexcept {
    if (telling) return;
    const InCallback here;
    if (callbacks_.begin != nullptr) callbacks_.begin(callbacks_.context, span, name, facts);
}

void Observer::end(Span span, std::string_view name, const ObservedFacts& facts) const noexcept {
    if (telling) return;
    const InCallback here;
    if (callbacks_.end != nullptr) callbacks_.end(callbacks_.context, span, name, facts);
}

void Observer::tell(Mark what, std::string_view name, const ObservedFacts& facts) const noexcept {
    if (telling) return;
    const InCallback here;
    if (callbacks_.mark != nullptr) callbacks_.mark(callbacks_.context, what, name, facts);
}

void Observer::refused(std::string_view name, ObservedFacts facts, const Error& error) const noexcept {
    if (depth > 0 || is_answer(error.code())) return;
    facts.code = error.code();
    facts.error = error.id();
    tell(Mark::refused, name, facts);
}

void ObservedSpan::open(const Observer& observer, Span what, std::string_view name,
                        const ObservedFacts& facts) noexcept {
    observer_ = &observer;
    ::new (static_cast<void*>(&open_)) Open{what, name, facts};
    observer.begin(what, name, facts);
    ++depth;
}

void ObservedSpan::close(const Error* error) noexcept {
    --depth;
    const Observer& observer = *std::exchange(observer_, nullptr);
    if (error != nullptr) {
        open_.facts.code = error->code();
        open_.facts.error = error->id();
        observer.refused(open_.name, open_.facts, *error);
    }
    observer.end(open_.what, open_.name, open_.facts);
}

void ObservedSpan::leave_open() noexcept {
    --depth;
    observer_ = nullptr;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
