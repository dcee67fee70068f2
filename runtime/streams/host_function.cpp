// SPDX-License-Identifier: Apache-2.0
// Stream::call_on_host.
#include <isthmus/stream.hpp>

#include "device_state.hpp"
#include "host_calls.hpp"
#include "operation.hpp"
#include "recording.hpp"
#include "stream_state.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace {

// The CPU device has no outstanding work. No lock is held, because the function may wait for another thread.
Result<void> call_at_once(detail::StreamState& stream, detail::HostFunction& function) {
    detail::run_once(&function);
    const std::lock_guard lock(stream.mutex);
    stream.advance("a host function");
    return {};
}

bool is_recorded(detail::StreamState& stream) {
    const std::lock_guard lock(stream.mutex);
    const Result<detail::HeldCapture> captured = stream.capture();
    return captured && *captured;
}

}  // namespace

Result<void> Stream::may_call_on_host() {
    detail::DeviceState& device = *state_->device;
    if (!device.config->forked()) device.end_host_functions(state_->host_calls);
    if (device.bars(rules::PublicCall::call_on_host)) return device.refusal(rules::PublicCall::call_on_host);
    return {};
}

Result<void> Stream::call_erased(std::shared_ptr<detail::HostFunction> function) {
    detail::StreamState& stream = *state_;
    detail::DeviceState& device = *stream.device;
    if (device.synchronous && !is_recorded(stream)) return call_at_once(stream, *function);
    // The runtime does not learn when other code destroys its graph and the closure could be destroyed.
    if (Result<void> refused = stream.refuse_captured_elsewhere("a host function was to be called"); !refused) {
        return refused;
    }
    detail::Operation operation(stream, "a host function", nullptr);
    operation.keeps(function);
    Result<std::uint64_t> issued = operation.issue([&] {
        const bool recorded = stream.recording != nullptr;
        function->order = recorded ? nullptr : device.books->order.get();
        function->stream_id = stream.id;
        function->position = stream.issued + 1;
        const platform::Status status = device.execution.call_on_host(
            stream.handle, recorded ? detail::run_each_time : detail::run_once, function.get());
        if (status.ok() && !recorded) stream.host_calls.add(function);
        return status;
    });
    return issued ? Result<void>() : std::move(issued).error();
}

}  // namespace v0
}  // namespace isthmus
