// SPDX-License-Identifier: Apache-2.0
// Execution on one CUDA device: streams, events and kernels.
#pragma once

#include "context.hpp"
#include "kernel_modules.hpp"

namespace isthmus::platform::cuda {

class CudaExecution final : public Execution {
public:
    explicit CudaExecution(DeviceContext& context) noexcept : context_(context), modules_(context) {}

    Status create_stream(int priority, StreamHandle& out) override;
    Status destroy_stream(StreamHandle stream) override;
    Status stream_priority(StreamHandle stream, int& out) override;
    Status foreign_stream(void* native, ForeignStream& out) override;
    void forget_foreign_stream() noexcept override;
    void* native_stream(StreamHandle stream) noexcept override { return stream_of(stream); }
    Status call_on_host(StreamHandle stream, void (*function)(void*), void* data) override;
    Status query_stream(StreamHandle stream) override;
    Status call_in_context(void (*work)(void*), void* data) override;
    Status status_of(int code, const char* call) const noexcept override;

    Status create_event(EventKind kind, EventHandle& out) override;
    Status destroy_event(EventHandle event) override;
    Status record_event(EventHandle event, StreamHandle stream) override;
    Status wait_event(StreamHandle stream, EventHandle event) override;
    Status query_event(EventHandle event) override;
    void* native_event(EventHandle event) noexcept override { return event_of(event); }
    EventHandle foreign_event(void* event) noexcept override { return handle_of<EventHandle>(event); }
    Status elapsed_ms(EventHandle begin, EventHandle end, float& milliseconds) override;
    Status share_event(EventHandle event, SharedHandle& out) override;
    Status open_event(const SharedHandle& handle, EventHandle& out) override;

    Status context_in_use(bool& out) override;
    Status record_context(EventHandle event) override;
    Status synchronize_context() override;

    KernelModules& modules() noexcept { return modules_; }
    Status resolve(const KernelInfo& kernel, FunctionHandle& out) override { return modules_.resolve(kernel, out); }
    bool is_resolved(const KernelInfo& kernel) override { return modules_.knows(kernel); }
    Status launch(const LaunchRequest& request) override;

private:
    DeviceContext& context_;
    KernelModules modules_;
};

}  // namespace isthmus::platform::cuda
