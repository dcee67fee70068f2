// SPDX-License-Identifier: Apache-2.0
// Kernels, fixtures and the processes of the simulator's tests.
#include "sim_test.hpp"

#include <csignal>
#include <thread>

namespace isthmus::sim::test {
namespace {

const unsigned char image[] = "an image of the simulator's tests";
const char image_hash[] = "simtests";

void multiply(const isthmus_sim_extent*, std::uint64_t first, std::uint64_t last, const void* pack) {
    const auto& arguments = *static_cast<const MultiplyPack*>(pack);
    int* const data = reinterpret_cast<int*>(arguments.data.data);
    for (std::uint64_t i = first; i < last; ++i) data[i] *= arguments.factor;
}

void hold(const isthmus_sim_extent*, std::uint64_t, std::uint64_t, const void* pack) {
    Gate& gate = **static_cast<Gate* const*>(pack);
    gate.begun.store(1, std::memory_order_release);
    while (gate.released.load(std::memory_order_acquire) == 0) std::this_thread::yield();
}

void wild_store(const isthmus_sim_extent*, std::uint64_t, std::uint64_t, const void* pack) {
    **static_cast<volatile int* const*>(pack) = 1;
}

const isthmus_sim_parameter multiply_parameters[] = {{0, 16, sizeof(int), 3}, {16, 4, 0, 0}};
const isthmus_sim_parameter pointer_parameters[] = {{0, 8, 0, 0}};

Function* load(const char* symbol, const isthmus_sim_parameter* parameters, std::uint32_t count,
               std::uint32_t pack_bytes, decltype(isthmus_sim_kernel::twin) twin) {
    isthmus_sim_kernel kernel = {};
    kernel.struct_bytes = sizeof(kernel);
    kernel.image_hash = image_hash;
    kernel.image_data = image;
    kernel.image_bytes = sizeof(image);
    kernel.symbol = symbol;
    kernel.parameter = parameters;
    kernel.parameter_count = count;
    kernel.pack_bytes = pack_bytes;
    kernel.rank = 1;
    kernel.twin = twin;
    REQUIRE_CODE(isthmus_sim_register_kernel(&kernel), 0);
    Module* module = nullptr;
    Function* function = nullptr;
    REQUIRE_CODE(cuModuleLoadData(&module, image), 0);
    REQUIRE_CODE(cuModuleGetFunction(&function, module, symbol), 0);
    return function;
}

Result launch(Function* function, Stream* stream, std::uint64_t items, void* pack) {
    isthmus_sim_extent extent = {items, 1, 1};
    void* parameters[] = {&extent, pack};
    return cuLaunchKernel(function, static_cast<unsigned>((items + 255) / 256), 1, 1, 256, 1, 1, 0, stream, parameters,
                          nullptr);
}

}  // namespace

void prepare_child() {
    // Sanitizers would report the intended faults of these tests as real ones.
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGBUS, SIG_DFL);
}

void in_own_process_faults(const std::function<void()>& body, const char* says) {
    EXPECT_EXIT((prepare_child(), body(), std::_Exit(0)), ::testing::KilledBySignal(SIGSEGV), says);
}

Context* open_device(int device) {
    Context* context = nullptr;
    REQUIRE_CODE(cuInit(0), 0);
    REQUIRE_CODE(cuDevicePrimaryCtxRetain(&context, device), 0);
    REQUIRE_CODE(cuCtxSetCurrent(context), 0);
    return context;
}

int fact(int id, int device) {
    int value = 0;
    return cuDeviceGetAttribute(&value, id, device) == 0 ? value : 0;
}

Address device_memory(std::size_t bytes) {
    Address address = 0;
    REQUIRE_CODE(cuMemAlloc_v2(&address, bytes), 0);
    return address;
}

Address pool_memory(std::size_t bytes, Stream* stream, Pool* pool) {
    Address address = 0;
    if (pool) {
        REQUIRE_CODE(cuMemAllocFromPoolAsync(&address, bytes, pool, stream), 0);
    } else {
        REQUIRE_CODE(cuMemAllocAsync(&address, bytes, stream), 0);
    }
    return address;
}

std::uint64_t pool_figure(Pool* pool, int id) {
    std::uint64_t value = ~std::uint64_t{0};
    REQUIRE_CODE(cuMemPoolGetAttribute(pool, id, &value), 0);
    return value;
}

Stream* new_stream(unsigned flags) {
    Stream* stream = nullptr;
    REQUIRE_CODE(cuStreamCreate(&stream, flags), 0);
    return stream;
}

Event* new_event(unsigned flags) {
    Event* event = nullptr;
    REQUIRE_CODE(cuEventCreate(&event, flags), 0);
    return event;
}

Function* multiply_kernel() {
    return load("test_multiply", multiply_parameters, 2, sizeof(MultiplyPack), multiply);
}
Function* hold_kernel() {
    return load("test_hold", pointer_parameters, 1, sizeof(void*), hold);
}
Function* wild_store_kernel() {
    return load("test_wild_store", pointer_parameters, 1, sizeof(void*), wild_store);
}

namespace {

// Loaded together: a load waits for the kernels that run.
struct Kernels {
    Function *multiply, *hold, *wild_store;
};
const Kernels& kernels() {
    static const Kernels all = {multiply_kernel(), hold_kernel(), wild_store_kernel()};
    return all;
}

}  // namespace

void load_kernels() {
    kernels();
}

Result launch_multiply(Stream* stream, Address data, std::uint64_t size, int factor) {
    MultiplyPack pack = {{data, size}, factor};
    return launch(kernels().multiply, stream, size, &pack);
}

Result launch_hold(Stream* stream, Gate& gate) {
    Gate* pack = &gate;
    return launch(kernels().hold, stream, 1, &pack);
}

Result launch_wild_store(Stream* stream, void* target) {
    return launch(kernels().wild_store, stream, 1, &target);
}

void wait_until(const std::atomic<int>& flag) {
    while (flag.load(std::memory_order_acquire) == 0) std::this_thread::yield();
}

}  // namespace isthmus::sim::test
