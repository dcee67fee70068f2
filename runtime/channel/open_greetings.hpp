// SPDX-License-Identifier: Apache-2.0
// Connections that a listener has accepted and is still greeting, in parallel: a silent peer does not delay the others.
#pragma once

#include "channel_state.hpp"

#include <isthmus/file_descriptor.hpp>
#include <isthmus/ipc/channel.hpp>
#include <isthmus/result.hpp>

#include <platform/process_calls.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

class OpenGreetings {
public:
    // `listening`: non-blocking; owned by the caller, and must stay open.
    static Result<OpenGreetings> of(int listening, const platform::os::ProcessCalls& calls);

    // Result of one greeting: an open channel, or an error about that connection (or about accepting it).
    using Outcome = Result<std::unique_ptr<ChannelState>>;
    // Accepts and greets until one greeting ends; nothing: none did by the deadline. Errors are the listener's.
    Result<std::optional<Outcome>> next(ChannelDeadline deadline, const ChannelOptions& options);

    // For poll(): readable when next() has work. An epoll instance over the listening socket and the connections being
    // greeted.
    int descriptor() const noexcept { return epoll_.get(); }

private:
    struct Open {
        std::unique_ptr<ChannelState> channel;
        ChannelDeadline deadline;  // of the peer's next frame
    };
    OpenGreetings(int listening, FileDescriptor epoll, const platform::os::ProcessCalls& calls)
        : listening_(listening), epoll_(std::move(epoll)), calls_(&calls) {}
    // false: the deadline passed.
    Result<bool> wait(ChannelDeadline deadline);
    std::optional<Outcome> go_on(const ChannelOptions& options);
    std::optional<Outcome> accept(const ChannelOptions& options);
    std::optional<Outcome> go_on_with(std::size_t at, const ChannelOptions& options);
    Result<void> watch(int fd);
    // Called before the socket closes: a forked child may hold a copy, which epoll would continue to report.
    void unwatch(const Open& open) noexcept;
    void forget(std::size_t at) { open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(at)); }

    int listening_;
    FileDescriptor epoll_;
    const platform::os::ProcessCalls* calls_;
    std::vector<Open> open_{};      // oldest first
    std::vector<pollfd> polled_{};  // the listening socket, then those of open_
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
