// SPDX-License-Identifier: Apache-2.0
// Default streams of threads, and the variants of functions that use them.
#include "per_thread.hpp"

#include "context_events.hpp"
#include "exports.hpp"
#include "graph_objects.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <type_traits>

namespace isthmus::sim {
namespace {

thread_local bool zero_is_per_thread = false;
thread_local std::uint64_t thread_number = 0;

class PerThreadDefault {
public:
    PerThreadDefault() noexcept : before_(zero_is_per_thread) { zero_is_per_thread = true; }
    ~PerThreadDefault() { zero_is_per_thread = before_; }
    PerThreadDefault(const PerThreadDefault&) = delete;
    PerThreadDefault& operator=(const PerThreadDefault&) = delete;

private:
    bool before_;
};

struct Owner {
    std::uint64_t thread;
    ::pid_t process;
};

// As cuStreamDestroy: work that was submitted still runs. In a child of fork() the driver's mutex may be locked.
void end_streams_of_thread(void* value) {
    const std::unique_ptr<Owner> owner(static_cast<Owner*>(value));
    if (owner->process != ::getpid()) return;
    Driver& d = *driver();
    const std::lock_guard lock(d.mutex);
    std::erase_if(d.default_streams, [&](const auto& entry) {
        if (entry.first.first != owner->thread) return false;
        Stream* const stream = entry.second;
        if (d.streams.alive(stream) && stream->thread == owner->thread) {
            end_stream(d, *stream);
            d.streams.destroy(stream);
        }
        return true;
    });
}

// The calling thread's number, from 1. Its first call arranges for the end of the thread.
std::uint64_t number_of_thread() {
    if (thread_number != 0) return thread_number;
    static std::atomic<std::uint64_t> last{0};
    static const ::pthread_key_t key = [] {
        ::pthread_key_t made{};
        ::pthread_key_create(&made, end_streams_of_thread);
        return made;
    }();
    thread_number = last.fetch_add(1, std::memory_order_relaxed) + 1;
    ::pthread_setspecific(key, new Owner{thread_number, ::getpid()});
    return thread_number;
}

}  // namespace

bool default_stream_is_per_thread() noexcept {
    return zero_is_per_thread;
}

Stream* default_stream_of_thread(Driver& d, Context& context) {
    const std::uint64_t thread = number_of_thread();
    Stream*& stream = d.default_streams[{thread, &context}];
    // A context takes its streams along when it ends, and their objects are used again.
    const bool usable = d.streams.alive(stream) && stream->thread == thread && stream->context == &context;
    if (usable) return stream;
    stream = create_stream(d, context, nullptr, 0, 0);
    stream->thread = thread;
    hold_new_stream(d, *stream);
    return stream;
}

extern "C" {
#define ISTHMUS_SIM_PER_THREAD(symbol, function, parameters, arguments)      \
    Result symbol parameters {                                               \
        static_assert(std::is_same_v<decltype(symbol), decltype(function)>); \
        const PerThreadDefault scope;                                        \
        return function arguments;                                           \
    }
#include "per_thread.def"
#undef ISTHMUS_SIM_PER_THREAD
}

}  // namespace isthmus::sim
