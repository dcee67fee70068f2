// SPDX-License-Identifier: Apache-2.0
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

namespace isthmus {
inline namespace v0 {
namespace detail {

class Operation;
// Claims a buffer, or a part of one, for the operation.
void claim_argument(Operation& operation, const LaunchArgument& argument, const ParameterInfo& parameter,
                    std::uint32_t at);

// The buffers of a launch that are opened as host views are, for the lifetime of this object. One thread.
class LaunchScopes {
public:
    // `in_place`: the kernel itself uses the buffers, and may use them concurrently; a copy may not.
    LaunchScopes(const KernelInfo& kernel, const LaunchArgument* arguments, std::size_t count, bool in_place);
    // Opens the buffer of argument `at` for every use that the launch makes of it, in other arguments too. Does nothing
    // where it is open already or empty.
    Result<void> open(std::uint32_t at);
    // Work of the stream up to `position` may still use the buffers after these scopes end: views of them wait for it.
    void leave_to(StreamState& stream, std::uint64_t position);

private:
    const KernelInfo& kernel_;
    const LaunchArgument* const arguments_;
    const std::size_t count_;
    const bool in_place_;
    std::vector<std::pair<BufferState*, rules::SpanUse>> opened_;
    std::vector<ViewScope> scopes_;
};

// `staged` is not empty; the addresses of the other arguments are in the pack. On the stream: one temporary (from a
// pool where the device has pools), copies in, the kernel, copies out. Returns
//   - after the results have arrived, where some belong in host memory: pageable memory cannot be written
//   asynchronously,
//     because the caller could not know when;
//   - after the arguments were read, where host memory is only read: the caller may change it afterwards;
//   - at once, where the memory is another GPU's.
// After a failure no temporary is left, and memory outside has the state that a kernel which failed midway would leave.
// Errors as Stream::launch; capture_error while a capture is open; timed_out.
Result<void> launch_staged(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                           const LaunchArgument* arguments, std::size_t count,
                           const std::vector<StagedArgument>& staged, LaunchReport& report);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
