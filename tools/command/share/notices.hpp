// SPDX-License-Identifier: Apache-2.0
// Limits the lines that other processes cause to a few a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

namespace isthmus::tools::share {

// Decides which lines are printed: `burst` at once, then one each `interval`. Pure: the caller passes the time.
class NoticeRate {
public:
    using Time = std::chrono::steady_clock::time_point;
    NoticeRate(std::uint32_t burst, std::chrono::nanoseconds interval) noexcept : burst_(burst), interval_(interval) {}
    // Whether a line may be printed now; if so, it is counted as printed.
    bool take(Time now) noexcept;

private:
    std::int64_t burst_;
    std::chrono::nanoseconds interval_;
    std::int64_t left_ = 0;
    Time counted_{};  // intervals up to this time are included in left_
};

// Passes lines on: 20 at once, then two a second. Further lines are dropped, and the next line that is passed on gives
// their count. One thread at a time.
class Notices {
public:
    using Say = std::function<void(std::string_view line)>;
    explicit Notices(Say say);
    void say(std::string_view line) noexcept;
    // Passes on the count of lines that were dropped since the last one, if any.
    void say_left_out() noexcept;

private:
    Say say_;
    NoticeRate rate_;
    std::uint64_t left_out_ = 0;
};

}  // namespace isthmus::tools::share
