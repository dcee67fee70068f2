// Lines on standard error about other processes, who can cause any number of them: never more than a few a second,
// and never one that waits for its reader.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus::tools::share {

// Which lines are said: `burst` at once, then one each `interval`. Pure: the caller has the clock.
class NoticeRate {
public:
    using Time = std::chrono::steady_clock::time_point;
    NoticeRate(std::uint32_t burst, std::chrono::nanoseconds interval) noexcept : burst_(burst), interval_(interval) {}
    // Whether a line may be said now; it counts as said.
    bool take(Time now) noexcept;

private:
    std::int64_t burst_;
    std::chrono::nanoseconds interval_;
    std::int64_t left_ = 0;
    Time counted_{};  // up to here, intervals are counted in left_
};

// Writes lines to a descriptor. A line that may not be said, or for which there is no room, is counted instead, and the
// next one that is said is followed by that number. Neither throws nor waits. SIGPIPE has to be ignored (StopSignal).
// One thread at a time.
class Notices {
public:
    explicit Notices(int fd);
    ~Notices();
    Notices(const Notices&) = delete;
    Notices& operator=(const Notices&) = delete;

    // One line, without its newline; control characters are escaped.
    void say(std::string_view line) noexcept;
    // The number of lines that were left out since the last one, where there are any.
    void say_left_out() noexcept;

private:
    bool put(const std::string& text) const noexcept;
    int fd_;
    int own_fd_ = -1;  // the same file opened anew, without waiting; -1: there is none
    bool is_socket_ = false;
    NoticeRate rate_;
    std::uint64_t left_out_ = 0;
};

}  // namespace isthmus::tools::share
