// SPDX-License-Identifier: Apache-2.0
// The driver's own functions, for peers in the same run: launches and memory without isthmus.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace bench {

// Count of driver calls in this process (of one function, where named), from the simulator; -1: a real driver, or none.
inline long driver_calls(const char* function = nullptr) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return -1;
    using Count = unsigned long long (*)(const char*);
    const auto count = reinterpret_cast<Count>(dlsym(library, "isthmus_sim_call_count"));
    return count == nullptr ? -1 : static_cast<long>(count(function));
}

struct LaunchConfig {  // as CUlaunchConfig
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void* stream;
    void* attributes;
    unsigned attribute_count;
};

struct MemoryProperties {  // as CUmemAllocationProp: pinned, in the memory of device 0
    int type = 1;
    int handle_types = 0;
    int location_type = 1;
    int device = 0;
    void* win32 = nullptr;
    unsigned char flags[8] = {};
};
struct MemoryAccess {  // as CUmemAccessDesc: device 0 reads and writes
    int location_type = 1;
    int device = 0;
    int flags = 3;
};

struct RawDriver {
    using Handle = void*;
    int (*device_get)(int*, int) = nullptr;
    int (*retain)(Handle*, int) = nullptr;
    int (*set_current)(Handle) = nullptr;
    int (*load)(Handle*, const void*) = nullptr;
    int (*function)(Handle*, Handle, const char*) = nullptr;
    int (*stream_create)(Handle*, unsigned) = nullptr;
    int (*stream_sync)(Handle) = nullptr;
    int (*allocate)(std::uint64_t*, std::size_t) = nullptr;
    int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                  void**) = nullptr;
    int (*init)(unsigned) = nullptr;
    int (*free)(std::uint64_t) = nullptr;
    int (*pointer_attribute)(void*, int, std::uint64_t) = nullptr;
    int (*stream_destroy)(Handle) = nullptr;
    // Need CUDA 11.2; set by find_pools().
    int (*allocate_async)(std::uint64_t*, std::size_t, Handle) = nullptr;
    int (*free_async)(std::uint64_t, Handle) = nullptr;
    int (*default_pool)(Handle*, int) = nullptr;
    int (*pool_set_attribute)(Handle, int, void*) = nullptr;
    // Set by find_events().
    int (*event_create)(Handle*, unsigned) = nullptr;
    int (*event_destroy)(Handle) = nullptr;
    int (*event_record)(Handle, Handle) = nullptr;
    int (*event_query)(Handle) = nullptr;
    int (*stream_wait_event)(Handle, Handle, unsigned) = nullptr;
    int (*fill)(std::uint64_t, unsigned char, std::size_t, Handle) = nullptr;
    // Set by find_mapping().
    int (*reserve_address)(std::uint64_t*, std::size_t, std::size_t, std::uint64_t, unsigned long long) = nullptr;
    int (*free_address)(std::uint64_t, std::size_t) = nullptr;
    int (*create_memory)(std::uint64_t*, std::size_t, const MemoryProperties*, unsigned long long) = nullptr;
    int (*release_memory)(std::uint64_t) = nullptr;
    int (*map)(std::uint64_t, std::size_t, std::size_t, std::uint64_t, unsigned long long) = nullptr;
    int (*unmap)(std::uint64_t, std::size_t) = nullptr;
    int (*set_access)(std::uint64_t, std::size_t, const MemoryAccess*, std::size_t) = nullptr;
    // Set by find_host().
    int (*allocate_host)(void**, std::size_t, unsigned) = nullptr;
    int (*free_host)(void*) = nullptr;
    int (*allocate_managed)(std::uint64_t*, std::size_t, unsigned) = nullptr;
    void* opened = nullptr;

    // Uses the libcuda that the runtime has opened; false where there is none.
    bool open() { return open(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)); }
    // For a program without a runtime: opens and initialises libcuda.
    bool open_own() { return open(dlopen("libcuda.so.1", RTLD_NOW)) && init(0) == 0; }
    bool open(void* library) {
        if (library == nullptr) return false;
        opened = library;
        return find(device_get, "cuDeviceGet") && find(retain, "cuDevicePrimaryCtxRetain") &&
               find(set_current, "cuCtxSetCurrent") && find(load, "cuModuleLoadData") &&
               find(function, "cuModuleGetFunction") && find(stream_create, "cuStreamCreate") &&
               find(stream_sync, "cuStreamSynchronize") && find(allocate, "cuMemAlloc_v2") &&
               find(launch, "cuLaunchKernel") && find(init, "cuInit") && find(free, "cuMemFree_v2") &&
               find(pointer_attribute, "cuPointerGetAttribute") && find(stream_destroy, "cuStreamDestroy_v2");
    }
    bool find_pools() {
        return find(allocate_async, "cuMemAllocAsync") && find(free_async, "cuMemFreeAsync") &&
               find(default_pool, "cuDeviceGetDefaultMemPool") && find(pool_set_attribute, "cuMemPoolSetAttribute");
    }
    bool find_events() {
        return find(event_create, "cuEventCreate") && find(event_destroy, "cuEventDestroy_v2") &&
               find(event_record, "cuEventRecord") && find(event_query, "cuEventQuery") &&
               find(stream_wait_event, "cuStreamWaitEvent") && find(fill, "cuMemsetD8Async");
    }
    bool find_mapping() {
        return find(reserve_address, "cuMemAddressReserve") && find(free_address, "cuMemAddressFree") &&
               find(create_memory, "cuMemCreate") && find(release_memory, "cuMemRelease") && find(map, "cuMemMap") &&
               find(unmap, "cuMemUnmap") && find(set_access, "cuMemSetAccess");
    }
    bool find_host() {
        return find(allocate_host, "cuMemHostAlloc") && find(free_host, "cuMemFreeHost") &&
               find(allocate_managed, "cuMemAllocManaged");
    }
    template <class Function>
    bool find(Function& slot, const char* name) const {
        slot = reinterpret_cast<Function>(dlsym(opened, name));
        return slot != nullptr;
    }

    // Makes device 0 current on this thread.
    bool prepare_device() {
        int device = 0;
        Handle context = nullptr;
        return device_get(&device, 0) == 0 && retain(&context, device) == 0 && set_current(context) == 0;
    }

    // Creates a stream and looks up the kernel's function on device 0, whose context becomes current on this thread.
    bool prepare(const isthmus::KernelInfo& kernel, Handle& stream, Handle& entry) {
        int device = 0;
        Handle context = nullptr;
        Handle image = nullptr;
        return kernel.image != nullptr && device_get(&device, 0) == 0 && retain(&context, device) == 0 &&
               set_current(context) == 0 && load(&image, kernel.image->data) == 0 &&
               function(&entry, image, kernel.symbol) == 0 && stream_create(&stream, 1) == 0;
    }
};

}  // namespace bench
