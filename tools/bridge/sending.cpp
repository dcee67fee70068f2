// SPDX-License-Identifier: Apache-2.0
// Listens, and gives each connection a process of its own: greeting, ring and UCX are there. So what a receiver sends
// can harm its own process alone, and this one handles no byte of it, but for lines that it passes on.
#include "bridge.hpp"

#include "camera/stop_signal.hpp"
#include "common/console.hpp"
#include "common/exit_codes.hpp"
#include "common/process.hpp"
#include "share/meeting.hpp"
#include "share/notices.hpp"
#include "share/ring_message.hpp"

#include <isthmus/runtime.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace isthmus::tools::bridge {
namespace {

using camera::StopSignal;
using Clock = std::chrono::steady_clock;

constexpr std::size_t most_greeting = 8;  // connections that are not authenticated yet
constexpr std::chrono::seconds time_to_drain{5};
constexpr std::size_t most_told = 512;  // fits into a pipe at once

constexpr char greeted_mark = 1;  // no text begins with it

struct Child {
    pid_t process = -1;
    FileDescriptor told{};  // readable: greeted_mark, or why the greeting failed, or it has ended
    bool greeted = false;
};

Result<void> serve(ucx::Connection connection, const BridgeOptions& options) {
    Result<Runtime> runtime = Runtime::open({.use_cuda = false});
    if (!runtime) return std::move(runtime).error();
    Result<share::OpenedRing> ring = share::open_ring(runtime->default_device(), {.at = options.at});
    if (!ring) return std::move(ring).error();
    const auto shape = share::encode_shape(ring->shape);
    Result<ucx::FrameSender> sender = ucx::FrameSender::create(std::move(connection), std::move(ring->reader),
                                                               std::vector<std::byte>(shape.begin(), shape.end()));
    if (!sender) return std::move(sender).error();
    while (StopSignal::received() == 0) {
        if (Result<void> stepped = sender->step(std::chrono::milliseconds(100)); !stepped) {
            if (stepped.code() == Code::ended) return {};
            return stepped;
        }
    }
    return {};
}

// The child, which ends here. _Exit: the objects of the listening process are not this one's to end.
[[noreturn]] void be_the_child(pid_t parent, FileDescriptor accepted, FileDescriptor told,
                               const BridgeOptions& options) {
    const StopSignal own;  // with a pipe of its own: the listening process must not be woken
    end_with_parent(parent);
    Result<ucx::Connection> connection = ucx::Connection::greet(std::move(accepted), options.connection);
    // Who has no key can cause many such lines: the listening process limits them.
    const std::string why = connection ? std::string(1, greeted_mark) : connection.error().text();
    if (::write(told.get(), why.data(), std::min(why.size(), most_told)) < 1 || !connection) std::_Exit(exit_failed);
    const Result<void> served = serve(std::move(connection).value(), options);
    if (!served) complain(fmt::format("bridge: a remote viewer's connection ended: {}", served.error().text()));
    std::_Exit(served ? exit_ok : exit_failed);
}

class Children {
public:
    Children(const BridgeOptions& options, share::Notices& notices) : options_(options), notices_(notices) {}
    bool has_room() const { return greeting() < most_greeting && all_.size() < options_.viewers + most_greeting; }
    bool empty() const { return all_.empty(); }
    void start(FileDescriptor accepted, int listener) {
        int ends[2] = {-1, -1};
        if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;  // no descriptors: this connection is closed
        FileDescriptor ours(ends[0]), theirs(ends[1]);
        const pid_t parent = ::getpid();
        const pid_t process = ::fork();
        if (process == 0) {
            ::close(listener);
            be_the_child(parent, std::move(accepted), std::move(theirs), options_);
        }
        if (process > 0) all_.push_back({process, std::move(ours), false});
    }
    void look() {
        const auto gone = [this](Child& child) {
            int status = 0;
            const pid_t ended = ::waitpid(child.process, &status, WNOHANG);
            if (ended == 0) return false;
            hear(child);
            if (ended > 0 && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
                notices_.say(
                    fmt::format("bridge: the process of a remote viewer was ended by signal {}", WTERMSIG(status)));
            }
            return true;
        };
        // Those that have ended are not counted among the viewers.
        for (auto child = all_.begin(); child != all_.end();) child = gone(*child) ? all_.erase(child) : child + 1;
        for (Child& child : all_) {
            if (!hear(child)) continue;
            child.greeted = true;
            if (all_.size() - greeting() > options_.viewers) {
                complain("bridge: a remote viewer was refused: there are " + std::to_string(options_.viewers) +
                         " already (--viewers)");
                ::kill(child.process, SIGKILL);
            }
        }
    }
    void end(int signal) {
        for (const Child& child : all_) ::kill(child.process, signal);
    }

private:
    // Whether it says now that it is authenticated.
    bool hear(const Child& child) {
        char text[most_told];
        const ssize_t got = child.greeted ? 0 : ::read(child.told.get(), text, sizeof text);
        if (got > 0 && text[0] == greeted_mark) return true;
        if (got > 0) {
            notices_.say("bridge: a remote viewer was not admitted: " +
                         std::string(text, static_cast<std::size_t>(got)));
        }
        return false;
    }
    std::size_t greeting() const {
        return static_cast<std::size_t>(
            std::count_if(all_.begin(), all_.end(), [](const Child& child) { return !child.greeted; }));
    }
    const BridgeOptions& options_;
    share::Notices& notices_;
    std::vector<Child> all_{};
};

}  // namespace

int send(const BridgeOptions& options) {
    const StopSignal stop;
    Result<ucx::Listener> listener = ucx::Listener::create(options.address, options.connection);
    if (!listener) {
        complain("bridge: " + listener.error().text());
        return listener.code() == Code::not_permitted || listener.code() == Code::invalid_argument ? exit_bad_usage
                                                                                                   : exit_failed;
    }
    complain(fmt::format("bridge: listens on port {}", listener->port()));
    share::Notices notices(complain);
    Children children(options, notices);
    while (StopSignal::received() == 0 && !stdin_ended(options)) {
        children.look();
        // Further connections wait in the listener's queue.
        pollfd waits[2] = {{children.has_room() ? listener->descriptor() : -1, POLLIN, 0},
                           {stop.descriptor(), POLLIN, 0}};
        (void)::poll(waits, 2, children.empty() ? 100 : 20);
        if (waits[0].revents == 0) continue;
        Result<FileDescriptor> accepted = listener->accept();
        if (accepted) {
            children.start(std::move(accepted).value(), listener->descriptor());
        } else if (accepted.code() != Code::not_ready) {
            notices.say("bridge: " + accepted.error().text());
            ::poll(nullptr, 0, 50);
        }
    }
    // The producer has ended: each child sends what is left, and ends. After a signal none is waited for.
    { [[maybe_unused]] const ucx::Listener closed = std::move(listener).value(); }
    const Clock::time_point until = Clock::now() + time_to_drain + options.connection.silence;
    while (!children.empty() && StopSignal::received() == 0 && Clock::now() < until) {
        children.look();
        ::poll(nullptr, 0, 5);
    }
    children.end(SIGKILL);
    while (!children.empty()) {
        children.look();
        ::poll(nullptr, 0, 5);
    }
    notices.say_left_out();
    return StopSignal::received() == 0 ? exit_ok : 128 + StopSignal::received();
}

}  // namespace isthmus::tools::bridge
