// SPDX-License-Identifier: Apache-2.0
// Launches whose arguments the device cannot reach: copied in and out around the kernel, by their declared use.
#pragma once

#include <isthmus/host_view.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/launch_options.hpp>
#include <isthmus/result.hpp>

#include <platform/status.hpp>

#include "few.hpp"
#include "launch_judge.hpp"
#include "sharing_rules.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

class Operation;
// Claims the argument's buffer, or part of a buffer, for the operation.
void claim_argument(Operation& operation, const LaunchArgument& argument, const ParameterInfo& parameter,
                    std::uint32_t at);

// Opens buffers of a launch as host views are opened, for its own lifetime. Use from one thread.
class LaunchScopes {
public:
    // `in_place`: the kernel itself uses the buffers, and may use them concurrently; a copy may not.
    LaunchScopes(const KernelInfo& kernel, const LaunchArgument* arguments, std::size_t count, bool in_place);
    // Opens the buffer of argument `at` for every use that the launch makes of it, in other arguments too. Does nothing
    // if it is open already or empty.
    Result<void> open(std::uint32_t at);
    // Hands the open scopes over.
    template <std::size_t room>
    void move_to(Few<ViewScope, room>& scopes) && {
        for (ViewScope& scope : scopes_) scopes.push_back(std::move(scope));
        scopes_.clear();
    }
    // Work of the stream up to `position` may still use the buffers after these scopes end: views of them wait for it.
    void leave_to(StreamState& stream, std::uint64_t position);

private:
    const KernelInfo& kernel_;
    const LaunchArgument* const arguments_;
    const std::size_t count_;
    const bool in_place_;
    static constexpr std::size_t usual = 64;  // more need the heap
    struct Opened {
        BufferState* buffer;
        rules::SpanUse all;
    };
    Few<Opened, usual> opened_;
    Few<ViewScope, usual> scopes_;
};

// What a staged launch runs between its copies: a kernel, or work of other code. give(data) is called once, with the
// stream's lock held and the pack complete.
struct StagedWork {
    platform::Status (*give)(void* data);
    void* data;
    bool native = false;
};

// Gives the stream one temporary (from a pool if the device has pools), copies in, the kernel, and copies out. `staged`
// must not be empty; the pack holds the addresses of the other arguments. With results in host memory, returns after
// they have arrived: pageable memory cannot be written asynchronously, because the caller could not know when. If host
// memory is only read, returns after it was read; the caller may then change it. With another GPU's memory only,
// returns at once. After a failure the temporary is released, or given up if the stream does not end in time, and
// memory outside has the state that a kernel which failed midway would leave. Errors as Stream::launch; capture_error
// while a capture is open; timed_out.
Result<void> launch_staged(StreamState& stream, const KernelInfo& kernel, void* pack, const LaunchArgument* arguments,
                           std::size_t count, const std::vector<StagedArgument>& staged, const StagedWork& work,
                           LaunchReport& report);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
