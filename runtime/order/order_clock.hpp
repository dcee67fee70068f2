// SPDX-License-Identifier: Apache-2.0
// OrderClock: for every stream, the position that it is known to have reached (a vector clock without its zeros).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Streams are identified by their ids, operations by their positions within the stream, from 1. Only streams that were
// added have entries, because streams come and go. A value type; thread safety as for std::vector.
class OrderClock {
public:
    // Operations of the stream up to the returned position are known to be ordered before; 0: none.
    std::uint64_t at(std::uint64_t stream) const noexcept;
    bool covers(std::uint64_t stream, std::uint64_t position) const noexcept { return at(stream) >= position; }
    void raise(std::uint64_t stream, std::uint64_t position);  // never lowers
    void join(const OrderClock& other);                        // the maximum of both clocks
    // Drops the entries for which `over(stream, position)` returns true: they are not needed again.
    template <class Over>
    void drop_if(Over over) {
        std::erase_if(entries_, [&](const Entry& entry) { return over(entry.stream, entry.position); });
    }
    std::size_t size() const noexcept { return entries_.size(); }

private:
    struct Entry {
        std::uint64_t stream;
        std::uint64_t position;
    };
    std::vector<Entry> entries_;  // ascending by stream
};

// One stream's clocks: operations from position `from` on are ordered after `clock`. A step begins at each wait for
// other streams. Steps are kept because the host, and other streams through an event, learn of the stream's past and
// not of its later waits. No clock has an entry for the stream itself, whose operations are ordered anyway.
class OrderLine {
public:
    // Beyond this number, steps are merged, oldest first, as if the stream had waited earlier than it did.
    static constexpr std::size_t max_steps = 256;

    void wait(std::uint64_t from, const OrderClock& clock);
    // The clock of the operation at this position.
    const OrderClock& at(std::uint64_t position) const noexcept;
    // The clock of the next operation to be issued.
    const OrderClock& now() const noexcept;
    // Drops the steps that only positions before this one need.
    void forget_before(std::uint64_t position);
    template <class Over>
    void drop_if(Over over) {
        if (!steps_.empty()) steps_.back().clock.drop_if(over);
    }
    std::size_t steps() const noexcept { return steps_.size(); }

private:
    struct Step {
        std::uint64_t from;
        OrderClock clock;
    };
    std::deque<Step> steps_;  // ascending by position
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
