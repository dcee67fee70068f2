// SPDX-License-Identifier: Apache-2.0
// ChromeTrace: an observer that records what a runtime does, and writes it as a file that ui.perfetto.dev and
// chrome://tracing open. Link libisthmus-trace (isthmus-trace.pc, isthmus::trace).
#pragma once

#include <isthmus/observer.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace isthmus {
inline namespace v0 {

struct ChromeTraceOptions {
    // Room for so many events of each thread, and for so many threads. What finds none is counted as dropped. An event
    // takes 320 bytes, which are touched when it is recorded.
    std::size_t events_per_thread = 16384;
    std::size_t threads = 32;
};

struct ChromeTraceCounts {
    std::uint64_t recorded = 0;
    std::uint64_t dropped = 0;  // a thread's block was full, or more threads came than have one
};

// Recording takes no lock, allocates nothing and makes no system call. Movable; empty after a move. Its own functions
// are its owner's; the callbacks come from any thread.
class ISTHMUS_API ChromeTrace {
public:
    ChromeTrace() noexcept = default;  // records nothing
    // `file` is made by close(). Errors: invalid_argument (no file name, no room), out_of_memory, system_error (the
    // file may not be written, or its directory is not there; that the disk is full shows at close()).
    static Result<ChromeTrace> open(std::string file, const ChromeTraceOptions& options = {});
    // Of the file that ISTHMUS_TRACE names; empty where it is not set, and in set-user-ID programs.
    static Result<ChromeTrace> from_environment(const ChromeTraceOptions& options = {});

    ChromeTrace(ChromeTrace&& other) noexcept;
    ChromeTrace& operator=(ChromeTrace&& other) noexcept;
    ~ChromeTrace();  // as close(), which alone says whether the file was written

    // For RuntimeOptions::observer, of any number of runtimes; `next` if it is empty. Valid until the process ends:
    // what comes after close() is not recorded. `next` is told everything behind this one.
    const ObserverCallbacks* callbacks(const ObserverCallbacks* next = nullptr) noexcept;
    explicit operator bool() const noexcept { return state_ != nullptr; }
    ChromeTraceCounts counts() const noexcept;
    // Ends the recording, and writes the file. Waits for callbacks that run. Once; later calls do nothing.
    // Errors: system_error (the file cannot be written), forked (in a child of the process that opened the trace, where
    // the destructor does nothing either: the file is the parent's).
    Result<void> close();

private:
    struct State;
    explicit ChromeTrace(State* state) noexcept : state_(state) {}
    State* state_ = nullptr;
};

}  // namespace v0
}  // namespace isthmus
