// Launches whose arguments the device cannot reach: copied in and out around the kernel, by their declared use.
#pragma once

#include <isthmus/host_view.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/launch_options.hpp>
#include <isthmus/result.hpp>

#include "launch_judge.hpp"
#include "sharing_rules.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace isthmus::inline v0::detail {

class Operation;
// A buffer, or a part of one, as the operation uses it.
void claim_argument(Operation& operation, const LaunchArgument& argument, const ParameterInfo& parameter,
                    std::uint32_t at);

// The buffers of a launch that are opened as host views are, for as long as this lives. One thread.
class LaunchScopes {
public:
    // `in_place`: the kernel itself uses them, so that it may use them concurrently; a copy of them may not.
    LaunchScopes(const KernelInfo& kernel, const LaunchArgument* arguments, std::size_t count, bool in_place);
    // Opens the buffer of argument `at` for all that the launch does with it, wherever else it stands; nothing where it
    // is open already or empty.
    Result<void> open(std::uint32_t at);
    // What the stream was given up to here may still use them when this has ended: views of them wait for it.
    void leave_to(StreamState& stream, std::uint64_t position);

private:
    const KernelInfo& kernel_;
    const LaunchArgument* const arguments_;
    const std::size_t count_;
    const bool in_place_;
    std::vector<std::pair<BufferState*, rules::SpanUse>> opened_;
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
