// OrderClock: for every stream, how far one can be sure that it has come (a vector clock, without its zeros).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace isthmus::inline v0::detail {

// Streams are named by their ids, operations by their positions within the stream, from 1. Streams come and go: a clock
// holds only those that it has heard of. A value; thread safety as a std::vector.
class OrderClock {
public:
    // Every operation of the stream up to the answer is known to come before; 0: none.
    std::uint64_t at(std::uint64_t stream) const noexcept;
    bool covers(std::uint64_t stream, std::uint64_t position) const noexcept { return at(stream) >= position; }
    void raise(std::uint64_t stream, std::uint64_t position);  // never lowers
    void join(const OrderClock& other);                        // what either knows
    // Forgets the entries of which `over(stream, position)` says that nobody will ask again.
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

// What one stream's operations come behind, which changes where the stream waits for others: from `from` on they come
// behind `clock`. Kept as steps, because the host, and others through an event, learn of the stream's past and not of
// what it waits for since. The stream itself stands in none of them: its own order needs no clock.
class OrderLine {
public:
    // More steps than that become fewer, oldest first, as if the stream had waited earlier than it did.
    static constexpr std::size_t most_steps = 256;

    void wait(std::uint64_t from, const OrderClock& clock);
    // What the operation at this position comes behind.
    const OrderClock& at(std::uint64_t position) const noexcept;
    // … and the next one to be issued.
    const OrderClock& now() const noexcept;
    // Nobody asks about earlier positions any more.
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
    std::deque<Step> steps_;  // ascending
};

}  // namespace isthmus::inline v0::detail
