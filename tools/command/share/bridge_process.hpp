// SPDX-License-Identifier: Apache-2.0
// The program isthmus-bridge as a child of `isthmus share` and `isthmus view`. UCX is in that process alone.
#pragma once

#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::share {

// The bridge ends when this object, or this process, ends: its standard input is a pipe from here. It has a process
// group of its own, so that Ctrl-C ends it in this order, too. One thread at a time.
class BridgeProcess {
public:
    // Errors: unsupported (this build or installation has no isthmus-bridge), system_limit, system_error.
    static Result<BridgeProcess> start(const std::vector<std::string>& arguments);
    BridgeProcess(BridgeProcess&& other) noexcept;
    BridgeProcess& operator=(BridgeProcess&&) = delete;
    ~BridgeProcess();
    bool runs();
    pid_t process() const noexcept { return process_; }  // -1: it has ended
    // The exit code; nothing: it runs, or a signal ended it.
    std::optional<int> exit_code() const noexcept { return exit_code_; }
    // Whether a signal ended it: it was killed, or UCX aborted it. Waits for its end, for `at_most`.
    bool crashes(std::chrono::nanoseconds at_most);
    // Tells it to end, and kills it where it has not ended in time.
    void end(std::chrono::nanoseconds at_most);

private:
    bool ends_within(std::chrono::nanoseconds at_most);
    BridgeProcess(pid_t process, FileDescriptor input) noexcept : process_(process), input_(std::move(input)) {}
    pid_t process_;  // -1: none, or it has ended
    FileDescriptor input_;
    std::optional<int> exit_code_{};
};

}  // namespace isthmus::tools::share
