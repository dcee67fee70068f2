// SPDX-License-Identifier: Apache-2.0
// Fast path of launches: in-place buffers, nothing to fence. Kept short because a driver call fills the caches: a
// launch adds cost to cuLaunchKernel by the lines of code and data that it touches, more than by its instructions.
#include "launch_at_once.hpp"

#include "atomic_guard.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "in_place_claim.hpp"
#include "process.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// The layout of a View or Out in the pack.
struct Viewed {
    std::uint64_t address;
    std::uint64_t count;
};

// Element sizes are mostly powers of two; a division takes longer than everything else on this path.
std::uint64_t elements(std::uint64_t bytes, std::uint32_t element_bytes) noexcept {
    const bool power_of_two = (element_bytes & (element_bytes - 1)) == 0;  // has_single_bit() may be a function call
    return power_of_two ? bytes >> std::countr_zero(element_bytes) : bytes / element_bytes;
}

void write_view(const BufferState& buffer, const ParameterInfo& parameter, void* pack) noexcept {
    const Viewed viewed{buffer.memory->device_address, elements(buffer.memory->bytes, parameter.element_bytes)};
    std::memcpy(static_cast<unsigned char*>(pack) + parameter.offset_bytes, &viewed, sizeof viewed);
}

// The buffers of a launch like the one before: those that the host may view from the front, the others from the back.
class SameBuffers {
public:
    // Whether this stream has used every buffer before as the kernel does, all are in the order of the tail, and no
    // view is open. Then their addresses are in the pack. Expects the stream's lock.
    bool found(const StreamState& stream, const KernelInfo& kernel, void* pack,
               const std::shared_ptr<BufferState>* const* next) noexcept {
        const DeviceState& device = *stream.device;
        BufferState* const* expected = stream.tail.data();
        BufferState* const* const end_of_tail = expected + stream.tail.size();
        if (expected != end_of_tail && stream.tail_parts != 0) return false;
        BufferState** viewable = viewable_;  // not members: the loop keeps them in registers
        BufferState** others = others_;
        const ParameterInfo* const end = kernel.parameter + kernel.parameter_count;
        for (const ParameterInfo* parameter = kernel.parameter; parameter != end; ++parameter) {
            if (parameter->use == ArgumentUse::value) continue;
            BufferState* const buffer = (*next++)->get();
            if (buffer == nullptr || viewable == others) return false;
            if (buffer->uses_again(stream, parameter->use)) {
                if (updates(*parameter)) return false;
                if (expected != end_of_tail && *expected++ != buffer) return false;
                *viewable++ = buffer;
            } else if (buffer->only_for(stream, device)) {
                *--others = buffer;
            } else {
                return false;
            }
            write_view(*buffer, *parameter, pack);
        }
        viewable_ = viewable;
        others_ = others;
        return expected == end_of_tail;
    }
    // As claim_in_place().
    bool claim(StreamState& stream) noexcept {
        const std::uint64_t position = stream.issued + 1;
        BufferState** const viewable = viewable_;
        for (BufferState** at = others_; at != all_.data() + all_.size(); ++at) (*at)->first_use.raise(position);
        if (viewable == all_.data()) return true;
        for (BufferState** at = all_.data(); at != viewable; ++at) (*at)->first_use.raise(position);
        host_fence<std::memory_order_seq_cst>();
        for (BufferState** at = all_.data(); at != viewable; ++at) {
            const OpenViews& views = (*at)->views;
            if (views.seen().claimed_again() && !views.released()) continue;
            stream.advance("a refused operation");
            return false;
        }
        return true;
    }
    // As join_tail().
    void join(StreamState& stream) {
        std::vector<BufferState*>& tail = stream.tail;
        for (BufferState** at = all_.data() + tail.size(); at < viewable_; ++at) {
            if (std::find(tail.begin(), tail.end(), *at) == tail.end()) tail.push_back(*at);
        }
        stream.tail_parts = 0;
    }

private:
    std::array<BufferState*, InPlaceClaim::most> all_;
    BufferState** viewable_ = all_.data();
    BufferState** others_ = all_.data() + all_.size();
};

// The launch of the same kernel again, nearly always. Expects the stream's lock. Out of line, so that launches over
// device-only memory stay within launch_at_once().
[[gnu::noinline]] AtOnce launch_again(StreamState& stream, const platform::LaunchRequest& request, const char* name,
                                      void* pack, const std::shared_ptr<BufferState>* const* buffers,
                                      std::uint64_t& position, platform::Status& status) {
    SameBuffers same;
    if (!same.found(stream, *request.kernel, pack, buffers) || !same.claim(stream)) return AtOnce::not_so_simple;
    position = stream.advance(name);
    stream.gives(name);
    status = stream.device->execution.launch(request);
    if (!status.ok()) return AtOnce::failed;
    same.join(stream);
    return AtOnce::done;
}

// Expects the stream's lock.
[[gnu::noinline]] AtOnce launch_beside_views(StreamState& stream, const platform::LaunchRequest& request,
                                             const char* name, void* pack,
                                             const std::shared_ptr<BufferState>* const* buffers,
                                             std::uint64_t& position, platform::Status& status) {
    const AtOnce again = launch_again(stream, request, name, pack, buffers, position, status);
    if (again != AtOnce::not_so_simple) return again;
    const DeviceState& device = *stream.device;
    const KernelInfo& kernel = *request.kernel;
    std::array<InPlaceClaim, InPlaceClaim::most> claims;
    std::size_t count = 0;
    const std::shared_ptr<BufferState>* const* next = buffers;
    for (std::uint32_t at = 0; at < kernel.parameter_count; ++at) {
        const ParameterInfo& parameter = kernel.parameter[at];
        if (parameter.use == ArgumentUse::value) continue;
        BufferState* const buffer = (*next++)->get();
        if (buffer == nullptr) return AtOnce::not_so_simple;
        if (!buffer->only_for(stream, device)) {
            if (count == claims.size() || updates(parameter)) return AtOnce::not_so_simple;
            if (!claimable(*buffer, parameter.use, stream, device)) return AtOnce::not_so_simple;
            claims[count++] = {buffer, parameter.use};
        }
        write_view(*buffer, parameter, pack);
    }
    if (!stays(stream, claims.data(), count)) return AtOnce::not_so_simple;
    if (!claim_in_place(stream, claims.data(), count)) return AtOnce::not_so_simple;
    position = stream.advance(name);
    for (; buffers != next; ++buffers) {
        if ((*buffers)->get()->memory->host == nullptr) (*buffers)->get()->first_use.raise(position);
    }
    stream.gives(name);
    status = device.execution.launch(request);
    if (!status.ok()) return AtOnce::failed;
    join_tail(stream, claims.data(), count);
    return AtOnce::done;
}

}  // namespace

AtOnce launch_at_once(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                      const std::shared_ptr<BufferState>* const* buffers, std::uint64_t& position,
                      platform::Status& status) {
    const DeviceState& device = *stream.device;
    const process::OnStream here;
    const std::lock_guard lock(stream.mutex);
    const StreamState::CachedKernel* const cached = stream.cached(kernel);
    if (cached == nullptr || cached->function == platform::FunctionHandle::none || stream.recording != nullptr) {
        return AtOnce::not_so_simple;
    }
    platform::LaunchRequest request{&kernel, cached->function, extent, pack, stream.handle};
    // The tail holds buffers that the host may view.
    if (!stream.tail.empty()) {
        return launch_beside_views(stream, request, cached->name, pack, buffers, position, status);
    }
    const std::shared_ptr<BufferState>* const* next = buffers;
    const ParameterInfo* const end = kernel.parameter + kernel.parameter_count;
    for (const ParameterInfo* parameter = kernel.parameter; parameter != end; ++parameter) {
        if (parameter->use == ArgumentUse::value) continue;
        const BufferState* const buffer = (*next++)->get();
        if (buffer == nullptr || !buffer->only_for(stream, device)) {
            return launch_beside_views(stream, request, cached->name, pack, buffers, position, status);
        }
        write_view(*buffer, *parameter, pack);
    }
    // Before the driver call, so that a concurrent release of a buffer waits for this launch (ADR 4).
    position = stream.advance(cached->name);
    for (; buffers != next; ++buffers) (*buffers)->get()->first_use.raise(position);
    stream.gives(cached->name);
    status = device.execution.launch(request);
    return status.ok() ? AtOnce::done : AtOnce::failed;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
