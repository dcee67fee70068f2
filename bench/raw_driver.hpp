// The driver's own functions, for a peer in the same run: what a launch costs without isthmus.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace bench {

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

    // Uses the libcuda that the runtime has opened already; false where there is none.
    bool open() { return open(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)); }
    // For a program without a runtime: opens and initialises it.
    bool open_own() { return open(dlopen("libcuda.so.1", RTLD_NOW)) && init(0) == 0; }
    bool open(void* library) {
        if (library == nullptr) return false;
        const auto find = [&](auto& slot, const char* name) {
            slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(library, name));
            return slot != nullptr;
        };
        return find(device_get, "cuDeviceGet") && find(retain, "cuDevicePrimaryCtxRetain") &&
               find(set_current, "cuCtxSetCurrent") && find(load, "cuModuleLoadData") &&
               find(function, "cuModuleGetFunction") && find(stream_create, "cuStreamCreate") &&
               find(stream_sync, "cuStreamSynchronize") && find(allocate, "cuMemAlloc_v2") &&
               find(launch, "cuLaunchKernel") && find(init, "cuInit") && find(free, "cuMemFree_v2") &&
               find(pointer_attribute, "cuPointerGetAttribute");
    }

    // Makes device 0 current on this thread.
    bool prepare_device() {
        int device = 0;
        Handle context = nullptr;
        return device_get(&device, 0) == 0 && retain(&context, device) == 0 && set_current(context) == 0;
    }

    // A stream and the kernel's function on device 0, made current on this thread.
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
