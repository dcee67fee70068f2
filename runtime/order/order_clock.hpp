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

// Streams are named by their ids, operations by their positions within the stream, from 1. A clock holds only streams
// that it has learnt of, because streams come and go. A value; thread safety as a std::vector.
class OrderClock {
public:
    // Every operation of the stream up to the answered position is known to come before; 0: none.
    std::uint64_t at(std::uint64_t stream) const noexcept;
    bool covers(std::uint64_t stream, std::uint64_t position) const noexcept { return at(stream) >= position; }
    void raise(std::uint64_t stream, std::uint64_t position);  // never lowers
    void join(const OrderClock& other);                        // the maximum of both clocks
    // Drops the entries for which `over(stream, position)` says that they will never be needed again.
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

// What one stream's operations come behind: from position `from` on they come behind `clock`. It changes where the
// stream waits for other streams. Kept as steps, because the host, and other streams through an event, learn of the
// stream's past, but not of its later waits. The stream itself is in none of the clocks: its own order needs no entry.
class OrderLine {
public:
    // Beyond this number, steps are merged, oldest first, as if the stream had waited earlier than it did.
    static constexpr std::size_t max_steps = 256;

    void wait(std::uint64_t from, const OrderClock& clock);
    // What the operation at this position comes behind.
    const OrderClock& at(std::uint64_t position) const noexcept;
    // The same for the next operation to be issued.
    const OrderClock& now() const noexcept;
    // Earlier positions will not be asked for any more.
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
