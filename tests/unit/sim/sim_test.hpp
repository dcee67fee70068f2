// SPDX-License-Identifier: Apache-2.0
// Shared by the simulator's tests. Every test body runs in a process of its own (forked before the driver starts), so
// machines, sticky errors and planned faults do not affect the next test.
#pragma once

#include <exports.hpp>

#include <driver_abi/sim_control.h>
#include <driver_abi/sim_registration.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>

extern "C" {
int isthmus_sim_register_kernel(const isthmus_sim_kernel* kernel);
int isthmus_sim_fact(const char* key, char* value, size_t value_bytes);
int isthmus_sim_fault_plan(const char* plan);
std::uint64_t isthmus_sim_call_count(const char* name);
void isthmus_sim_reset_counts(void);
std::int64_t isthmus_sim_live(const char* what);
int isthmus_sim_set_memory_bytes(int device, std::uint64_t bytes);
const char* isthmus_sim_protection(void);
void isthmus_sim_lend(std::uint64_t device_address, std::size_t bytes, void* stream);
void isthmus_sim_lend_part(std::uint64_t device_address, std::size_t bytes, std::size_t usable_bytes);
}

namespace isthmus::sim::test {

// In a child: ends it with a message if the code differs.
#define REQUIRE_CODE(call, code)                                                                                 \
    do {                                                                                                         \
        const int answered_ = (call);                                                                            \
        if (answered_ != (code)) {                                                                               \
            std::fprintf(stderr, "%s:%d: %s answered %d, not %d\n", __FILE__, __LINE__, #call, answered_, code); \
            std::_Exit(1);                                                                                       \
        }                                                                                                        \
    } while (false)
#define REQUIRE_THAT(condition)                                                          \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::_Exit(1);                                                               \
        }                                                                                \
    } while (false)

void prepare_child();
// Passes if the body ends normally; `says`: a regular expression for its stderr.
inline void in_own_process(const std::function<void()>& body, const char* says = "") {
    EXPECT_EXIT((prepare_child(), body(), std::_Exit(0)), ::testing::ExitedWithCode(0), says);
}
// Passes if the body ends by SIGSEGV.
void in_own_process_faults(const std::function<void()>& body, const char* says);

// Starts the driver and makes the primary context current.
Context* open_device(int device = 0);
int fact(int id, int device = 0);
inline bool concurrent_managed() {
    return fact(attribute::concurrent_managed) != 0;
}
inline bool pageable() {
    return fact(attribute::pageable) != 0;
}

Address device_memory(std::size_t bytes);
Address pool_memory(std::size_t bytes, Stream* stream, Pool* pool = nullptr);  // nullptr: the device's current pool
inline bool pools() {
    return fact(attribute::memory_pools) != 0;
}
inline volatile int* as_pointer(Address address) {
    return reinterpret_cast<volatile int*>(address);
}
inline int version() {
    int value = 0;
    REQUIRE_CODE(cuDriverGetVersion(&value), 0);
    return value;
}
std::uint64_t pool_figure(Pool* pool, int id);  // CUmemPool_attribute 4..8
Stream* new_stream(unsigned flags = 1);
Event* new_event(unsigned flags = 2);

// Kernels with invented images. multiply: data[i] *= factor for all i. hold: begins, then waits until released.
struct Ints {
    Address data;
    std::uint64_t size;
};
struct MultiplyPack {
    Ints data;
    int factor;
};
struct Gate {
    std::atomic<int> begun{0};
    std::atomic<int> released{0};
};
Function* multiply_kernel();
Function* hold_kernel();
Function* wild_store_kernel();  // writes through an address given as a value
void load_kernels();            // as the first launch of one does: a load waits for all work of its context
Result launch_multiply(Stream* stream, Address data, std::uint64_t size, int factor);
Result launch_hold(Stream* stream, Gate& gate);
Result launch_wild_store(Stream* stream, void* target);
void wait_until(const std::atomic<int>& flag);

}  // namespace isthmus::sim::test
