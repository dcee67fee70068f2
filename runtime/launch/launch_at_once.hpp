// The launch that most launches are: nothing to judge, to wait for, to copy or to fence.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <platform/driver.hpp>

#include <cstdint>
#include <memory>

namespace isthmus::inline v0::detail {

struct BufferState;
struct StreamState;

enum class AtOnce : std::uint8_t { done, failed, not_so_simple };

// Launches where every argument is a value or a buffer of the stream's own device that is used in place: one that the
// host can never see and that this stream has used before, or one that the host may view, where no view is open and the
// operations before used the same. The stream owes no fence. What Operation would do for it is to number the launch and
// to leave that number in the buffers, which come in the kernel's order and are written into the pack's views. The
// caller has seen to it that the device is usable and the mode asks for no more. `not_so_simple`: nothing happened,
// but in the pack. `failed`: the driver's answer is in `status`.
AtOnce launch_at_once(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                      const std::shared_ptr<BufferState>* const* buffers, std::uint64_t& position,
                      platform::Status& status);

}  // namespace isthmus::inline v0::detail
