// Judging a launch's arguments in a mode: the address that each one gets, or why the launch is refused.
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

namespace isthmus::inline v0::detail {

struct StreamState;

// An argument that LaunchMode::staged copies around the kernel.
struct StagedArgument {
    std::uint32_t argument = 0;
    rules::StagedRange range;                              // of a buffer that the host sees: its host side
    const std::shared_ptr<BufferState>* buffer = nullptr;  // nullptr: a raw view or a span
};

// What judging found besides the addresses, which it wrote into the pack.
struct Judgement {
    std::uint32_t unverified = 0;
    std::vector<StagedArgument> staged;
};

// One argument by itself. Texts have static storage.
struct JudgedArgument {
    enum class Doing : std::uint8_t { pass, stage, refuse };
    Doing doing = Doing::pass;
    Code code = Code::ok;
    std::uint64_t address = 0;
    AccessAnswer answer{Verdict::yes, {}, {}};
    Provenance memory;  // of a raw range, where it was asked for
    int ordinal = -1;   // stage: whose memory is copied; −1: the host's
};
// `bytes`: the argument's own. Its address is that of the first of them; of none, 0.
JudgedArgument judge_buffer(const DeviceState& device, const LaunchArgument& argument, std::uint64_t bytes,
                            LaunchMode mode);
JudgedArgument judge_raw(const DeviceState& device, const LaunchArgument& argument, std::uint64_t bytes,
                         ArgumentUse use, LaunchMode mode);
// Which bytes of its buffer an argument is; expects a buffer.
rules::ByteSpan span_of(const LaunchArgument& argument, const ParameterInfo& parameter) noexcept;
// Elements × size, or the greatest number where that overflows (no range is that long).
std::uint64_t raw_bytes(const LaunchArgument& argument, const ParameterInfo& parameter) noexcept;
Error refusal_of_buffer(const KernelInfo& kernel, std::uint32_t argument, const DeviceState& device,
                        const BufferState& buffer, const JudgedArgument& judged);
Error refusal_of_raw(const KernelInfo& kernel, std::uint32_t argument, const DeviceState& device,
                     const JudgedArgument& judged);

// Judges all arguments and completes the pack; changes nothing else. RELAXED looks at nothing that is not needed to
// find an address.
Result<void> judge_arguments(const DeviceState& device, LaunchMode mode, const KernelInfo& kernel,
                             const LaunchArgument* arguments, std::size_t count, void* pack, Judgement& out);

// Is the stream captured, so that what is given to it is recorded and not done? Expects its lock not to be held.
bool in_capture(StreamState& stream);

}  // namespace isthmus::inline v0::detail
