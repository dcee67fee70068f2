// SPDX-License-Identifier: Apache-2.0
// Which process this is, and whether this thread runs a host function or work of other code, or holds a stream: these
// bar calls of a runtime. A runtime that was opened before fork() cannot be used in the child.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace isthmus::process {

// Incremented in the child of every fork(). One load; no system call.
extern constinit std::atomic<std::uint64_t> forks;
inline std::uint64_t generation() noexcept {
    return forks.load(std::memory_order_relaxed);
}

// What the calling thread is in the middle of.
struct alignas(4) ThreadState {
    // It runs a host function: the driver answers most calls with 800, or may wait for ever (S20).
    bool in_host_function = false;
    // It holds a stream's lock: a signal handler that runs on the thread now, or a callback below the call, would wait
    // for a lock that only this thread gives back.
    bool on_stream = false;
    // It runs work of other code (Stream::enqueue_native): then in_host_function is set, too. Locks of a stream and of
    // its capture are held, so calls that a host function may make are refused as well (W5).
    bool in_native_work = false;
    bool unused = false;
    // Calls of the runtime are then refused. All at once: one comparison at every launch.
    bool taken() const noexcept { return std::bit_cast<std::uint32_t>(*this) != 0; }
};
// Initial-exec: one load, and no call.
extern constinit thread_local ThreadState here [[gnu::tls_model("initial-exec")]];

// A small number of the calling thread, which does not change: what is divided among threads has no other name for
// them. Ends with the thread; threads that come and go use further numbers.
extern constinit thread_local std::uint32_t numbered [[gnu::tls_model("initial-exec")]];  // 0: not yet
std::uint32_t number_thread() noexcept;
inline std::uint32_t thread_number() noexcept {
    return numbered != 0 ? numbered : number_thread();
}

// While it lives, the thread works on a stream. Made before the stream's lock is taken and destroyed after: a signal in
// between finds it set. Two stores, because every launch makes one. Not nested.
class OnStream {
public:
    OnStream() noexcept { here.on_stream = true; }
    OnStream(const OnStream&) = delete;
    OnStream& operator=(const OnStream&) = delete;
    ~OnStream() { here.on_stream = false; }
};

class InNativeWork {
public:
    InNativeWork() noexcept : before_(here) { here.in_host_function = here.in_native_work = true; }
    InNativeWork(const InNativeWork&) = delete;
    InNativeWork& operator=(const InNativeWork&) = delete;
    ~InNativeWork() {
        here.in_host_function = before_.in_host_function;
        here.in_native_work = before_.in_native_work;
    }

private:
    const ThreadState before_;
};

// Keeps an object reachable and unchanged until the process ends: memory that a hung kernel may still use (R5).
void keep_until_exit(std::shared_ptr<void> held);

}  // namespace isthmus::process
