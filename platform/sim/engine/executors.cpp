// SPDX-License-Identifier: Apache-2.0
// Threads that run ready work. Each ready operation has one: when none is idle, another one starts, so that a kernel
// that never ends cannot block other work. Idle threads stay for a while.
#include "core.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace isthmus::sim::engine {

namespace {

void* executor_main(void* argument) {
    const std::unique_ptr<std::shared_ptr<Core>> core(static_cast<std::shared_ptr<Core>*>(argument));
    (*core)->run_executor();
    return nullptr;
}

// Blocks signals meant for the program's own threads; faults belong to the thread that caused them.
sigset_t all_but_faults() {
    sigset_t set;
    sigfillset(&set);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) sigdelset(&set, fault);
    return set;
}

bool start_detached(const std::shared_ptr<Core>& core) {
    auto argument = std::make_unique<std::shared_ptr<Core>>(core);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const sigset_t masked = all_but_faults();
    sigset_t previous;
    pthread_sigmask(SIG_BLOCK, &masked, &previous);
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes, executor_main, argument.get());
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    pthread_attr_destroy(&attributes);
    if (error != 0) return false;
    argument.release();  // NOLINT(bugprone-unused-return-value): the thread owns it now
    return true;
}

}  // namespace

Core::Lock::Lock(Core& core) : core_(core), lock_(core.mutex) {}

Core::Lock::~Lock() {
    if (lock_.owns_lock()) release();
}

void Core::Lock::acquire() {
    lock_.lock();
}

void Core::Lock::release() {
    std::size_t shortage = 0;
    if (core_.options.mode == Mode::threads && !core_.stopping) {
        const std::size_t reachable = core_.idle + core_.starting;
        shortage = core_.ready_count > reachable ? core_.ready_count - reachable : 0;
        core_.starting += shortage;
        core_.executors += shortage;
        for (std::size_t n = std::min(core_.unannounced, core_.idle); n != 0; --n) core_.wake.notify_one();
        core_.unannounced = 0;
    }
    lock_.unlock();
    if (shortage != 0) core_.start_executors(shortage);
}

void Core::Lock::release_and_clear() {
    auto buried = std::exchange(core_.graveyard, {});
    ++core_.burying;
    release();
    buried.clear();
    --core_.burying;
}

void Core::start_executors(std::size_t count) {
    const std::shared_ptr<Core> self = shared_from_this();
    while (count != 0 && start_detached(self)) --count;
    if (count == 0) return;
    // The system has no more threads: the existing ones take the work in turn. Without any, no work would ever end.
    const std::lock_guard<std::mutex> lock(mutex);
    starting -= count;
    executors -= count;
    if (executors != 0) return;
    for (int device = 0; device < static_cast<int>(devices.size()); ++device) latch(device, code::operating_system);
}

void Core::run_executor() {
    if (hooks) hooks->thread_begins();
    Lock lock(*this);
    --starting;
    while (true) {
        if (const WorkRef work = take()) {
            run(lock, work);
            continue;
        }
        if (!graveyard.empty()) {
            lock.release_and_clear();
            lock.acquire();
            continue;
        }
        if (stopping) break;
        ++idle;
        const auto reason = wake.wait_for(lock.inner(), std::chrono::nanoseconds(options.idle_thread_ns));
        --idle;
        if (reason == std::cv_status::timeout && ready_count == 0) break;
    }
    --executors;
    gone.notify_all();
}

void Core::shut_down() {
    if (getpid() != process) return;  // after a fork the executors exist only in the parent
    Lock lock(*this);
    stopping = true;
    for (Device& device : devices) device.grace_until_ns = 0;
    ended.notify_all();
    delayed.notify_all();
    wake.notify_all();
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(options.grace_ns);
    while (executors != 0 && gone.wait_until(lock.inner(), until) != std::cv_status::timeout) {
    }
    if (executors == 0) {  // seeded mode, or no thread could be started
        for (const auto& [due, work] : std::exchange(sleeping, {})) complete(work);
        while (const WorkRef work = take()) complete(work);
    }
    lock.release_and_clear();
}

}  // namespace isthmus::sim::engine
