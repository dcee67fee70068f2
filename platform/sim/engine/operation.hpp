// SPDX-License-Identifier: Apache-2.0
// What can be put into a stream: one operation, the codes that it ends with, the hooks around its execution.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace isthmus::sim::engine {

// Identities are never reused within an engine; 0 names nothing.
enum class StreamId : std::uint64_t { none = 0 };
enum class EventId : std::uint64_t { none = 0 };

// Codes are CUresult values as plain integers, so that this room needs no CUDA header.
namespace code {
inline constexpr int ok = 0;
inline constexpr int invalid_value = 1;
inline constexpr int operating_system = 304;  // no thread could be started for the work
inline constexpr int invalid_handle = 400;    // a stale or foreign identity
inline constexpr int illegal_state = 401;     // a capture begun twice, or ended where there is none
inline constexpr int not_ready = 600;
inline constexpr int not_permitted = 800;        // waiting from within a host function
inline constexpr int capture_unsupported = 900;  // a call that a capture does not survive
inline constexpr int capture_invalidated = 901;
inline constexpr int capture_merge = 902;      // two captures would become one
inline constexpr int capture_unmatched = 903;  // ended on another stream than it began on
inline constexpr int capture_unjoined = 904;   // a forked stream never came back
inline constexpr int capture_isolation = 905;  // a dependency on work outside of the capture
inline constexpr int capture_implicit = 906;   // the legacy stream would take part
inline constexpr int captured_event = 907;
inline constexpr int capture_wrong_thread = 908;
inline constexpr int unknown = 999;  // seeded mode: waits for work that can never begin
}  // namespace code

// Codes after which a device answers nothing else any more (PLATFORMS §4: 700, 716 and 719 observed, the rest
// documented as leaving the process in an inconsistent state).
constexpr bool is_sticky(int code) noexcept {
    return code == 214 || code == 220 || code == 700 || code == 702 || code == 710 || (code >= 714 && code <= 719);
}

enum class Kind : std::uint8_t {
    // GPU work: the gpu_work hooks surround it
    kernel,
    copy,
    memset,
    // user code: the host_work hooks surround it
    host_function,
    stream_callback,
    // ordering only; a wait may have a body that blocks
    event_record,
    wait,
    empty,
    // bookkeeping in stream order
    allocate,
    free,
};
constexpr bool is_gpu_work(Kind kind) noexcept {
    return kind <= Kind::memset;
}
constexpr bool is_host_work(Kind kind) noexcept {
    return kind == Kind::host_function || kind == Kind::stream_callback;
}

// Copyable and repeatable: a graph runs its operations once per launch, never twice at the same time.
// The body runs with no engine lock held, on a thread that belongs to the engine (seeded mode: to a caller).
// It may leave a fault by siglongjmp to a point inside itself: no frame of the engine is in between.
struct Operation {
    Kind kind = Kind::empty;
    std::function<int()> body;               // 0 or a code; dropped unrun once its device has a sticky error
    std::function<void(int code)> callback;  // stream_callback only: always runs, with 0 or the sticky code
    std::string label;                       // for people: the kernel's name
    std::uint64_t tag = 0;                   // for the API room: handed through to the hooks
    std::uint64_t delay_ns = 0;              // planned fault: waits this long before the body (seeded: virtual time)
    EventId event = EventId::none;           // in graphs: event_record records it, wait awaits it, at each launch
    int device = -1;                         // -1: the stream's; set by submit()
    std::shared_ptr<const void> details;     // for the API room: what a graph's node was made of
};

// What the API room does around execution, e.g. opening protection keys. Called without any engine lock. A new
// thread inherits its creator's protection keys: thread_begins() is where to close them.
class Hooks {
public:
    virtual ~Hooks() = default;
    virtual void thread_begins() {}
    virtual void gpu_work_begins(const Operation&) {}
    virtual void gpu_work_ends(const Operation&) {}
    virtual void host_work_begins(const Operation&) {}  // may ask Engine::has_unobserved_work()
    virtual void host_work_ends(const Operation&) {}
    virtual void device_latched(int /*device*/, int /*code*/) {}
};

}  // namespace isthmus::sim::engine
