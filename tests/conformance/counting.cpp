// SPDX-License-Identifier: Apache-2.0
// The functions that are counted, in front of those of the C library.
#include "counting.hpp"

#include "call_origin.hpp"
#include "sanitized.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <malloc.h>
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

using conformance::CodeMap;
using conformance::Origin;

CodeMap code;

constexpr int deep = 48;
struct Seen {
    bool counting = false;
    long allocations = 0;
    long frees = 0;
    long mutexes = 0;
    long system_calls = 0;
    long mappings = 0;
    long heap_bytes = 0;
    std::array<void*, deep> where{};
    int frames = 0;
};
thread_local Seen seen;

#ifdef CONFORMANCE_COUNTS
bool is_ours(Origin origin) noexcept {
    return origin == Origin::library || origin == Origin::program;
}

// The first frames are those of the functions that count, which are no origin.
CONFORMANCE_HOOK bool count_heap(long& counted) noexcept {
    if (!seen.counting) return false;
    seen.counting = false;  // backtrace() may allocate
    std::array<void*, deep> frames{};
    const int count = backtrace(frames.data(), deep);
    const bool ours = is_ours(code.of(frames.data(), count));
    if (ours) {
        if (&counted == &seen.allocations && counted == 0) {
            seen.where = frames;
            seen.frames = count;
        }
        ++counted;
    }
    seen.counting = true;
    return ours;
}
void* taken(void* made, bool ours) noexcept {
    if (ours) seen.heap_bytes += static_cast<long>(malloc_usable_size(made));
    return made;
}
void given_back(void* memory, bool ours) noexcept {
    if (ours) seen.heap_bytes -= static_cast<long>(malloc_usable_size(memory));
}

void count_if_ours(long& counted, const void* caller) noexcept {
    if (seen.counting && is_ours(code.of(reinterpret_cast<std::uintptr_t>(caller)))) ++counted;
}
void count_mapping(const void* caller) noexcept {
    count_if_ours(seen.system_calls, caller);
    count_if_ours(seen.mappings, caller);
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
void __libc_free(void*);

CONFORMANCE_HOOK void* malloc(std::size_t bytes) {
    const bool ours = count_heap(seen.allocations);
    return taken(__libc_malloc(bytes), ours);
}
CONFORMANCE_HOOK void* calloc(std::size_t count, std::size_t bytes) {
    const bool ours = count_heap(seen.allocations);
    return taken(__libc_calloc(count, bytes), ours);
}
CONFORMANCE_HOOK void* realloc(void* memory, std::size_t bytes) {
    const bool ours = count_heap(seen.allocations);
    given_back(memory, ours);
    return taken(__libc_realloc(memory, bytes), ours);
}
CONFORMANCE_HOOK void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    const bool ours = count_heap(seen.allocations);
    return taken(__libc_memalign(alignment, bytes), ours);
}
CONFORMANCE_HOOK int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
    const bool ours = count_heap(seen.allocations);
    *out = taken(__libc_memalign(alignment, bytes), ours);
    return *out == nullptr ? ENOMEM : 0;
}
CONFORMANCE_HOOK void* memalign(std::size_t alignment, std::size_t bytes) {
    const bool ours = count_heap(seen.allocations);
    return taken(__libc_memalign(alignment, bytes), ours);
}
CONFORMANCE_HOOK void free(void* memory) {
    if (memory != nullptr) given_back(memory, count_heap(seen.frees));
    __libc_free(memory);
}
CONFORMANCE_HOOK int pthread_mutex_lock(pthread_mutex_t* mutex) {
    static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_lock");
    count_if_ours(seen.mutexes, __builtin_return_address(0));
    return real(mutex);
}
CONFORMANCE_HOOK int pthread_mutex_trylock(pthread_mutex_t* mutex) {
    static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_trylock");
    count_if_ours(seen.mutexes, __builtin_return_address(0));
    return real(mutex);
}
CONFORMANCE_HOOK long syscall(long number, ...) {
    static auto* const real = next<long(long, ...)>("syscall");
    count_if_ours(seen.system_calls, __builtin_return_address(0));
    __builtin_va_list given;
    __builtin_va_start(given, number);
    std::array<long, 6> words{};
    for (long& word : words) word = __builtin_va_arg(given, long);
    __builtin_va_end(given);
    return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
CONFORMANCE_HOOK int sched_yield() {
    static auto* const real = next<int()>("sched_yield");
    count_if_ours(seen.system_calls, __builtin_return_address(0));
    return real();
}
CONFORMANCE_HOOK int nanosleep(const timespec* asked, timespec* left) {
    static auto* const real = next<int(const timespec*, timespec*)>("nanosleep");
    count_if_ours(seen.system_calls, __builtin_return_address(0));
    return real(asked, left);
}
CONFORMANCE_HOOK int clock_nanosleep(clockid_t clock, int flags, const timespec* asked, timespec* left) {
    static auto* const real = next<int(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep");
    count_if_ours(seen.system_calls, __builtin_return_address(0));
    return real(clock, flags, asked, left);
}
CONFORMANCE_HOOK void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    static auto* const real = next<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
    count_mapping(__builtin_return_address(0));
    return real(at, bytes, protection, flags, file, offset);
}
#ifdef __USE_FILE_OFFSET64  // the function above has the name mmap64
void* short_mmap(void*, std::size_t, int, int, int, std::int64_t) __asm__("mmap");
CONFORMANCE_HOOK void* short_mmap(void* at, std::size_t bytes, int protection, int flags, int file, std::int64_t off) {
    static auto* const real = next<void*(void*, std::size_t, int, int, int, std::int64_t)>("mmap");
    count_mapping(__builtin_return_address(0));
    return real(at, bytes, protection, flags, file, off);
}
#endif
CONFORMANCE_HOOK int munmap(void* at, std::size_t bytes) {
    static auto* const real = next<int(void*, std::size_t)>("munmap");
    count_mapping(__builtin_return_address(0));
    return real(at, bytes);
}
CONFORMANCE_HOOK void* mremap(void* at, std::size_t bytes, std::size_t wanted, int flags, ...) {
    static auto* const real = next<void*(void*, std::size_t, std::size_t, int, void*)>("mremap");
    count_mapping(__builtin_return_address(0));
    __builtin_va_list given;
    __builtin_va_start(given, flags);
    void* const place = __builtin_va_arg(given, void*);  // unused without MREMAP_FIXED
    __builtin_va_end(given);
    return real(at, bytes, wanted, flags, place);
}
CONFORMANCE_HOOK int mprotect(void* at, std::size_t bytes, int protection) {
    static auto* const real = next<int(void*, std::size_t, int)>("mprotect");
    count_mapping(__builtin_return_address(0));
    return real(at, bytes, protection);
}
CONFORMANCE_HOOK int madvise(void* at, std::size_t bytes, int advice) {
    static auto* const real = next<int(void*, std::size_t, int)>("madvise");
    count_mapping(__builtin_return_address(0));
    return real(at, bytes, advice);
}
CONFORMANCE_HOOK int brk(void* end) {
    static auto* const real = next<int(void*)>("brk");
    count_mapping(__builtin_return_address(0));
    return real(end);
}
CONFORMANCE_HOOK void* sbrk(std::intptr_t bytes) {
    static auto* const real = next<void*(std::intptr_t)>("sbrk");
    count_mapping(__builtin_return_address(0));
    return real(bytes);
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
    code = find_code();
    std::array<void*, 2> warm{};
    (void)backtrace(warm.data(), 2);  // loads what it needs
    seen = {};
    seen.counting = true;
}

Counts Counting::so_far() noexcept {
    return {seen.allocations, seen.frees, seen.mutexes, seen.system_calls, seen.mappings, seen.heap_bytes, {}};
}

Counts Counting::end() {
    seen.counting = false;
    Counts counts = so_far();
    if (seen.frames > 0) {
        char** const names = backtrace_symbols(seen.where.data(), seen.frames);
        for (int at = 0; names != nullptr && at < seen.frames; ++at) counts.where.append("\n    ").append(names[at]);
        std::free(names);
    }
    return counts;
}

}  // namespace conformance
