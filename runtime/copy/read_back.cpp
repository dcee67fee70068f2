// SPDX-License-Identifier: Apache-2.0
// read_back: waits for the work that writes a buffer, and copies its content to the host.
#include <isthmus/read_back.hpp>

#include "buffer_state.hpp"
#include "copy.hpp"
#include "copy_checks.hpp"
#include "copy_errors.hpp"
#include "device_state.hpp"
#include "stream_state.hpp"

#include <isthmus/copy.hpp>

#include <cstring>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

Result<void> view_bytes(const std::shared_ptr<BufferState>& buffer, void* to, Wait wait) {
    Result<ViewScope> scope = open_scope(*buffer, ArgumentUse::read, wait);
    if (!scope) return std::move(scope).error();
    std::memcpy(to, buffer->memory->host, buffer->memory->bytes);
    return {};
}

// Copies on the device's download stream, behind no unrelated later work. Uses bounce buffers even if the device can
// reach the vector: after a timeout, nothing writes into freed memory.
Result<void> copy_bytes(const std::shared_ptr<BufferState>& buffer, void* to, Wait wait) {
    DeviceState& device = *buffer->device;
    if (device.bars(rules::PublicCall::read_back)) return device.refusal(rules::PublicCall::read_back);
    if (wait.refuse) {
        return make_error<errors::read_back_needs_a_copy>(name(buffer->memory->kind));
    }
    if (Result<void> written = buffer->wait_for_uses(ArgumentUse::read, wait); !written) return written;
    const std::shared_ptr<StreamState> stream = device.download_stream();
    const CopyRequest request{
        end_of(to, buffer->memory->bytes, {}), {&buffer, 0, 0, {}}, {buffer->memory->bytes, 1, 1}, 1};
    Result<CopyJob> job = check_copy(*stream, request);
    if (!job) return std::move(job).error();
    return bounce_down(*stream, *job);
}

}  // namespace

namespace {
Result<void> read_untold(const std::shared_ptr<BufferState>& buffer, void* to, Wait wait) {
    const rules::Bar bar = buffer->device->bar(rules::PublicCall::read_back_host_side);
    if (bar == rules::Bar::capture) return make_error<errors::read_back_in_capture>();
    if (bar != rules::Bar::none) return buffer->device->refusal(rules::PublicCall::read_back_host_side);
    if (buffer->memory->bytes == 0) return {};
    return buffer->memory->host != nullptr ? view_bytes(buffer, to, wait) : copy_bytes(buffer, to, wait);
}
}  // namespace

Result<void> read_back_bytes(const std::shared_ptr<BufferState>& buffer, void* to, Wait wait) {
    if (!buffer) return make_error<errors::read_back_of_empty_buffer>();
    ObservedSpan span(buffer->device->observer(), Span::read_back, "a read-back", [&] { return buffer->observed(); });
    Result<void> done = read_untold(buffer, to, wait);
    span.over(done);
    return done;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
