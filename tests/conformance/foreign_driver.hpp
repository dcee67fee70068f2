// SPDX-License-Identifier: Apache-2.0
// Driver calls of other code, through the runtime's driver library: streams, memory, captures and graphs that the
// runtime did not make. A planned fault in them ends the scenario.
#pragma once

#include "scenario.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace conformance {

// nullptr: the library has no such function, or there is no library.
template <class Signature>
Signature* driver_function(const char* name) {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library == nullptr ? nullptr : reinterpret_cast<Signature*>(dlsym(library, name));
}

// Calls it; any result but `wanted` is a failure, and after a planned fault ends the scenario.
template <class... A>
void driver_call(int wanted, const char* name, A... arguments) {
    auto* const function = driver_function<int(A...)>(name);
    if (function == nullptr) {
        ADD_FAILURE() << name << " is not there";
        throw ScenarioEnded{};
    }
    const int code = function(arguments...);
    if (code == wanted) return;
    if (!fault_happened()) ADD_FAILURE() << name << " answered " << code;
    throw ScenarioEnded{};
}

// A reference to a device's primary context. Without one, while the runtime has not used the device, the context would
// be destroyed with everything made in it.
class RetainedContext {
public:
    explicit RetainedContext(const isthmus::Device& device) : ordinal_(device.facts().ordinal) {
        driver_call(0, "cuDevicePrimaryCtxRetain", &context_, ordinal_);
    }
    RetainedContext(const RetainedContext&) = delete;
    RetainedContext& operator=(const RetainedContext&) = delete;
    ~RetainedContext() { (void)driver_function<int(int)>("cuDevicePrimaryCtxRelease_v2")(ordinal_); }
    void* get() const noexcept { return context_; }

private:
    const int ordinal_;
    void* context_ = nullptr;
};

// A device's primary context, current during this object's lifetime.
class ForeignContext {
public:
    explicit ForeignContext(const isthmus::Device& device) : context_(device) {
        driver_call(0, "cuCtxPushCurrent_v2", context_.get());
    }
    ForeignContext(const ForeignContext&) = delete;
    ForeignContext& operator=(const ForeignContext&) = delete;
    ~ForeignContext() {
        void* popped = nullptr;
        (void)driver_function<int(void**)>("cuCtxPopCurrent_v2")(&popped);
    }

private:
    const RetainedContext context_;
};

// A stream that other code makes in the device's primary context, and destroys.
class ForeignStream {
public:
    explicit ForeignStream(const isthmus::Device& device) : context_(device) {
        const ForeignContext context(device);
        driver_call(0, "cuStreamCreate", &stream_, non_blocking);
    }
    ForeignStream(const isthmus::Device& device, int priority) : context_(device) {
        const ForeignContext context(device);
        driver_call(0, "cuStreamCreateWithPriority", &stream_, non_blocking, priority);
    }
    ForeignStream(const ForeignStream&) = delete;
    ForeignStream& operator=(const ForeignStream&) = delete;
    ~ForeignStream() { destroy(); }
    void* get() const noexcept { return stream_; }
    void destroy() noexcept {
        if (stream_ != nullptr) (void)driver_function<int(void*)>("cuStreamDestroy_v2")(stream_);
        stream_ = nullptr;
    }

private:
    static constexpr unsigned non_blocking = 1;
    const RetainedContext context_;
    void* stream_ = nullptr;
};

}  // namespace conformance
