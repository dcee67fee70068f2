// OrderBook: which operations of several streams come before which others, and which uses of a buffer lack an order.
#pragma once

#include <isthmus/kernel_info.hpp>

#include "order_clock.hpp"
#include "order_range.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace isthmus::inline v0::detail {

// One operation's use of one buffer.
struct OrderUse {
    std::uint64_t stream = 0;
    std::uint64_t position = 0;
    rules::ByteRange range;
    bool writes = false;
    bool concurrent = false;  // by atomics: beside other such uses it needs no order
    // Of an operation that is being given to the driver: it supersedes nothing yet, nobody comes behind it, and the
    // position that it comes to may be a later one.
    bool pending = false;
    const char* name = "";               // of the operation; static storage
    const KernelInfo* kernel = nullptr;  // names the argument; nullptr: none
    std::uint32_t argument = 0;
};

// By what they do; where they do it is another question.
constexpr bool conflict_without_order(const OrderUse& one, const OrderUse& other) noexcept {
    return (one.writes || other.writes) && !(one.concurrent && other.concurrent);
}
// Does whatever conflicts with `inner` conflict with `outer`, too?
constexpr bool conflicts_as_much(const OrderUse& outer, const OrderUse& inner) noexcept {
    return (outer.writes || !inner.writes) && (!outer.concurrent || inner.concurrent);
}

// The uses of one buffer that later ones may still conflict with.
struct OrderHistory {
    static constexpr std::size_t most_uses = 256;  // the oldest are forgotten beyond
    std::vector<OrderUse> uses;
};

// Pure bookkeeping: no driver, no lock. What it forgets (bounds of OrderLine and OrderHistory, streams that ended) it
// takes for ordered, so that it reports too little and never too much.
class OrderBook {
public:
    // Before anything else is said of the stream.
    void began(std::uint64_t stream) { lines_.try_emplace(stream); }
    // The stream's operations from `from` on come behind this operation of another stream and all before it.
    void wait(std::uint64_t later, std::uint64_t from, std::uint64_t earlier, std::uint64_t position);
    // Other processes may have waited for this operation; and what a stream, or the host, waits for at theirs may stand
    // behind all that was shown.
    void shown(std::uint64_t stream, std::uint64_t position);
    void wait_for_others(std::uint64_t later, std::uint64_t from);
    void seen_others() { host_learns(OrderClock(shown_)); }
    // The host saw that the stream has come there: whatever is issued from now on, by whomever, comes behind that.
    void seen(std::uint64_t stream, std::uint64_t position);
    // No operation will follow `last`, and no use in a history is this stream's, but such as the host saw completed.
    // Work may still run: whoever waits for all of `device` waits for it.
    void ended(std::uint64_t stream, std::uint64_t last, std::size_t device);
    // What streams of the device that have ended so far had been given, and all that comes before it.
    OrderClock ended_on(std::size_t device) const;
    // The host saw that complete.
    void seen_ended(std::size_t device, const OrderClock& ended);

    // Does what `stream` issues next come behind this operation? `besides`: what it will be made to wait for before.
    bool ordered(std::uint64_t stream, std::uint64_t earlier, std::uint64_t position,
                 const OrderClock& besides) const noexcept;
    // All that comes before an operation of this stream, itself included.
    OrderClock before(std::uint64_t stream, std::uint64_t position) const;

    // Calls conflict(const OrderUse& earlier) for every use that `use`, the next operation of its stream, conflicts
    // with and does not come behind.
    template <class Conflict>
    void conflicts(const OrderHistory& history, const OrderUse& use, const OrderClock& besides,
                   Conflict conflict) const {
        for (const OrderUse& earlier : history.uses) {
            if (!conflict_without_order(earlier, use)) continue;
            const bool open = earlier.pending && earlier.stream != use.stream;
            if (!open && ordered(use.stream, earlier.stream, earlier.position, besides)) continue;
            if (rules::share_a_byte(earlier.range, use.range)) conflict(earlier);
        }
    }
    // Enters a use, and drops those that nobody can conflict with any more without conflicting with this one.
    void add(OrderHistory& history, const OrderUse& use) const;
    // How far the next operation of `stream` is known to come behind `earlier`; 0: not at all.
    std::uint64_t known(std::uint64_t stream, std::uint64_t earlier, const OrderClock& besides) const noexcept;

    std::size_t streams() const noexcept { return lines_.size(); }
    const OrderLine* line(std::uint64_t stream) const noexcept;

private:
    void wait(std::uint64_t later, std::uint64_t from, const OrderClock& behind);
    bool alive(std::uint64_t stream) const noexcept { return lines_.contains(stream); }
    void host_learns(const OrderClock& clock);

    std::unordered_map<std::uint64_t, OrderLine> lines_;
    std::unordered_map<std::size_t, OrderClock> ended_;  // by device
    OrderClock host_;
    OrderClock shown_;  // to other processes
};

}  // namespace isthmus::inline v0::detail
