// SPDX-License-Identifier: Apache-2.0
// A device's primary context: retained on first use, current only during a call that needs it, and checked for
// destruction by other code of the process; and the protection of open captures during calls.
#pragma once

#include "library.hpp"

#include <mutex>

namespace isthmus::platform::cuda {

// Calls `f`, which returns a result code or a Status, again after a transient failure. For calls that release or
// restore something and whose caller cannot report an error. Relies on this: a driver that returns such a failure has
// done nothing.
template <class F>
auto insist(F f) {
    constexpr int tries = 3;
    auto answer = f();
    for (int attempt = 1; attempt < tries && may_pass(answer); ++attempt) answer = f();
    return answer;
}

// While captures are open, sets the calling thread's capture mode to RELAXED while this object lives. Observed on
// driver 580: allocations, frees, registrations, queries and waits for other streams, pool and module calls then leave
// a THREAD_LOCAL capture intact, even on its own thread; otherwise they answer 900 and the capture is lost. Makes no
// driver call while no capture is open and no stream of other code is wrapped.
class CaptureCare {
public:
    explicit CaptureCare(const Library& library) noexcept {
        if (library.maybe_captured.load(std::memory_order_relaxed) == 0) return;
        const auto exchange = [&] { return library.api.thread_exchange_capture_mode(&mode_); };
        if (insist(exchange) == result::success) library_ = &library;
    }
    ~CaptureCare() {
        if (library_) (void)insist([this] { return library_->api.thread_exchange_capture_mode(&mode_); });
    }
    CaptureCare(const CaptureCare&) = delete;
    CaptureCare& operator=(const CaptureCare&) = delete;

private:
    const Library* library_ = nullptr;                  // null: nothing to restore
    CUstreamCaptureMode mode_ = capture_mode::relaxed;  // after construction: the thread's own mode
};

// Thread-safe. Once the context is known to be destroyed, every call but release_after_death() returns 709 without the
// driver: if the primary context is retained again, the driver gives the new one the same handle (observed), and this
// object must neither create anything in it nor undo something there whose address or handle was once its own.
class DeviceContext {
public:
    DeviceContext(const Library& library, CUdevice device) noexcept : library_(library), device_(device) {}
    // Releases the reference to the primary context, also after its destruction (a reset leaves the references), but
    // not in a forked child, where the driver must not be called.
    ~DeviceContext();
    DeviceContext(const DeviceContext&) = delete;
    DeviceContext& operator=(const DeviceContext&) = delete;

    const Library& library() const noexcept { return library_; }
    const Api& api() const noexcept { return library_.api; }
    CUdevice device() const noexcept { return device_; }

    // The context handle, for calls that name two; retains it.
    Status handle(CUcontext& out) {
        out = context_.load(std::memory_order_acquire);
        return out && !known_dead() ? Status{} : retained_handle(out);
    }
    // Was the context destroyed? Queries the driver (cuCtxGetId: ids are never reused) until the answer is yes.
    bool died() noexcept;
    bool known_dead() const noexcept { return died_.load(std::memory_order_relaxed); }

    // Calls f() → CUresult with this device's context current, then restores the caller's context exactly, also "none".
    // For creations and their undoing: streams, events, memory and modules belong to the current context (201 without
    // one). Each call verifies that the context is the one retained.
    template <class F>
    Status inside(const char* call, F f) {
        const CaptureCare care(library_);
        if (Status entered = enter(call); !entered.ok()) return entered;
        const CUresult code = f();
        leave();
        return library_.status(code, call);
    }

    // Calls work() with this device's context current, then restores the caller's. Unlike inside(), in the caller's own
    // capture mode, and without a check that the context lives: what `work` calls finds that out, as calls on streams
    // do. Two driver calls if the context is current already, else three.
    template <class F>
    Status around(F work) {
        if (known_dead()) return destroyed("cuCtxPushCurrent_v2");
        CUcontext context = context_.load(std::memory_order_acquire);
        if (!context) {
            if (Status retained = handle(context); !retained.ok()) return retained;
        }
        if (is_current(context)) {
            work();
            if (!is_current(context)) put_back(context);
            return {};
        }
        const CUresult code = api().context_push(context);
        if (code != result::success) {
            return died() ? destroyed("cuCtxPushCurrent_v2") : library_.status(code, "cuCtxPushCurrent_v2");
        }
        work();
        leave();
        return {};
    }

    // Like inside(), for releases: entering the context is repeated together with the call.
    template <class F>
    Status give_back(const char* call, F f) {
        return insist([&] { return inside(call, f); });
    }

    // Calls f() directly: a stream or event brings its own context (observed on driver 580: launches, records, queries,
    // waits, copies, fills and pool allocations work with no context or another one current). Calls it inside the
    // context only after 201 or 709 (which may concern the caller's current context), or for the default stream, which
    // is that of the current context. For work on a stream: a capturing stream captures it in every mode, so the mode
    // is not changed.
    template <class F>
    Status on_stream(const char* call, StreamHandle stream, F f) {
        return is_default(stream) ? inside(call, f) : directly(call, f);
    }
    // Copies and fills. Without a current context the driver rejects as invalid (1) those across mapped memory of two
    // devices; it executes them with the stream's own context current (observed on driver 580, copies to the host).
    template <class F>
    Status moves(const char* call, StreamHandle stream, F f) {
        const Status status = on_stream(call, stream, f);
        if (status.driver_code != result::invalid_value || is_default(stream)) return status;
        return inside(call, f);
    }
    // Queries, waits, allocations, hints: calls that would end a capture of this thread on another stream.
    template <class F>
    Status beside_captures(const char* call, StreamHandle stream, F f) {
        if (is_default(stream)) return inside(call, f);
        const CaptureCare care(library_);
        return directly(call, f);
    }
    // Calls without a stream.
    template <class F>
    Status anywhere(const char* call, F f) {
        const CaptureCare care(library_);
        return directly(call, f);
    }
    // Destroys a handle; skipped if the context was destroyed, because the value may now be another object's handle.
    template <class F>
    Status destroy(const char* call, F f) {
        if (died()) return destroyed(call);
        return anywhere(call, [&] { return insist(f); });
    }
    // Pool memory survives its context; freeing it then needs some context (observed: cuMemFreeAsync on stream 0 of a
    // newly retained one answers 0), which is retained for this call only.
    template <class F>
    Status release_after_death(const char* call, F f) {
        const CaptureCare care(library_);
        if (Status entered = enter_anew(); !entered.ok()) return entered;
        const CUresult code = insist(f);
        leave();
        (void)insist([this] { return api().primary_context_release(device_); });
        return library_.status(code, call);
    }
    // Virtual memory survives its context (observed), so it is undone in any state: without a context if the driver
    // accepts that, otherwise in one retained for this call.
    template <class F>
    Status undo(const char* call, F f) {
        if (!known_dead()) {
            const Status status = anywhere(call, [&] { return insist(f); });
            if (status.ok() || !known_dead()) return status;
        }
        const CaptureCare care(library_);
        const CUresult code = insist(f);
        const bool without_context = code == result::invalid_context || code == result::context_is_destroyed;
        return without_context ? release_after_death(call, f) : library_.status(code, call);
    }

private:
    // No stream, or CU_STREAM_LEGACY: both mean the legacy default stream of the current context.
    static bool is_default(StreamHandle stream) noexcept { return static_cast<std::uintptr_t>(stream) <= 1; }
    template <class F>
    Status directly(const char* call, F f) {
        if (known_dead()) return destroyed(call);
        const CUresult code = f();
        const bool without_context = code == result::invalid_context || code == result::context_is_destroyed;
        return without_context ? inside(call, f) : library_.status(code, call);
    }
    static Status destroyed(const char* call) noexcept {
        return {Code::device_lost, result::context_is_destroyed, call};
    }
    bool is_current(CUcontext context) const noexcept {
        CUcontext current = nullptr;
        return api().context_get_current(&current) == result::success && current == context;
    }
    void put_back(CUcontext context) noexcept;
    Status enter(const char* call);
    Status enter_anew();
    void leave() noexcept;
    Status retain(CUcontext& context);
    Status retained_handle(CUcontext& out);
    bool gone(CUcontext context) const noexcept;

    const Library& library_;
    CUdevice device_;
    std::atomic<CUcontext> context_{nullptr};  // published by retain() with release, read with acquire
    unsigned long long id_ = 0;                // written before context_ is published
    std::atomic<bool> died_{false};            // never cleared; a thread that misses it gets the driver's answer
    std::mutex retaining_;
};

inline CUstream stream_of(StreamHandle stream) noexcept {
    return reinterpret_cast<CUstream>(static_cast<std::uintptr_t>(stream));
}
inline CUevent event_of(EventHandle event) noexcept {
    return reinterpret_cast<CUevent>(static_cast<std::uintptr_t>(event));
}
inline void* host_pointer(std::uint64_t address) noexcept {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}
template <class Handle, class Pointer>
Handle handle_of(Pointer* pointer) noexcept {
    return static_cast<Handle>(reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace isthmus::platform::cuda
