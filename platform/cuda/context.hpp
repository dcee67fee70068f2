// A device's primary context: retained on first use, made current only for as long as a call needs it.
#pragma once

#include "library.hpp"

#include <atomic>
#include <memory>
#include <mutex>

namespace isthmus::platform::cuda {

class DeviceContext {
public:
    DeviceContext(std::shared_ptr<const Library> library, CUdevice device) noexcept;
    // Gives the primary context back, unless in a forked child, where nothing may be touched.
    ~DeviceContext();
    DeviceContext(const DeviceContext&) = delete;
    DeviceContext& operator=(const DeviceContext&) = delete;

    const Library& library() const noexcept { return *library_; }
    const Api& api() const noexcept { return library_->api; }
    bool used() const noexcept { return context_.load(std::memory_order_acquire) != nullptr; }

    // Calls f() → CUresult while this device's context is current, then gives the caller back exactly what it had,
    // "none" too. For creations: streams, events, memory and modules belong to the current context (201 without).
    template <class F>
    Status inside(const char* call, F f) {
        if (Status entered = enter(); !entered.ok()) return entered;
        const CUresult code = f();
        leave();
        return library_->status(code, call);
    }

    // Calls f() directly: a stream or event brings its own context (observed on driver 580: launches, records,
    // queries, waits, copies, fills, pool allocation work with no context or another's current). Only where the
    // driver answers 201, or where the stream is the default one, which is the current context's, is it done inside.
    template <class F>
    Status anywhere(const char* call, F f) {
        const CUresult code = f();
        return code == result::invalid_context ? inside(call, f) : library_->status(code, call);
    }
    template <class F>
    Status on_stream(const char* call, StreamHandle stream, F f) {
        return stream == StreamHandle::none ? inside(call, f) : anywhere(call, f);
    }

private:
    Status enter();
    void leave() noexcept;
    Status retain(CUcontext& context);

    std::shared_ptr<const Library> library_;
    CUdevice device_;
    std::atomic<CUcontext> context_{nullptr};  // published by retain() with release, read with acquire
    std::mutex retaining_;
};

inline CUstream stream_of(StreamHandle stream) noexcept {
    return reinterpret_cast<CUstream>(static_cast<std::uintptr_t>(stream));
}
inline CUevent event_of(EventHandle event) noexcept {
    return reinterpret_cast<CUevent>(static_cast<std::uintptr_t>(event));
}
template <class Handle, class Pointer>
Handle handle_of(Pointer* pointer) noexcept {
    return static_cast<Handle>(reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace isthmus::platform::cuda
