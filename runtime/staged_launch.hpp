// Launches whose arguments the device cannot reach: copied in and out around the kernel, by their declared use.
#pragma once

#include <isthmus/host_view.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/launch_options.hpp>
#include <isthmus/result.hpp>

#include "launch_judge.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus::inline v0::detail {

// The buffers of a launch that are opened as host views are, for as long as this lives. One thread.
class LaunchScopes {
public:
    LaunchScopes(const KernelInfo& kernel, const LaunchArgument* arguments, std::size_t count);
    // Opens the buffer of argument `at` for all that the launch does with it, wherever else it stands; nothing where it
    // is open already or empty.
    Result<void> open(std::uint32_t at);

private:
    const KernelInfo& kernel_;
    const LaunchArgument* const arguments_;
    const std::size_t count_;
    std::vector<const BufferState*> buffers_;
    std::vector<ViewScope> scopes_;
};

// `staged`: not empty; the other arguments' addresses stand in the pack. On the stream: one temporary (of a pool where
// the device has them), copies in, the kernel, copies out. Returns
//   - when the results are there, where some belong in host memory: pageable memory cannot be written behind the host's
//     back, and the caller could not know when;
//   - when the arguments were read, where host memory is only read: the caller may change it afterwards;
//   - at once, where the memory is another GPU's.
// A failure leaves no temporary behind, and what it wrote outside is what a kernel that failed midway would have.
// Errors as Stream::launch; capture_error while a capture is open; timed_out.
Result<void> launch_staged(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                           const LaunchArgument* arguments, std::size_t count,
                           const std::vector<StagedArgument>& staged, LaunchReport& report);

}  // namespace isthmus::inline v0::detail
