// SPDX-License-Identifier: Apache-2.0
// Each function that the watchers of loops replace is counted where the program calls it, and where nothing is watched
// it is not.
#include "counting.hpp"

#include <gtest/gtest.h>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cstdlib>
#include <new>

namespace conformance {
namespace {

struct Hook {
    const char* name;
    long Counts::*counted;
    long times;
    void (*call)();
};

void* volatile kept = nullptr;  // so that no pair of calls is left out
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
void give_back() {
    std::free(kept);
}
// A page that is there before the calls are counted.
void* page() {
    static void* const made = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return made;
}

const Hook hooks[] = {
    {"malloc", &Counts::allocations, 1, [] { kept = std::malloc(24), give_back(); }},
    {"calloc", &Counts::allocations, 1, [] { kept = std::calloc(2, 24), give_back(); }},
    {"malloc and realloc", &Counts::allocations, 2,
     [] {
         kept = std::malloc(24);
         void* const longer = std::realloc(kept, 48);
         kept = longer;
         give_back();
     }},
    {"aligned_alloc", &Counts::allocations, 1, [] { kept = std::aligned_alloc(64, 64), give_back(); }},
    {"posix_memalign", &Counts::allocations, 1,
     [] {
         void* made = nullptr;
         if (::posix_memalign(&made, 64, 64) == 0) kept = made;
         give_back();
     }},
#ifdef __GLIBC__
    {"memalign", &Counts::allocations, 1, [] { kept = ::memalign(64, 64), give_back(); }},
#endif
    {"operator new", &Counts::allocations, 1, [] { kept = ::operator new(24), ::operator delete(kept); }},
    {"operator new[]", &Counts::allocations, 1, [] { kept = ::operator new[](24), ::operator delete[](kept); }},
    {"aligned operator new", &Counts::allocations, 1,
     [] {
         kept = ::operator new (64, std::align_val_t{64});
         ::operator delete (kept, std::align_val_t{64});
     }},
    {"free", &Counts::frees, 1, [] { kept = std::malloc(24), give_back(); }},
    {"pthread_mutex_lock", &Counts::mutexes, 1, [] { pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); }},
    {"pthread_mutex_trylock", &Counts::mutexes, 1, [] { pthread_mutex_trylock(&mutex), pthread_mutex_unlock(&mutex); }},
    {"mmap and munmap", &Counts::mappings, 2,
     [] {
         kept = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         ::munmap(kept, 4096);
     }},
    {"mremap", &Counts::mappings, 1, [] { kept = ::mremap(page(), 4096, 4096, 0); }},
    {"mprotect", &Counts::mappings, 1, [] { (void)::mprotect(page(), 4096, PROT_READ | PROT_WRITE); }},
    {"madvise", &Counts::mappings, 1, [] { (void)::madvise(page(), 4096, MADV_NORMAL); }},
    {"brk", &Counts::mappings, 1, [] { (void)::brk(nullptr); }},
    {"sbrk", &Counts::mappings, 1, [] { kept = ::sbrk(0); }},
    {"syscall", &Counts::system_calls, 1, [] { (void)::syscall(SYS_getpid); }},
    {"sched_yield", &Counts::system_calls, 1, [] { (void)::sched_yield(); }},
    {"nanosleep", &Counts::system_calls, 1,
     [] {
         const timespec pause{0, 1};
         (void)::nanosleep(&pause, nullptr);
     }},
    {"clock_nanosleep", &Counts::system_calls, 1,
     [] {
         const timespec pause{0, 1};
         (void)::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
     }},
};

TEST(Counting, EachReplacedFunctionCountsItsCalls) {  // keeps T3
    if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
    (void)page();
    for (const Hook& hook : hooks) {
        Counting counting;
        hook.call();
        const Counts counts = counting.end();
        EXPECT_EQ(counts.*hook.counted, hook.times) << hook.name;
        hook.call();
        EXPECT_EQ(Counting::so_far().*hook.counted, hook.times) << hook.name << ", which nothing watches";
    }
}

}  // namespace
}  // namespace conformance
