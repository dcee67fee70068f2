// Retaining the primary context, and entering and leaving it without a trace.
#include "context.hpp"

#include <unistd.h>

namespace isthmus::platform::cuda {

bool Library::forked() const noexcept {
    return ::getpid() != process;
}

Status Library::failure(CUresult code, const char* call) const noexcept {
    // In a forked child the driver answers every call with 3 (observed).
    if (code == result::not_initialized && forked()) return {Code::forked, code, call};
    return {code_of(code), code, call};
}

DeviceContext::DeviceContext(std::shared_ptr<const Library> library, CUdevice device) noexcept
    : library_(std::move(library)), device_(device) {}

DeviceContext::~DeviceContext() {
    // At process exit the driver may be gone already and answers 4: nothing depends on the answer.
    if (used() && !library_->forked()) (void)api().primary_context_release(device_);
}

Status DeviceContext::retain(CUcontext& context) {
    context = context_.load(std::memory_order_acquire);
    if (context) return {};
    const std::lock_guard lock(retaining_);
    context = context_.load(std::memory_order_relaxed);
    if (context) return {};
    const CUresult code = api().primary_context_retain(&context, device_);
    if (code == result::success) context_.store(context, std::memory_order_release);
    return library_->status(code, "cuDevicePrimaryCtxRetain");
}

// Push and pop, because they restore what was there whatever it was, also a context that was destroyed meanwhile.
Status DeviceContext::enter() {
    CUcontext context = nullptr;
    if (Status retained = retain(context); !retained.ok()) return retained;
    return library_->status(api().context_push(context), "cuCtxPushCurrent_v2");
}

void DeviceContext::leave() noexcept {
    CUcontext ours = nullptr;
    (void)api().context_pop(&ours);
}

}  // namespace isthmus::platform::cuda
