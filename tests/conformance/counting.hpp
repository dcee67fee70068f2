// SPDX-License-Identifier: Apache-2.0
// Counts what the library asks of the system on this thread: heap, mutexes and system calls.
// counting.cpp replaces malloc() and others in the program, so it belongs to programs that count.
#pragma once

#include <string>

namespace conformance {

struct Counts {
    long allocations = 0;   // blocks from the heap, by malloc() or operator new
    long frees = 0;         // blocks given back to the heap
    long mutexes = 0;       // locked; the locks of buffers, which are words, are not among them
    long system_calls = 0;  // sleeps, yields, futexes and mappings
    long mappings = 0;      // of these, mmap(), munmap(), mremap(), mprotect(), madvise(), brk() and sbrk()
    long heap_bytes = 0;    // of blocks taken less those of blocks given back, with what they leave unused
    std::string where;      // the calls that led to the first allocation
};

// false: built with a sanitizer, which has its own malloc(), or for another C library than glibc.
bool counts_allocations() noexcept;

// A call is counted where it comes from the library, or from the program, which holds what the library's headers made.
// What the driver does for a call is not counted, whether it is the simulator or a real one.
class Counting {
public:
    Counting() noexcept;
    ~Counting() { (void)end(); }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;
    static Counts so_far() noexcept;  // without `where`
    Counts end();                     // stops
};

}  // namespace conformance
