// SPDX-License-Identifier: Apache-2.0
// The functions that are counted, in front of those of the C library. A call belongs to the library if the innermost
// frame that is not one of the system's is the library's, or one of the program's that the library's headers made.
#include "counting.hpp"

#include "sanitized.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

// The other names of the functions that are counted are those of glibc.
#if !defined(ISTHMUS_SANITIZED) && defined(__GLIBC__)
#define CONFORMANCE_COUNTS 1
#endif

namespace {

struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool has(const void* address) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        return at >= begin && at < end;
    }
};
Range library, driver, program;

constexpr int deep = 48;
struct Seen {
    bool counting = false;
    long allocations = 0;
    long mutexes = 0;
    long system_calls = 0;
    std::array<void*, deep> where{};
    int frames = 0;
};
thread_local Seen seen;

int find_objects(dl_phdr_info* info, std::size_t, void* first) {
    Range found;
    for (int at = 0; at < info->dlpi_phnum; ++at) {
        const auto& part = info->dlpi_phdr[at];
        if (part.p_type != PT_LOAD) continue;
        const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
        if (found.end == 0 || begin < found.begin) found.begin = begin;
        if (begin + part.p_memsz > found.end) found.end = begin + part.p_memsz;
    }
    if (*static_cast<bool*>(first)) program = found;
    *static_cast<bool*>(first) = false;
    if (std::strstr(info->dlpi_name, "libisthmus.so") != nullptr) library = found;
    if (std::strstr(info->dlpi_name, "libcuda.so") != nullptr) driver = found;
    return 0;
}

#ifdef CONFORMANCE_COUNTS
void count_allocation() noexcept {
    if (!seen.counting) return;
    seen.counting = false;  // backtrace() may allocate
    std::array<void*, deep> frames{};
    const int count = backtrace(frames.data(), deep);
    for (int at = 1; at < count; ++at) {
        if (driver.has(frames[at])) break;
        // The first frames of the program are these functions.
        if (!library.has(frames[at]) && !(program.has(frames[at]) && at > 2)) continue;
        if (seen.allocations++ == 0) {
            seen.where = frames;
            seen.frames = count;
        }
        break;
    }
    seen.counting = true;
}

void count_if_ours(long& counted, const void* caller) noexcept {
    if (seen.counting && library.has(caller)) ++counted;
}

template <class Function>
Function* next(const char* name) noexcept {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#endif

}  // namespace

#ifdef CONFORMANCE_COUNTS
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

[[gnu::noinline]] void* malloc(std::size_t bytes) {
    count_allocation();
    return __libc_malloc(bytes);
}
[[gnu::noinline]] void* calloc(std::size_t count, std::size_t bytes) {
    count_allocation();
    return __libc_calloc(count, bytes);
}
[[gnu::noinline]] void* realloc(void* memory, std::size_t bytes) {
    count_allocation();
    return __libc_realloc(memory, bytes);
}
[[gnu::noinline]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    count_allocation();
    return __libc_memalign(alignment, bytes);
}
[[gnu::noinline]] int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
    count_allocation();
    *out = __libc_memalign(alignment, bytes);
    return *out == nullptr ? ENOMEM : 0;
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
    static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_lock");
    count_if_ours(seen.mutexes, __builtin_return_address(0));
    return real(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
    static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_trylock");
    count_if_ours(seen.mutexes, __builtin_return_address(0));
    return real(mutex);
}
long syscall(long number, ...) {
    static auto* const real = next<long(long, ...)>("syscall");
    count_if_ours(seen.system_calls, __builtin_return_address(0));
    __builtin_va_list given;
    __builtin_va_start(given, number);
    std::array<long, 6> words{};
    for (long& word : words) word = __builtin_va_arg(given, long);
    __builtin_va_end(given);
    return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
int sched_yield() {
    static auto* const real = next<int()>("sched_yield");
    count_if_ours(seen.system_calls, __builtin_return_address(0));
    return real();
}
int nanosleep(const timespec* asked, timespec* left) {
    static auto* const real = next<int(const timespec*, timespec*)>("nanosleep");
    count_if_ours(seen.system_calls, __builtin_return_address(0));
    return real(asked, left);
}
int clock_nanosleep(clockid_t clock, int flags, const timespec* asked, timespec* left) {
    static auto* const real = next<int(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep");
    count_if_ours(seen.system_calls, __builtin_return_address(0));
    return real(clock, flags, asked, left);
}
void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    static auto* const real = next<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
    count_if_ours(seen.system_calls, __builtin_return_address(0));
    return real(at, bytes, protection, flags, file, offset);
}
int munmap(void* at, std::size_t bytes) {
    static auto* const real = next<int(void*, std::size_t)>("munmap");
    count_if_ours(seen.system_calls, __builtin_return_address(0));
    return real(at, bytes);
}
}
#endif

namespace conformance {

bool counts_allocations() noexcept {
#ifdef CONFORMANCE_COUNTS
    return true;
#else
    return false;
#endif
}

Counting::Counting() noexcept {
    bool first = true;
    dl_iterate_phdr(find_objects, &first);
    std::array<void*, 2> warm{};
    (void)backtrace(warm.data(), 2);  // loads what it needs
    seen = {};
    seen.counting = true;
}

Counts Counting::end() {
    seen.counting = false;
    Counts counts{seen.allocations, seen.mutexes, seen.system_calls, {}};
    if (seen.frames > 0) {
        char** const names = backtrace_symbols(seen.where.data(), seen.frames);
        for (int at = 0; names != nullptr && at < seen.frames; ++at) counts.where.append("\n    ").append(names[at]);
        std::free(names);
    }
    return counts;
}

}  // namespace conformance
