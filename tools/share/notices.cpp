// Non-blocking writes that leave the flags of standard error as they are: it is shared with other processes.
#include "notices.hpp"

#include "printable.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <exception>

namespace isthmus::tools::share {
namespace {

constexpr std::uint32_t burst = 20;
constexpr std::chrono::milliseconds interval{500};

}  // namespace

bool NoticeRate::take(Time now) noexcept {
    const std::int64_t gained = (now - counted_) / interval_;
    if (gained > 0) {
        left_ = std::min<std::int64_t>(burst_, left_ + std::min<std::int64_t>(gained, burst_));
        counted_ += gained * interval_;
    }
    if (left_ == 0) return false;
    --left_;
    return true;
}

Notices::Notices(int fd) : fd_(fd), rate_(burst, interval) {
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) return;
    is_socket_ = S_ISSOCK(facts.st_mode);
    // Opening it again gives flags of its own. Files are not opened again: that would lose the place where others
    // write, and they do not wait for a reader.
    if (!S_ISFIFO(facts.st_mode) && !S_ISCHR(facts.st_mode)) return;
    const std::string name = "/proc/self/fd/" + std::to_string(fd);
    own_fd_ = ::open(name.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

Notices::~Notices() {
    if (own_fd_ >= 0) ::close(own_fd_);
}

bool Notices::put(const std::string& text) const noexcept {
    if (is_socket_) {
        return ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
    }
    if (own_fd_ >= 0) return ::write(own_fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    // A pipe or terminal that could not be opened again: there is room for so much where poll() says so.
    pollfd one{fd_, POLLOUT, 0};
    if (text.size() > PIPE_BUF || ::poll(&one, 1, 0) <= 0 || (one.revents & POLLOUT) == 0) return false;
    return ::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void Notices::say(std::string_view line) noexcept {
    try {
        if (rate_.take(std::chrono::steady_clock::now())) {
            std::string text = "isthmus: " + printable(line.substr(0, 600)) + "\n";
            for (std::size_t at = 0; at + 1 < text.size(); ++at) {
                if (text[at] == '\n') text[at] = ' ';
            }
            if (put(text)) return say_left_out();
        }
    } catch (const std::exception&) {  // no memory for the line: it is one that is left out
    }
    ++left_out_;
}

void Notices::say_left_out() noexcept {
    if (left_out_ == 0) return;
    try {
        const std::string number = std::to_string(left_out_);
        if (put("isthmus: share: " + number + (left_out_ == 1 ? " line was" : " lines were") + " left out here\n")) {
            left_out_ = 0;
        }
    } catch (const std::exception&) {
    }
}

}  // namespace isthmus::tools::share
