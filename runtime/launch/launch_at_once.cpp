// The launch that most launches are. It is short because a driver call leaves the caches full of the driver: what a
// launch adds to cuLaunchKernel is, more than its instructions, the lines of code and data that it touches.
#include "launch_at_once.hpp"

#include "buffer_state.hpp"
#include "device_state.hpp"
#include "stream_state.hpp"

#include <bit>
#include <cstddef>
#include <cstring>
#include <mutex>

namespace isthmus::inline v0::detail {
namespace {

// A View or Out as it lies in the pack.
struct Viewed {
    std::uint64_t address;
    std::uint64_t count;
};

// Elements are mostly 1, 2, 4, 8 … bytes long; a division takes longer than everything else here.
std::uint64_t elements(std::uint64_t bytes, std::uint32_t element_bytes) noexcept {
    const bool power_of_two = (element_bytes & (element_bytes - 1)) == 0;  // has_single_bit() may be a function call
    return power_of_two ? bytes >> std::countr_zero(element_bytes) : bytes / element_bytes;
}

}  // namespace

AtOnce launch_at_once(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                      const std::shared_ptr<BufferState>* const* buffers, std::uint64_t& position,
                      platform::Status& status) {
    const DeviceState& device = *stream.device;
    const std::lock_guard lock(stream.mutex);
    platform::LaunchRequest request{&kernel, stream.cached_function(kernel), extent, pack, stream.handle};
    if (request.function == platform::FunctionHandle::none || !stream.tail.empty() || stream.recording != nullptr)
        return AtOnce::not_so_simple;
    const std::shared_ptr<BufferState>* const* next = buffers;
    const ParameterInfo* const end = kernel.parameter + kernel.parameter_count;
    for (const ParameterInfo* parameter = kernel.parameter; parameter != end; ++parameter) {
        if (parameter->use == ArgumentUse::value) continue;
        const BufferState* const buffer = (*next++)->get();
        if (buffer == nullptr || !buffer->only_for(stream, device)) return AtOnce::not_so_simple;
        const Viewed viewed{buffer->memory->device_address, elements(buffer->memory->bytes, parameter->element_bytes)};
        std::memcpy(static_cast<unsigned char*>(pack) + parameter->offset_bytes, &viewed, sizeof viewed);
    }
    // Before the call: whoever releases a buffer meanwhile waits for this launch (ADR 4).
    position = stream.advance(kernel.name);
    for (; buffers != next; ++buffers) (*buffers)->get()->first_use.raise(position);
    stream.gives(kernel.name);
    status = device.execution.launch(request);
    return status.ok() ? AtOnce::done : AtOnce::failed;
}

}  // namespace isthmus::inline v0::detail
