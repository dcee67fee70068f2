// SPDX-License-Identifier: Apache-2.0
// One operation of a stream, the codes that it returns, and the hooks around its execution.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace isthmus::sim::engine {

// Ids are never reused within an engine; 0 means none.
enum class StreamId : std::uint64_t { none = 0 };
enum class EventId : std::uint64_t { none = 0 };

// Codes are CUresult values as plain integers, so that this directory needs no CUDA header.
namespace code {
inline constexpr int ok = 0;
inline constexpr int invalid_value = 1;
inline constexpr int operating_system = 304;  // no thread could be started
inline constexpr int invalid_handle = 400;    // a stale or foreign id
inline constexpr int illegal_state = 401;     // a second begin of a capture, or an end without one
inline constexpr int not_ready = 600;
inline constexpr int not_permitted = 800;        // a wait inside a host function
inline constexpr int capture_unsupported = 900;  // a call that invalidates a capture
inline constexpr int capture_invalidated = 901;
inline constexpr int capture_merge = 902;      // two captures would be merged
inline constexpr int capture_unmatched = 903;  // ended on another stream than the first
inline constexpr int capture_unjoined = 904;   // a forked stream was not joined
inline constexpr int capture_isolation = 905;  // a dependency on work outside the capture
inline constexpr int capture_implicit = 906;   // the legacy stream would be captured implicitly
inline constexpr int captured_event = 907;
inline constexpr int capture_wrong_thread = 908;
inline constexpr int later = -1;     // of a body in seeded mode: it has not ended, and is to be called again
inline constexpr int unknown = 999;  // seeded mode: a wait for work that can never begin
}  // namespace code

// Codes after which a device returns only that code (PLATFORMS §4: 700, 716 and 719 observed; the others are documented
// to leave the process in an inconsistent state).
constexpr bool is_sticky(int code) noexcept {
    return code == 214 || code == 220 || code == 700 || code == 702 || code == 710 || (code >= 714 && code <= 719);
}

enum class Kind : std::uint8_t {
    // GPU work: the gpu_work hooks surround it
    kernel,
    copy,
    memset,
    words,  // waits for values in memory, and writes them
    // user code: the host_work hooks surround it
    host_function,
    stream_callback,
    // ordering only; a wait may have a body that blocks
    event_record,
    wait,
    empty,
    semaphore_signal,  // of other drivers; both have a body, and a wait may block
    semaphore_wait,
    // bookkeeping in stream order
    allocate,
    free,
};
constexpr bool is_gpu_work(Kind kind) noexcept {
    return kind <= Kind::words;
}
constexpr bool is_host_work(Kind kind) noexcept {
    return kind == Kind::host_function || kind == Kind::stream_callback;
}

// Copyable and repeatable: a graph runs its operations once per launch, never twice at the same time. The body runs
// without any engine lock, on a thread of the engine (seeded mode: of a caller). It may handle a fault by siglongjmp to
// a point inside itself: no frame of the engine is in between.
struct Operation {
    Kind kind = Kind::empty;
    std::function<int()> body;               // returns 0 or a code; not called once its device has a sticky error
    std::function<void(int code)> callback;  // stream_callback only: always called, with 0 or the sticky code
    std::string label;                       // the kernel's name, for messages
    std::uint64_t tag = 0;                   // for the API above: passed to the hooks
    std::uint64_t delay_ns = 0;              // planned fault: delay before the body (seeded: virtual time)
    // In graphs: the event that event_record records, or that wait waits for, at each launch.
    EventId event = EventId::none;
    int device = -1;                      // -1: the stream's; set by submit()
    std::shared_ptr<const void> details;  // for the API above: the parameters of a graph's node
};

// Actions of the API above around execution, e.g. opening protection keys. Called without any engine lock, but for
// device_latched(): the lock keeps the code from callers until it returns, so it calls nothing of the engine. A new
// thread inherits its creator's protection keys; thread_begins() should close them.
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
