// SPDX-License-Identifier: Apache-2.0
// A launch that becomes a named graph node.
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

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
