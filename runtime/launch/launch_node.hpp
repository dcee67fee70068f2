// SPDX-License-Identifier: Apache-2.0
// Launches for other rooms: one that becomes a named graph node, and one of a kernel that is described elsewhere.
#pragma once

#include <isthmus/launch_argument.hpp>
#include <isthmus/launch_options.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct StreamState;

// As Stream::launch on a captured stream; returns the index of the operation in the recording. Makes one more driver
// query. The extent must not be empty.
Result<std::uint32_t> launch_for_node(StreamState& stream, const LaunchOptions& options, const KernelInfo& kernel,
                                      const Extent& extent, void* pack, const LaunchArgument* arguments,
                                      std::size_t count);

// As Stream::launch. The pack of a kernel of a ready-made module begins with a ModuleLaunch.
Result<LaunchReport> launch_described(StreamState& stream, const LaunchOptions& options, const KernelInfo& kernel,
                                      const Extent& extent, void* pack, const LaunchArgument* arguments,
                                      std::size_t count);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
