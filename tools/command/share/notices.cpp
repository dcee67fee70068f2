// SPDX-License-Identifier: Apache-2.0
// A token bucket for lines, which refills with time.
#include "notices.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

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

Notices::Notices(Say say) : say_(std::move(say)), rate_(burst, interval) {}

void Notices::say(std::string_view line) noexcept {
    if (!rate_.take(std::chrono::steady_clock::now())) {
        ++left_out_;
        return;
    }
    say_left_out();
    try {
        say_(line);
    } catch (const std::exception&) {  // out of memory
        ++left_out_;
    }
}

void Notices::say_left_out() noexcept {
    if (left_out_ == 0) return;
    try {
        say_("share: " + std::to_string(left_out_) + (left_out_ == 1 ? " line was" : " lines were") + " left out here");
        left_out_ = 0;
    } catch (const std::exception&) {
    }
}

}  // namespace isthmus::tools::share
