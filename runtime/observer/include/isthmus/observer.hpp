// SPDX-License-Identifier: Apache-2.0
// ObserverCallbacks: functions that are told what a runtime does, as it does it (RuntimeOptions::observer).
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace isthmus {
inline namespace v0 {

// What lasts from a begin to an end. Values are stable: new ones are appended.
enum class Span : std::uint32_t {
    launch = 0,         // of a kernel; the name is the kernel's
    copy = 1,           // Stream::copy and Device::copy
    fill = 2,           // Stream::fill and Device::fill
    read_back = 3,      // read_back() of device memory to ordinary memory
    graph_launch = 4,   // of a graph's instance
    native_work = 5,    // Stream::enqueue_native; the name is the work's
    native_scope = 6,   // from open_native_scope() to its close
    host_view = 7,      // from the call that opens a host view to its close: a wait for device work is inside
    wait = 8,           // of the host for the device; the name is that of the operation waited for
    allocate = 9,       // of one block of memory: a buffer with two sides has two
    release = 10,       // of one block of memory
    adopt = 11,         // of memory of other code
    ring_begin = 12,    // FrameRing::begin_frame
    ring_publish = 13,  // of a frame
    ring_next = 14,     // FrameRing::next_frame
    ring_finish = 15,   // the frame goes back to the producer
    // Stream::prefetch and discard, Device::advise; the reason at the end is that of the HintReport. A position: the
    // stream was given something, for which views wait. Of several buffers: the sum of the bytes, and no address.
    hint = 16,
};
inline constexpr std::uint32_t span_count = 17;

// What happens at one moment. Values are stable: new ones are appended.
enum class Mark : std::uint32_t {
    upload = 0,          // the content of a copied buffer, or of an argument, goes to the device's side
    download = 1,        // the same to the host's side
    fence = 2,           // an event behind the stream's work, for later waits
    prefetch = 3,        // managed memory moves to the device ahead of its use
    attach = 4,          // managed memory is given to one stream
    detach = 5,          // and returned to the host
    refused = 6,         // a call ended with an error: its code and its id; once a call
    budget_refused = 7,  // memory was not allocated, because the system would then lack it
    reader_lost = 8,     // a reader of a shared ring is gone
    // For a replay (isthmus replay): what was asked for, and the memory that calls use.
    buffer = 9,       // a buffer was made: "shared" or "adopted", with its SharedUse as the reason; "kind"
    buffer_end = 10,  // its memory goes back
    // Within a span: how the call uses memory ("read", "write", "read_write", "concurrent"). The reason is the mode of
    // a launch; "captured": the call is recorded into a graph. Memory that is no buffer has no kind.
    argument = 11,
};
inline constexpr std::uint32_t mark_count = 12;

// Static storage: "launch", "ring_begin", "budget_refused"; "unknown" for a value outside the enumeration.
ISTHMUS_API std::string_view name(Span span) noexcept;
ISTHMUS_API std::string_view name(Mark mark) noexcept;

// What is known of a span or a mark; 0 or empty where it does not apply or is not known yet. Texts are valid during the
// callback only.
struct ObservedFacts {
    std::uint32_t size = sizeof(ObservedFacts);  // as the library knows it: later versions append members
    std::uint32_t device = 0;                    // Device::index()
    std::uint64_t stream = 0;                    // the stream's number, as messages name it
    std::uint64_t position = 0;                  // of the operation in its stream: at the end of a span that gives one;
                                                 // of a wait: the last operation that is waited for
    std::uint64_t bytes = 0;
    std::uint64_t address = 0;  // of the buffer's memory, as its device has it; without one the host's
    MemoryKind kind = MemoryKind::unknown;
    Code code = Code::ok;       // at the end of a span, and of a refusal
    std::string_view error{};   // Error::id(), with the code
    std::string_view reason{};  // why this memory, this copy, this refusal
};

// The functions are called on the thread that makes the call, also with locks of the library held; several threads call
// them at once. They are noexcept. They may not call the runtime, which answers not_permitted and tells nobody; no
// buffer, stream or event may end in them; and they may not wait for another thread that uses the runtime. The library
// allocates nothing for them. A begin and its end come from one thread, in nested order, except for host_view and
// native_scope, which end where their scope does.
struct ObserverCallbacks {
    std::uint32_t size = sizeof(ObserverCallbacks);
    void* context = nullptr;  // given to each function; lives longer than all that the runtime made
    void (*begin)(void* context, Span span, std::string_view name, const ObservedFacts& facts) noexcept = nullptr;
    // `facts` are those of begin, with what has become known: the position, the error.
    void (*end)(void* context, Span span, std::string_view name, const ObservedFacts& facts) noexcept = nullptr;
    void (*mark)(void* context, Mark mark, std::string_view name, const ObservedFacts& facts) noexcept = nullptr;
};

}  // namespace v0
}  // namespace isthmus
