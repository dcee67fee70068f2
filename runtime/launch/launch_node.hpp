// A launch that becomes a node with a name.
#pragma once

#include <isthmus/launch_argument.hpp>
#include <isthmus/launch_options.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>

namespace isthmus::inline v0::detail {

struct StreamState;

// As Stream::launch on a captured stream; answers which operation of the recording it became. Costs one query of the
// driver more. The extent is not empty.
Result<std::uint32_t> launch_for_node(StreamState& stream, const LaunchOptions& options, const KernelInfo& kernel,
                                      const Extent& extent, void* pack, const LaunchArgument* arguments,
                                      std::size_t count);

}  // namespace isthmus::inline v0::detail
