// SPDX-License-Identifier: Apache-2.0
// Lines on standard error about other processes, which can cause any number of them: no more than a few a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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

// Hands lines on, 20 at once and then two a second. Those beyond are counted, and the next line that is handed on says
// how many they were. One thread at a time.
class Notices {
public:
    using Say = std::function<void(std::string_view line)>;
    explicit Notices(Say say);
    void say(std::string_view line) noexcept;
    // The number of lines that were left out since the last one, where there are any.
    void say_left_out() noexcept;

private:
    Say say_;
    NoticeRate rate_;
    std::uint64_t left_out_ = 0;
};

}  // namespace isthmus::tools::share
