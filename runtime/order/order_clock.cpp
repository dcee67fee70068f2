// SPDX-License-Identifier: Apache-2.0
// OrderClock and OrderLine: merge sorted entries, and find the step that applies at a position.
#include "order_clock.hpp"

#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Never freed: threads may still read it during static destruction.
const OrderClock& nothing_known() {
    static const OrderClock* const clock = new OrderClock;
    return *clock;
}

}  // namespace

std::uint64_t OrderClock::at(std::uint64_t stream) const noexcept {
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), stream,
                                        [](const Entry& entry, std::uint64_t id) { return entry.stream < id; });
    return found != entries_.end() && found->stream == stream ? found->position : 0;
}

void OrderClock::raise(std::uint64_t stream, std::uint64_t position) {
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), stream,
                                        [](const Entry& entry, std::uint64_t id) { return entry.stream < id; });
    if (found != entries_.end() && found->stream == stream) {
        found->position = std::max(found->position, position);
    } else if (position > 0) {
        entries_.insert(found, {stream, position});
    }
}

void OrderClock::join(const OrderClock& other) {
    std::vector<Entry> merged;
    merged.reserve(entries_.size() + other.entries_.size());
    auto ours = entries_.begin();
    auto theirs = other.entries_.begin();
    while (ours != entries_.end() || theirs != other.entries_.end()) {
        if (theirs == other.entries_.end() || (ours != entries_.end() && ours->stream < theirs->stream)) {
            merged.push_back(*ours++);
        } else if (ours == entries_.end() || theirs->stream < ours->stream) {
            merged.push_back(*theirs++);
        } else {
            merged.push_back({ours->stream, std::max(ours->position, theirs->position)});
            ++ours;
            ++theirs;
        }
    }
    entries_ = std::move(merged);
}

void OrderLine::wait(std::uint64_t from, const OrderClock& clock) {
    if (!steps_.empty() && steps_.back().from >= from) {
        steps_.back().clock.join(clock);
        return;
    }
    OrderClock joined = now();
    joined.join(clock);
    steps_.push_back({from, std::move(joined)});
    if (steps_.size() <= max_steps) return;
    steps_[1].from = steps_[0].from;
    steps_.pop_front();
}

const OrderClock& OrderLine::at(std::uint64_t position) const noexcept {
    const auto after = std::upper_bound(steps_.begin(), steps_.end(), position,
                                        [](std::uint64_t at, const Step& step) { return at < step.from; });
    return after == steps_.begin() ? nothing_known() : std::prev(after)->clock;
}

const OrderClock& OrderLine::now() const noexcept {
    return steps_.empty() ? nothing_known() : steps_.back().clock;
}

void OrderLine::forget_before(std::uint64_t position) {
    while (steps_.size() > 1 && steps_[1].from <= position) steps_.pop_front();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
