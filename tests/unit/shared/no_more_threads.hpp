// SPDX-License-Identifier: Apache-2.0
// While a NoMoreThreads exists, the process can start only so many threads more, as at a limit of the system: their
// stacks have no room. std::thread then throws std::system_error (EAGAIN).
#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>

namespace isthmus::test {

class NoMoreThreads {
public:
    explicit NoMoreThreads(std::size_t but = 0) {
        pthread_getattr_default_np(&before_);
        getrlimit(RLIMIT_AS, &room_);
        constexpr std::size_t stack = std::size_t{1} << 30;
        pthread_attr_t huge;
        pthread_getattr_default_np(&huge);
        pthread_attr_setstacksize(&huge, but == 0 ? std::size_t{1} << 52 : stack);  // the former: in no address space
        pthread_setattr_default_np(&huge);
        pthread_attr_destroy(&huge);
        if (but == 0) return;
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlimit little = room_;  // and some for the heaps of those threads
        little.rlim_cur = std::min<rlim_t>(
            room_.rlim_cur, pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + but * stack + stack / 2);
        setrlimit(RLIMIT_AS, &little);
    }
    NoMoreThreads(const NoMoreThreads&) = delete;
    NoMoreThreads& operator=(const NoMoreThreads&) = delete;
    ~NoMoreThreads() {
        setrlimit(RLIMIT_AS, &room_);
        pthread_setattr_default_np(&before_);
        pthread_attr_destroy(&before_);
    }

private:
    pthread_attr_t before_;
    rlimit room_{};
};

}  // namespace isthmus::test
