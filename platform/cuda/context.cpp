// SPDX-License-Identifier: Apache-2.0
// Retains the primary context, enters and leaves it without side effects, and detects its destruction.
#include "context.hpp"

#include <unistd.h>

namespace isthmus::platform::cuda {

bool Library::forked() const noexcept {
    return ::getpid() != process;
}

Status Library::failure(CUresult code, const char* call) const noexcept {
    // In a forked child the driver answers every call with 3 (observed).
    if (code == result::not_initialized && forked()) return {Code::forked, code, call};
    const Status status{code_of(code), code, call};
    // A destroyed context (709) is no fault: the next context works.
    if (status.code == Code::device_lost && code != result::context_is_destroyed) {
        fault_seen.store(true, std::memory_order_relaxed);
    }
    return status;
}

Library::Library() noexcept = default;
Library::~Library() = default;

DeviceContext* Library::context(int ordinal) const noexcept {
    const bool known = ordinal >= 0 && static_cast<std::size_t>(ordinal) < contexts.size();
    return known ? contexts[static_cast<std::size_t>(ordinal)].get() : nullptr;
}

DeviceContext::~DeviceContext() {
    const bool used = context_.load(std::memory_order_acquire) != nullptr;
    if (!used || library_.forked()) return;
    // Also releases a destroyed context: a reset leaves the references (observed), and one not released would keep the
    // next context alive permanently. At process exit the driver may be shut down already and answers 4; nothing
    // depends on it.
    (void)insist([this] { return api().primary_context_release(device_); });
}

Status DeviceContext::retain(CUcontext& context) {
    context = context_.load(std::memory_order_acquire);
    if (context) return {};
    const std::lock_guard lock(retaining_);
    context = context_.load(std::memory_order_relaxed);
    if (context) return {};
    CUresult code = api().primary_context_retain(&context, device_);
    if (code != result::success) return library_.status(code, "cuDevicePrimaryCtxRetain");
    code = api().context_get_id(context, &id_);
    if (code == result::success) {
        context_.store(context, std::memory_order_release);
    } else {
        (void)insist([this] { return api().primary_context_release(device_); });
    }
    return library_.status(code, "cuCtxGetId");
}

Status DeviceContext::retained_handle(CUcontext& out) {
    if (known_dead()) return destroyed("cuDevicePrimaryCtxRetain");
    const CaptureCare care(library_);
    return retain(out);
}

// Only answers about this context count; 700 and similar codes, 3 in a forked child and 4 at exit do not.
bool DeviceContext::gone(CUcontext context) const noexcept {
    unsigned long long id = 0;
    const CUresult code = api().context_get_id(context, &id);
    if (code == result::success) return id != id_;
    return code == result::context_is_destroyed || code == result::invalid_context;
}

// If the caller's current context is a destroyed one, every call answers 709 (observed): so the second query runs with
// this device's context current.
bool DeviceContext::died() noexcept {
    if (known_dead()) return true;
    CUcontext context = context_.load(std::memory_order_acquire);
    if (!context || !gone(context)) return false;
    if (api().context_push(context) == result::success) {
        const bool ours = !gone(context);
        leave();
        if (ours) return false;
    }
    died_.store(true, std::memory_order_relaxed);
    return true;
}

// Push and pop restore the previous context in any case, even one that was destroyed meanwhile.
Status DeviceContext::enter(const char* call) {
    if (known_dead()) return destroyed(call);
    CUcontext context = nullptr;
    if (Status retained = retain(context); !retained.ok()) return retained;
    const CUresult code = api().context_push(context);
    if (code != result::success) {
        return died() ? destroyed(call) : library_.status(code, "cuCtxPushCurrent_v2");
    }
    if (!gone(context)) return {};
    leave();
    died_.store(true, std::memory_order_relaxed);
    return destroyed(call);
}

Status DeviceContext::enter_anew() {
    CUcontext context = nullptr;
    CUresult code = api().primary_context_retain(&context, device_);
    if (code != result::success) return library_.status(code, "cuDevicePrimaryCtxRetain");
    code = api().context_push(context);
    if (code != result::success) (void)insist([this] { return api().primary_context_release(device_); });
    return library_.status(code, "cuCtxPushCurrent_v2");
}

// Other code made another context current in place of this one (cuCtxSetCurrent, cudaSetDevice).
void DeviceContext::put_back(CUcontext context) noexcept {
    leave();
    (void)insist([&] { return api().context_push(context); });
}

void DeviceContext::leave() noexcept {
    CUcontext ours = nullptr;
    (void)insist([&] { return api().context_pop(&ours); });
}

}  // namespace isthmus::platform::cuda
