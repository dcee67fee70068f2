// SPDX-License-Identifier: Apache-2.0
// Public functions of channels and listeners.
#include <isthmus/ipc/channel.hpp>

#include "channel_errors.hpp"
#include "channel_place.hpp"
#include "channel_state.hpp"
#include "open_greetings.hpp"
#include "process.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

class ListenerState {
public:
    ListenerState(ListenerPlace place, OpenGreetings greetings, ChannelOptions options)
        : place_(std::move(place)),
          greetings_(std::move(greetings)),
          options_(std::move(options)),
          forks_(process::generation()) {}
    ListenerState(const ListenerState&) = delete;
    ListenerState& operator=(const ListenerState&) = delete;
    // After fork() the name belongs to the parent.
    ~ListenerState() {
        if (!forked()) place_.end();
    }
    bool forked() const noexcept { return forks_ != process::generation(); }

    const ChannelOptions& options() const noexcept { return options_; }
    int descriptor() const noexcept { return greetings_.descriptor(); }

    // true: take() has a result.
    Result<bool> wait(std::chrono::nanoseconds timeout) {
        if (forked()) return make_error<errors::listener_in_forked_child>();
        if (next_) return true;
        Result<std::optional<OpenGreetings::Outcome>> outcome = greetings_.next(after(timeout), options_);
        if (!outcome) return std::move(outcome).error();
        next_ = std::move(outcome).value();
        return next_.has_value();
    }
    OpenGreetings::Outcome take() {
        OpenGreetings::Outcome outcome = std::move(*next_);
        next_.reset();
        return outcome;
    }

private:
    ListenerPlace place_;
    OpenGreetings greetings_;
    std::optional<OpenGreetings::Outcome> next_{};  // result found by wait()
    ChannelOptions options_;
    std::uint64_t forks_;
};

Result<Channel> ChannelAccess::adopt(FileDescriptor socket, ChannelSide side, const ChannelOptions& options,
                                     const platform::os::ProcessCalls& calls) {
    Result<std::unique_ptr<ChannelState>> state = ChannelState::greet(std::move(socket), side, options, calls);
    if (!state) return std::move(state).error();
    return Channel(std::move(state).value());
}

Result<Channel> ChannelAccess::connect(const std::string& directory, const ChannelOptions& options,
                                       const platform::os::ProcessCalls& calls) {
    if (Result<void> fine = check(options); !fine) return std::move(fine).error();
    Result<FileDescriptor> socket = connect_to_place(directory, options.step_timeout, calls);
    if (!socket) return std::move(socket).error();
    return adopt(std::move(socket).value(), ChannelSide::receiving, options, calls);
}

Result<Listener> ChannelAccess::listen(const std::string& directory, const ChannelOptions& options,
                                       const platform::os::ProcessCalls& calls) {
    if (Result<void> fine = check(options); !fine) return std::move(fine).error();
    Result<ListenerPlace> place = ListenerPlace::take(directory, calls);
    if (!place) return std::move(place).error();
    Result<OpenGreetings> greetings = OpenGreetings::of(place->socket(), calls);
    if (!greetings) {
        place->end();
        return std::move(greetings).error();
    }
    return Listener(std::make_unique<ListenerState>(std::move(place).value(), std::move(greetings).value(), options));
}

}  // namespace detail

Channel::Channel(std::unique_ptr<detail::ChannelState> state) noexcept : state_(std::move(state)) {}
Channel::Channel(Channel&&) noexcept = default;
Channel& Channel::operator=(Channel&&) noexcept = default;
Channel::~Channel() = default;

Result<Channel> Channel::adopt(FileDescriptor socket, ChannelSide side, const ChannelOptions& options) {
    return detail::ChannelAccess::adopt(std::move(socket), side, options, platform::os::ProcessCalls::real());
}
PeerCredentials Channel::peer() const noexcept {
    return state_ ? state_->peer() : PeerCredentials{};
}
ChannelQuota Channel::peer_quota() const noexcept {
    return state_ ? state_->peer_quota() : ChannelQuota{0, 0, 0};
}
Result<void> Channel::send(std::uint32_t kind, std::span<const std::byte> bytes, std::span<const int> fds) {
    if (!state_) return make_error<errors::channel_moved_from>();
    return state_->send(kind, bytes, fds);
}
Result<void> Channel::wait_received() {
    if (!state_) return make_error<errors::channel_moved_from>();
    return state_->wait_received();
}
Result<bool> Channel::wait_received(std::chrono::nanoseconds timeout) {
    if (!state_) return make_error<errors::channel_moved_from>();
    return state_->wait_received(timeout);
}
Result<ChannelMessage> Channel::receive() {
    if (!state_) return make_error<errors::channel_moved_from>();
    return state_->receive();
}
Result<bool> Channel::wait_for_message(std::chrono::nanoseconds timeout) {
    if (!state_) return make_error<errors::channel_moved_from>();
    return state_->wait_for_message(timeout);
}
int Channel::descriptor() const noexcept {
    return state_ ? state_->descriptor() : -1;
}
void Channel::close() noexcept {
    if (state_) state_->close();
}

Listener::Listener(std::unique_ptr<detail::ListenerState> state) noexcept : state_(std::move(state)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;

Result<Listener> Listener::create(const std::string& directory, const ChannelOptions& options) {
    return detail::ChannelAccess::listen(directory, options, platform::os::ProcessCalls::real());
}
Result<bool> Listener::wait_for_connection(std::chrono::nanoseconds timeout) {
    if (!state_) return make_error<errors::channel_moved_from>();
    return state_->wait(timeout);
}
Result<Channel> Listener::accept() {
    Result<bool> there = wait_for_connection(state_ ? state_->options().step_timeout : std::chrono::nanoseconds(0));
    if (!there) return std::move(there).error();
    if (!*there) return make_error<errors::nobody_connected>();
    Result<std::unique_ptr<detail::ChannelState>> channel = state_->take();
    if (!channel) return std::move(channel).error();
    return Channel(std::move(channel).value());
}
int Listener::descriptor() const noexcept {
    return state_ ? state_->descriptor() : -1;
}

Result<Channel> connect_channel(const std::string& directory, const ChannelOptions& options) {
    return detail::ChannelAccess::connect(directory, options, platform::os::ProcessCalls::real());
}

Result<ChannelPair> create_channel_pair() {
    int ends[2] = {-1, -1};
    if (platform::os::ProcessCalls::real().socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return detail::channel_error("socketpair", errno, "a pair of sockets could not be made");
    }
    return ChannelPair{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace v0
}  // namespace isthmus
