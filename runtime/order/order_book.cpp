// SPDX-License-Identifier: Apache-2.0
// OrderBook: joins clocks where streams wait, and adds what the host saw complete to the host's clock.
#include "order_book.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

const OrderLine* OrderBook::line(std::uint64_t stream) const noexcept {
    const auto found = lines_.find(stream);
    return found == lines_.end() ? nullptr : &found->second;
}

OrderClock OrderBook::before(std::uint64_t stream, std::uint64_t position) const {
    OrderClock clock;
    if (const OrderLine* known = line(stream)) clock = known->at(position);
    clock.raise(stream, position);
    return clock;
}

void OrderBook::wait(std::uint64_t later, std::uint64_t from, std::uint64_t earlier, std::uint64_t position) {
    if (alive(earlier)) wait(later, from, before(earlier, position));
}

void OrderBook::wait(std::uint64_t later, std::uint64_t from, const OrderClock& behind) {
    const auto waiting = lines_.find(later);
    if (waiting == lines_.end()) return;
    waiting->second.wait(from, behind);
    // Drops what the host saw complete, and ended streams, which are not asked for again.
    waiting->second.drop_if(
        [&](std::uint64_t stream, std::uint64_t at) { return !alive(stream) || host_.covers(stream, at); });
}

void OrderBook::shown(std::uint64_t stream, std::uint64_t position) {
    shown_.join(before(stream, position));
    shown_.drop_if([&](std::uint64_t one, std::uint64_t at) { return !alive(one) || host_.covers(one, at); });
}

void OrderBook::wait_for_others(std::uint64_t later, std::uint64_t from) {
    wait(later, from, shown_);
}

void OrderBook::host_learns(const OrderClock& clock) {
    host_.join(clock);
    host_.drop_if([&](std::uint64_t stream, std::uint64_t) { return !alive(stream); });
}

void OrderBook::seen(std::uint64_t stream, std::uint64_t position) {
    const auto found = lines_.find(stream);
    if (found == lines_.end() || host_.covers(stream, position)) return;
    host_learns(before(stream, position));
    found->second.forget_before(position);
}

void OrderBook::ended(std::uint64_t stream, std::uint64_t last, std::size_t device) {
    if (!alive(stream)) return;
    const OrderClock clock = before(stream, last);
    const bool done = host_.covers(stream, last);
    lines_.erase(stream);
    if (!done) {
        OrderClock& others = ended_[device];
        others.join(clock);
        others.drop_if([&](std::uint64_t one, std::uint64_t at) { return !alive(one) || host_.covers(one, at); });
    }
    host_learns({});
}

OrderClock OrderBook::ended_on(std::size_t device) const {
    const auto found = ended_.find(device);
    return found == ended_.end() ? OrderClock{} : found->second;
}

void OrderBook::seen_ended(std::size_t device, const OrderClock& ended) {
    host_learns(ended);
    const auto found = ended_.find(device);
    if (found == ended_.end()) return;
    found->second.drop_if([&](std::uint64_t one, std::uint64_t at) { return !alive(one) || host_.covers(one, at); });
    if (found->second.size() == 0) ended_.erase(found);
}

bool OrderBook::ordered(std::uint64_t stream, std::uint64_t earlier, std::uint64_t position,
                        const OrderClock& besides) const noexcept {
    return stream == earlier || !alive(earlier) || known(stream, earlier, besides) >= position;
}

std::uint64_t OrderBook::known(std::uint64_t stream, std::uint64_t earlier, const OrderClock& besides) const noexcept {
    const OrderLine* own = line(stream);
    const std::uint64_t waited = own == nullptr ? 0 : own->now().at(earlier);
    return std::max({waited, host_.at(earlier), besides.at(earlier)});
}

void OrderBook::add(OrderHistory& history, const OrderUse& use) const {
    const OrderClock nothing;  // not static: threads may still run this during static destruction (R4)
    std::erase_if(history.uses, [&](const OrderUse& earlier) {
        if (earlier.pending) return false;
        if (!alive(earlier.stream) || host_.covers(earlier.stream, earlier.position)) return true;
        if (use.pending || !conflicts_as_much(use, earlier)) return false;
        return rules::contains(use.range, earlier.range) &&
               ordered(use.stream, earlier.stream, earlier.position, nothing);
    });
    if (history.uses.size() >= OrderHistory::max_uses) history.uses.erase(history.uses.begin());
    history.uses.push_back(use);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
