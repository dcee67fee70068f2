// SPDX-License-Identifier: Apache-2.0
// ChromeTrace: the callbacks, and the file.
#include <isthmus/chrome_trace.hpp>

#include "event_blocks.hpp"
#include "trace_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

namespace isthmus {
inline namespace v0 {

// Stays until the process ends, reachable by `earlier`: a runtime may end after the trace, and then calls it still.
struct ChromeTrace::State {
    trace::EventBlocks blocks;
    std::string file;
    ObserverCallbacks callbacks;
    ObserverCallbacks next;
    State* earlier = nullptr;
    const pid_t process = ::getpid();

    template <class What>
    void record(trace::Phase phase, What what, std::string_view name, const ObservedFacts& facts) noexcept {
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        blocks.record([&](trace::RecordedEvent& event) {
            event.ns = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
            event.keep(phase, static_cast<std::uint32_t>(what), name, facts);
        });
    }
};

namespace {

std::mutex states_mutex;

Error cannot_write(const std::string& file, const char* call, int error) {
    return Error(Code::system_error, "the trace could not be written to " + file + ": " + std::strerror(error),
                 "name a file in a directory that exists and may be written, with room for the trace")
        .from_call(call, error);
}

// Whether close() may write the file, by what can be asked without making or opening it: a program may end without a
// trace, and a pipe's reader sees each open. Room for it, and what a dangling link names, show when it is written.
Result<void> may_be_written(const std::string& file) {
    struct stat found = {};
    if (::stat(file.c_str(), &found) == 0) {
        if (S_ISDIR(found.st_mode)) return cannot_write(file, "stat", EISDIR);
        if (::eaccess(file.c_str(), W_OK) != 0) return cannot_write(file, "eaccess", errno);
        return {};
    }
    if (errno != ENOENT) return cannot_write(file, "stat", errno);
    if (::lstat(file.c_str(), &found) == 0) return {};
    const std::size_t slash = file.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash + 1);
    if (::eaccess(folder.c_str(), W_OK | X_OK) != 0) return cannot_write(file, "eaccess", errno);
    return {};
}

Result<void> write_file(const std::string& file, const std::string& text) {
    const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out < 0) return cannot_write(file, "open", errno);
    std::string_view left = text;
    int why = 0;
    while (!left.empty() && why == 0) {
        const ssize_t written = ::write(out, left.data(), left.size());
        if (written >= 0) left.remove_prefix(static_cast<std::size_t>(written));
        if (written < 0 && errno != EINTR) why = errno;
    }
    if (::close(out) != 0 && why == 0) return cannot_write(file, "close", errno);
    if (why != 0) return cannot_write(file, "write", why);
    return {};
}

}  // namespace

Result<ChromeTrace> ChromeTrace::open(std::string file, const ChromeTraceOptions& options) {
    static State* states = nullptr;  // guarded by states_mutex
    if (file.empty() || options.threads == 0 || options.events_per_thread == 0) {
        return Error(Code::invalid_argument, "a trace needs the name of a file, and room for a thread and an event",
                     "name a file, and leave ChromeTraceOptions as they are");
    }
    if (Result<void> writable = may_be_written(file); !writable) return std::move(writable).error();
    std::unique_ptr<State> made(new (std::nothrow) State);
    if (made == nullptr || !made->blocks.make(options.threads, options.events_per_thread)) {
        return Error(Code::out_of_memory, "there is no memory for the blocks of a trace",
                     "set ChromeTraceOptions::events_per_thread or threads to less");
    }
    made->file = std::move(file);
    State* const state = made.release();
    state->callbacks.context = state;
    state->callbacks.begin = [](void* context, Span span, std::string_view name, const ObservedFacts& facts) noexcept {
        State& to = *static_cast<State*>(context);
        to.record(trace::Phase::begin, span, name, facts);
        if (to.next.begin != nullptr) to.next.begin(to.next.context, span, name, facts);
    };
    state->callbacks.end = [](void* context, Span span, std::string_view name, const ObservedFacts& facts) noexcept {
        State& to = *static_cast<State*>(context);
        to.record(trace::Phase::end, span, name, facts);
        if (to.next.end != nullptr) to.next.end(to.next.context, span, name, facts);
    };
    state->callbacks.mark = [](void* context, Mark mark, std::string_view name, const ObservedFacts& facts) noexcept {
        State& to = *static_cast<State*>(context);
        to.record(trace::Phase::mark, mark, name, facts);
        if (to.next.mark != nullptr) to.next.mark(to.next.context, mark, name, facts);
    };
    const std::lock_guard lock(states_mutex);
    state->earlier = std::exchange(states, state);
    return ChromeTrace(state);
}

Result<ChromeTrace> ChromeTrace::from_environment(const ChromeTraceOptions& options) {
    const char* const file = ::secure_getenv("ISTHMUS_TRACE");
    if (file == nullptr || *file == '\0') return ChromeTrace();
    return open(file, options);
}

ChromeTrace::ChromeTrace(ChromeTrace&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}

ChromeTrace& ChromeTrace::operator=(ChromeTrace&& other) noexcept {
    if (this != &other) {
        ChromeTrace ended(std::move(*this));
        state_ = std::exchange(other.state_, nullptr);
    }
    return *this;
}

ChromeTrace::~ChromeTrace() {
    (void)close();
}

const ObserverCallbacks* ChromeTrace::callbacks(const ObserverCallbacks* next) noexcept {
    if (state_ == nullptr) return next;
    if (next != nullptr) state_->next = *next;
    return &state_->callbacks;
}

ChromeTraceCounts ChromeTrace::counts() const noexcept {
    if (state_ == nullptr) return {};
    return {state_->blocks.recorded(), state_->blocks.dropped()};
}

Result<void> ChromeTrace::close() {
    if (state_ == nullptr) return {};
    // Before close() of the blocks, which would wait for threads that the child does not have.
    if (state_->process != ::getpid()) {
        return Error(Code::forked, "the trace " + state_->file + " is of the process that opened it, which forked",
                     "close it there; open a trace of its own, with another file, in the child");
    }
    if (!state_->blocks.close()) return {};
    const trace::EventBlocks& blocks = state_->blocks;
    std::vector<trace::ThreadEvents> threads;
    for (std::size_t at = 0; at < blocks.size(); ++at) {
        threads.push_back({blocks[at].owner.load(std::memory_order_relaxed), blocks[at].events.get(),
                           blocks[at].count.load(std::memory_order_acquire)});  // pairs with record()
    }
    Result<void> written = write_file(state_->file, trace::trace_json(threads, blocks.dropped()));
    state_->blocks.give_back();
    return written;
}

}  // namespace v0
}  // namespace isthmus
