// SPDX-License-Identifier: Apache-2.0
// What an observer is told for a replay, beside the spans: buffers as they were asked for, and the memory that calls
// use. Only observed runtimes come here.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/sharing_use.hpp>

#include "order_range.hpp"
#include "sharing_rules.hpp"

#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct StreamState;

// `asked`: what allocate_shared() or adopt() was given; nullptr: memory of this kind was asked for (unknown: not
// known).
[[gnu::cold]] void tell_made(const BufferState& buffer, const SharedUse* asked, MemoryKind kind) noexcept;
[[gnu::cold]] void tell_gone(const BufferState& buffer) noexcept;
// The use that a host view is asked for, within its span.
[[gnu::cold]] void tell_view(const BufferState& buffer, ArgumentUse asked, const rules::ByteSpan& part) noexcept;
// The rest is told within the span of an operation, when the gate has let the call in: the stream is locked for a
// moment. The arguments of a launch, or the uses of work of other code.
[[gnu::cold]] void tell_arguments(StreamState& stream, LaunchMode mode, const LaunchArgument* arguments,
                                  const ParameterInfo* parameters, std::size_t count) noexcept;
// The buffer that another operation uses, or some of its bytes.
[[gnu::cold]] void tell_use(StreamState& stream, const BufferState& buffer, ArgumentUse use,
                            const rules::ByteRange& range = {}) noexcept;
// Host memory that is no buffer, at this address.
[[gnu::cold]] void tell_use(StreamState& stream, std::uint64_t address, ArgumentUse use,
                            const rules::ByteRange& range) noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
