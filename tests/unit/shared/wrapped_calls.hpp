// SPDX-License-Identifier: Apache-2.0
// The system calls with a hook of the test before and after each of them.
#pragma once

#include <platform/process_calls.hpp>

#include <sys/mman.h>

#include <cerrno>
#include <functional>
#include <type_traits>

// One table per thread, so each thread has its own hooks.
struct CallHooks {
    std::function<int(const char* name)> before;  // an errno to fail with, or 0
    std::function<void(const char* name)> after;
    // Called instead of waiting; true: check again, something may have arrived.
    std::function<bool()> instead_of_waiting;
};
inline thread_local CallHooks call_hooks;

namespace wrapped_calls_detail {

using isthmus::platform::os::ProcessCalls;

template <class T>
T failure() {
    if constexpr (std::is_pointer_v<T>) {
        return MAP_FAILED;
    } else {
        return static_cast<T>(-1);
    }
}

template <auto member, class Function>
struct Wrapped;
template <auto member, class Answer, class... Arguments>
struct Wrapped<member, Answer (*)(Arguments...)> {
    static inline const char* name = "";
    static Answer call(Arguments... arguments) {
        if (call_hooks.before) {
            if (const int code = call_hooks.before(name); code != 0) {
                errno = code;
                return failure<Answer>();
            }
        }
        const Answer answer = (ProcessCalls::real().*member)(arguments...);
        const int error = errno;
        if (call_hooks.after) call_hooks.after(name);
        errno = error;
        return answer;
    }
};

template <auto member>
auto wrap(const char* name) {
    using Function = std::remove_cvref_t<decltype(ProcessCalls::real().*member)>;
    Wrapped<member, Function>::name = name;
    return &Wrapped<member, Function>::call;
}

inline int wait(pollfd* fds, unsigned long count, const timespec* timeout) {
    if (call_hooks.instead_of_waiting && count != 0) {
        if (!call_hooks.instead_of_waiting()) return ProcessCalls::real().wait(fds, count, timeout);
        const timespec now{};
        return ProcessCalls::real().wait(fds, count, &now);
    }
    return Wrapped<&ProcessCalls::wait, decltype(ProcessCalls::wait)>::call(fds, count, timeout);
}

inline ProcessCalls make_wrapped() {
    wrap<&ProcessCalls::wait>("ppoll");
    ProcessCalls calls = ProcessCalls::real();
#define WRAPPED(name) calls.name = wrap<&ProcessCalls::name>(#name)
    WRAPPED(socket);
    WRAPPED(socketpair);
    WRAPPED(bind);
    WRAPPED(listen);
    WRAPPED(accept4);
    WRAPPED(connect);
    WRAPPED(getsockopt);
    WRAPPED(setsockopt);
    WRAPPED(shutdown);
    WRAPPED(sendmsg);
    WRAPPED(recvmsg);
    WRAPPED(epoll_create1);
    WRAPPED(epoll_ctl);
    WRAPPED(open);
    WRAPPED(openat);
    WRAPPED(mkdir);
    WRAPPED(unlinkat);
    WRAPPED(flock);
    WRAPPED(fstat);
    WRAPPED(fstatfs);
    WRAPPED(fcntl);
    WRAPPED(getrandom);
    WRAPPED(memfd_create);
    WRAPPED(ftruncate);
    WRAPPED(mmap);
#undef WRAPPED
    calls.wait = wait;
    return calls;
}

}  // namespace wrapped_calls_detail

inline const isthmus::platform::os::ProcessCalls& wrapped_calls() {
    static const isthmus::platform::os::ProcessCalls calls = wrapped_calls_detail::make_wrapped();
    return calls;
}
