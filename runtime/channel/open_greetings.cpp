// SPDX-License-Identifier: Apache-2.0
// One poll covers all greetings: continues those with data and gives up those that were silent for too long.
#include "open_greetings.hpp"

#include "greeting_rules.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

Result<OpenGreetings> OpenGreetings::of(int listening, const platform::os::ProcessCalls& calls) {
    FileDescriptor epoll(calls.epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) return channel_error("epoll_create1", errno, "a listener could not be made");
    OpenGreetings made(listening, std::move(epoll), calls);
    if (Result<void> watched = made.watch(listening); !watched) return std::move(watched).error();
    return made;
}

Result<void> OpenGreetings::watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (calls_->epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
    return channel_error("epoll_ctl", errno, "a connection could not be watched");
}

void OpenGreetings::unwatch(const Open& open) noexcept {
    epoll_event unused{};
    calls_->epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, open.channel->descriptor(), &unused);
}

Result<bool> OpenGreetings::wait(ChannelDeadline deadline) {
    polled_.assign(1, {listening_, POLLIN, 0});
    for (const Open& open : open_) polled_.push_back({open.channel->descriptor(), POLLIN, 0});
    return wait_for_sockets(polled_, deadline, *calls_);
}

Result<std::optional<OpenGreetings::Outcome>> OpenGreetings::next(ChannelDeadline deadline,
                                                                  const ChannelOptions& options) {
    while (true) {
        ChannelDeadline first = deadline;
        for (const Open& open : open_) first = std::min(first, open.deadline);
        Result<bool> waited = wait(first);
        if (!waited) return std::move(waited).error();
        if (std::optional<Outcome> outcome = go_on(options)) return outcome;
        // Arrived data is taken in first, even after the deadline.
        if (!*waited && std::chrono::steady_clock::now() >= deadline) return std::optional<Outcome>();
    }
}

std::optional<OpenGreetings::Outcome> OpenGreetings::go_on(const ChannelOptions& options) {
    const ChannelDeadline now = std::chrono::steady_clock::now();
    for (std::size_t at = 0; at < open_.size(); ++at) {
        if (polled_[at + 1].revents != 0) {
            if (std::optional<Outcome> outcome = go_on_with(at, options)) return outcome;
        } else if (open_[at].deadline <= now) {
            unwatch(open_[at]);
            Error error = open_[at].channel->end_silent_greeting();
            forget(at);
            return error;
        }
    }
    return polled_[0].revents != 0 ? accept(options) : std::nullopt;
}

std::optional<OpenGreetings::Outcome> OpenGreetings::go_on_with(std::size_t at, const ChannelOptions& options) {
    Open& open = open_[at];
    unwatch(open);
    Result<ChannelState::Greeting> greeting = open.channel->greet_on();
    Result<void> watched;
    if (greeting && *greeting != ChannelState::Greeting::over) {
        if (*greeting == ChannelState::Greeting::went_on) open.deadline = after(options.step_timeout);
        watched = watch(open.channel->descriptor());
        if (watched) return std::nullopt;
    }
    std::unique_ptr<ChannelState> channel = std::move(open.channel);
    forget(at);
    if (!greeting) return std::move(greeting).error();
    if (!watched) return std::move(watched).error();
    return channel;
}

std::optional<OpenGreetings::Outcome> OpenGreetings::accept(const ChannelOptions& options) {
    FileDescriptor socket;
    do {
        socket = FileDescriptor(calls_->accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC));
    } while (!socket && errno == EINTR);
    if (!socket && (errno == EAGAIN || errno == ECONNABORTED)) return std::nullopt;  // the connection is gone again
    if (!socket) return channel_error("accept4", errno, "a connection could not be accepted");
    Outcome begun = ChannelState::begin(std::move(socket), ChannelSide::offering, options, *calls_);
    if (!begun) return begun;
    std::vector<std::uint32_t> uids;
    for (const Open& open : open_) uids.push_back(open.channel->peer().uid);
    const std::optional<std::size_t> old = rules::greeting_to_give_up(uids, (*begun)->peer().uid);
    if (Result<void> watched = watch((*begun)->descriptor()); !watched) return std::move(watched).error();
    open_.push_back({std::move(begun).value(), after(options.step_timeout)});
    if (!old) return std::nullopt;
    unwatch(open_[*old]);
    Error error = open_[*old].channel->end_displaced_greeting();
    forget(*old);
    return error;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
