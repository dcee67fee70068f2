// SPDX-License-Identifier: Apache-2.0
// Fast path for most launches: nothing to judge, to wait for, to copy or to fence.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <platform/driver.hpp>

#include <cstdint>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct StreamState;

enum class AtOnce : std::uint8_t { done, failed, not_so_simple };

// Conditions: the stream owes no fence, and every argument is a value or a buffer of the stream's own device that is
// used in place. The buffer is either device-only and was used by this stream before, or the host may view it and no
// view is open. The preceding operations use no other viewable buffers than this launch. For such a launch, Operation
// would only number it and store that number in the buffers. `buffers` come in the kernel's order; their addresses are
// written into the pack's views. The caller has checked that the device is usable and that the mode needs nothing more.
// `not_so_simple`: nothing happened, except in the pack. `failed`: the driver's answer is in `status`.
AtOnce launch_at_once(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                      const std::shared_ptr<BufferState>* const* buffers, std::uint64_t& position,
                      platform::Status& status);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
