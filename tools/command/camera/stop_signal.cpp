// SPDX-License-Identifier: Apache-2.0
// The signal handlers store the signal's number and write a byte to a pipe.
#include "stop_signal.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <iterator>
#include <unistd.h>

namespace isthmus::tools::camera {
namespace {

// A signal handler has no user argument, so its state is global.
std::atomic<int> received_signal{0};
std::atomic<int> write_end{-1};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler uses them");
constexpr int handled[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};
struct sigaction previous[std::size(handled)];

void make_readable() noexcept {
    const char byte = 0;
    if (write_end >= 0) [[maybe_unused]]
        const ssize_t written = ::write(write_end, &byte, 1);  // a full pipe is readable already
}

extern "C" void note_signal(int signal) {
    const int saved = errno;
    received_signal = signal;
    make_readable();
    errno = saved;
}

}  // namespace

StopSignal::StopSignal() {
    if (::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) pipe_[0] = pipe_[1] = -1;
    received_signal = 0;
    write_end = pipe_[1];
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    for (std::size_t at = 0; at < std::size(handled); ++at) {
        action.sa_handler = handled[at] == SIGPIPE ? SIG_IGN : note_signal;
        // A shell that starts a process in the background sets SIGINT to SIG_IGN, and nohup does so with SIGHUP; that
        // is kept.
        ::sigaction(handled[at], nullptr, &previous[at]);
        if (previous[at].sa_handler != SIG_IGN) ::sigaction(handled[at], &action, nullptr);
    }
}

StopSignal::~StopSignal() {
    for (std::size_t at = 0; at < std::size(handled); ++at) ::sigaction(handled[at], &previous[at], nullptr);
    write_end = -1;
    for (int end : pipe_)
        if (end >= 0) ::close(end);
}

int StopSignal::received() noexcept {
    return received_signal;
}

void StopSignal::end_reading() noexcept {
    make_readable();
}

}  // namespace isthmus::tools::camera
