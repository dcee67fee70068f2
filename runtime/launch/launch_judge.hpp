// SPDX-License-Identifier: Apache-2.0
// Judges a launch's arguments in a launch mode: the address of each, or the reason of a refusal.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/launch_options.hpp>
#include <isthmus/result.hpp>

#include "launch_access.hpp"
#include "sharing_rules.hpp"
#include "staging_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct StreamState;

// An argument that LaunchMode::staged copies around the kernel.
struct StagedArgument {
    std::uint32_t argument = 0;
    rules::StagedRange range;                              // for a buffer with a host side: its host side
    const std::shared_ptr<BufferState>* buffer = nullptr;  // nullptr: a raw view or a span
};

// Findings besides the addresses, which are written into the pack.
struct Judgement {
    std::uint32_t unverified = 0;
    std::vector<StagedArgument> staged;
};

// The result for one argument. Texts have static storage.
struct JudgedArgument {
    enum class Doing : std::uint8_t { pass, stage, refuse };
    Doing doing = Doing::pass;
    Code code = Code::ok;
    std::uint64_t address = 0;
    AccessAnswer answer{Verdict::yes, {}, {}};
    Provenance memory;  // for a raw range that was looked up
    int ordinal = -1;   // stage: the GPU whose memory is copied; −1: host memory
};
// `bytes`: of the argument itself. JudgedArgument::address is that of its first byte; 0 for a buffer argument of no
// bytes.
JudgedArgument judge_buffer(const DeviceState& device, const LaunchArgument& argument, std::uint64_t bytes,
                            LaunchMode mode);
JudgedArgument judge_raw(const DeviceState& device, const LaunchArgument& argument, std::uint64_t bytes,
                         ArgumentUse use, LaunchMode mode);
// The bytes of its buffer that an argument covers; expects a buffer.
rules::ByteSpan span_of(const LaunchArgument& argument, const ParameterInfo& parameter) noexcept;
// Elements × size, or the greatest value on overflow (no range is that long).
std::uint64_t raw_bytes(const LaunchArgument& argument, const ParameterInfo& parameter) noexcept;
Error refusal_of_buffer(const KernelInfo& kernel, std::uint32_t argument, const DeviceState& device,
                        const BufferState& buffer, const JudgedArgument& judged);
Error refusal_of_raw(const KernelInfo& kernel, std::uint32_t argument, const DeviceState& device,
                     const JudgedArgument& judged);

// Judges all arguments, completes the pack and warns; changes nothing else. LaunchMode::relaxed examines only atomics
// and what is needed to find an address.
Result<void> judge_arguments(const DeviceState& device, LaunchMode mode, const KernelInfo& kernel,
                             const LaunchArgument* arguments, std::size_t count, void* pack, Judgement& out);

// invalid_argument: no launch has this extent, on any device. An empty extent is none of these.
Result<void> check_extent(const KernelInfo& kernel, const Extent& extent);

// true: the stream is captured, so that operations are recorded and not executed. Its lock must not be held.
bool in_capture(StreamState& stream);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
