// The launch that most launches are. It is short because a driver call leaves the caches full of the driver: what a
// launch adds to cuLaunchKernel is, more than its instructions, the lines of code and data that it touches.
#include "launch_at_once.hpp"

#include "buffer_state.hpp"
#include "device_state.hpp"
#include "stream_state.hpp"

#include <cstring>
#include <mutex>

namespace isthmus::inline v0::detail {

AtOnce launch_at_once(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                      const LaunchArgument* arguments, std::size_t count, std::uint64_t& position,
                      platform::Status& status) {
    const DeviceState& device = *stream.device;
    const std::lock_guard lock(stream.mutex);
    platform::LaunchRequest request{&kernel, stream.cached_function(kernel), extent, pack, stream.handle};
    if (request.function == platform::FunctionHandle::none || !stream.tail.empty() || stream.recording != nullptr)
        return AtOnce::not_so_simple;
    for (std::size_t at = 0; at < count; ++at) {
        const LaunchArgument& argument = arguments[at];
        if (!argument.is_view) {
            if (!argument.fits) return AtOnce::not_so_simple;
            continue;
        }
        if (argument.buffer == nullptr) return AtOnce::not_so_simple;
        const BufferState* const buffer = argument.buffer->get();
        if (buffer == nullptr || !buffer->only_for(stream, device)) return AtOnce::not_so_simple;
        std::memcpy(static_cast<unsigned char*>(pack) + kernel.parameter[at].offset_bytes, &buffer->device_address,
                    sizeof buffer->device_address);
    }
    // Before the call: whoever releases a buffer meanwhile waits for this launch (ADR 4).
    position = stream.advance(kernel.name);
    for (std::size_t at = 0; at < count; ++at) {
        if (arguments[at].is_view) arguments[at].buffer->get()->mark_used(position);
    }
    status = device.execution.launch(request);
    return status.ok() ? AtOnce::done : AtOnce::failed;
}

}  // namespace isthmus::inline v0::detail
