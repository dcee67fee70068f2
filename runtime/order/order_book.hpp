// SPDX-License-Identifier: Apache-2.0
// OrderBook: the order between operations of several streams, and the uses of a buffer that lack an order.
#pragma once

#include <isthmus/kernel_info.hpp>

#include "order_clock.hpp"
#include "order_range.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// One operation's use of one buffer.
struct OrderUse {
    std::uint64_t stream = 0;
    std::uint64_t position = 0;
    rules::ByteRange range;
    bool writes = false;
    bool concurrent = false;  // by atomics: needs no order against other such uses
    // The operation is being given to the driver. It supersedes no use yet, no operation is ordered after it, and its
    // final position may be later.
    bool pending = false;
    const char* name = "";               // of the operation; static storage
    const KernelInfo* kernel = nullptr;  // names the argument; nullptr: none
    std::uint32_t argument = 0;
};

// Compares the kinds of use; byte ranges are compared separately.
constexpr bool conflict_without_order(const OrderUse& one, const OrderUse& other) noexcept {
    return (one.writes || other.writes) && !(one.concurrent && other.concurrent);
}
// true: every use that conflicts with `inner` also conflicts with `outer`.
constexpr bool conflicts_as_much(const OrderUse& outer, const OrderUse& inner) noexcept {
    return (outer.writes || !inner.writes) && (!outer.concurrent || inner.concurrent);
}

// The uses of one buffer that later uses may still conflict with.
struct OrderHistory {
    static constexpr std::size_t max_uses = 256;  // beyond this number the oldest uses are dropped
    std::vector<OrderUse> uses;
};

// Pure bookkeeping: no driver calls, no lock. Dropped entries (beyond the limits of OrderLine and OrderHistory, or of
// ended streams) count as ordered: OrderBook may miss a conflict, and never reports a false one.
class OrderBook {
public:
    // Call this first for each stream.
    void began(std::uint64_t stream) { lines_.try_emplace(stream); }
    // The operations of stream `later` from `from` on are ordered after this operation of stream `earlier` and all
    // before it.
    void wait(std::uint64_t later, std::uint64_t from, std::uint64_t earlier, std::uint64_t position);
    // Interprocess events. shown(): another process may have waited for this operation. wait_for_others(),
    // seen_others(): work of another process that a stream, or the host, waits for may be ordered after every shown
    // operation.
    void shown(std::uint64_t stream, std::uint64_t position);
    void wait_for_others(std::uint64_t later, std::uint64_t from);
    void seen_others() { host_learns(OrderClock(shown_)); }
    // The host saw the stream reach this position: every operation issued from now on, by any thread, is ordered after
    // it.
    void seen(std::uint64_t stream, std::uint64_t position);
    // The stream ended: no operation follows `last`, and no history holds a use of this stream, except uses that the
    // host saw complete. The stream's work may still run; a wait for all of `device` includes it.
    void ended(std::uint64_t stream, std::uint64_t last, std::size_t device);
    // The last operations of all streams of the device that have ended so far, and everything before them.
    OrderClock ended_on(std::size_t device) const;
    // The host saw these complete.
    void seen_ended(std::size_t device, const OrderClock& ended);

    // true: the next operation of `stream` is ordered after this operation. `besides`: what the stream will wait for
    // before it.
    bool ordered(std::uint64_t stream, std::uint64_t earlier, std::uint64_t position,
                 const OrderClock& besides) const noexcept;
    // Everything that comes before an operation of this stream, including that operation.
    OrderClock before(std::uint64_t stream, std::uint64_t position) const;

    // Calls conflict(const OrderUse& earlier) for every use in the history that conflicts with `use` and is not ordered
    // before it. `use` is the next operation of its stream.
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
    // Adds a use, and drops the uses that no later use can conflict with unless it also conflicts with this one.
    void add(OrderHistory& history, const OrderUse& use) const;
    // The last position of `earlier` that is known to be ordered before the next operation of `stream`; 0: none.
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
    OrderClock shown_;  // shown to other processes
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
