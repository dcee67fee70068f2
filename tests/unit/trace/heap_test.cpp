// SPDX-License-Identifier: Apache-2.0
// Recording allocates nothing, also a thread's first event.
// keeps O2
#include <isthmus/chrome_trace.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>
#include <thread>

namespace {

thread_local bool counts = false;
thread_local int allocations = 0;

void* counted(std::size_t bytes) {
    if (counts) ++allocations;
    return std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

void* operator new(std::size_t bytes) {
    void* const memory = counted(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return counted(bytes);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace {

using namespace isthmus;

int allocations_of(const ObserverCallbacks& to) {
    allocations = 0;
    counts = true;
    for (int times = 0; times < 5; ++times) {  // the last ones find the block full
        to.begin(to.context, Span::launch, "a kernel with a rather long name", {});
        to.mark(to.context, Mark::upload, "u", {});
        to.end(to.context, Span::launch, "a kernel with a rather long name", {});
    }
    counts = false;
    return allocations;
}

TEST(Recording, AllocatesNothing) {
    ChromeTrace trace = ChromeTrace::open("/dev/null", {.events_per_thread = 10, .threads = 2}).value();
    const ObserverCallbacks& callbacks = *trace.callbacks();
    EXPECT_EQ(allocations_of(callbacks), 0);
    for (int at = 0; at < 2; ++at) {  // the second thread finds no block
        int of_thread = -1;
        std::thread([&] { of_thread = allocations_of(callbacks); }).join();
        EXPECT_EQ(of_thread, 0);
    }
    EXPECT_EQ(trace.counts().recorded, 20u);
    EXPECT_EQ(trace.counts().dropped, 25u);
    ASSERT_TRUE(trace.close());
    counts = true;
    allocations = 0;
    int* volatile kept = new int;  // volatile: a compiler may leave out an allocation that nothing sees
    delete kept;
    counts = false;
    EXPECT_EQ(allocations, 1);  // the count counts
}

}  // namespace
