// SPDX-License-Identifier: Apache-2.0
// Explorer: every execution of a few short threads under a model of weak memory that is small enough for exhaustive
// search.
//
// Each cell, of up to 64 bits that are accessed in one piece, keeps the history of its stores; each thread has a view,
// the oldest entry of each cell that it may still read. A load may read any entry from there on. A release store
// carries its thread's view, and an acquire load that reads it takes that view over. Relaxed accesses do neither;
// fences do it for the relaxed accesses around them; sequentially consistent fences share one view. A relaxed load may
// also happen late, after stores that follow it in its thread, and then read values that other threads stored because
// of those (load buffering). A store enters the history of its cell anywhere behind what its thread has seen of it: of
// two threads' stores either may be the earlier one, whichever was carried out first. A read-modify-write reads an
// entry that its thread may read and stands directly behind it: nothing comes between the two, so that no other one
// reads the same entry, and it carries on what that entry carries (release sequences). An exchange that was compared
// and failed is a load. Read-modify-writes are carried out in their place, never late. This is release/acquire of C++
// and PTX: what the model shows may happen on some machine, what it never shows may not. Accesses of a narrower scope
// than the reader's synchronize with nothing on the other side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace protocols {

enum class Side : std::uint8_t { host, device };
enum class Order : std::uint8_t { relaxed, ordered };  // ordered: acquire for a load, release for a store
enum class Scope : std::uint8_t { device, system };
enum class Fence : std::uint8_t { acquire, release, sequential };
// Of a read-modify-write: which of its two sides is ordered.
enum class Ordered : std::uint8_t { neither, acquire, release, both };
enum class Modify : std::uint8_t { exchange, compare_exchange, bit_or, add };

// The next step of a thread.
struct Step {
    enum class Kind : std::uint8_t { load, store, modify, fence, end, hopeless, wild } kind = Kind::end;
    std::uint32_t cell = 0;
    std::uint64_t value = 0;
    Order order = Order::relaxed;
    Scope scope = Scope::system;
    Fence fence = Fence::acquire;
    Modify modify = Modify::exchange;
    Ordered ordered = Ordered::neither;
    std::uint64_t expected = 0;  // of a compare_exchange
};

// A thread body's interface to the model. Throws where the body has to stop, so the body must keep no state outside its
// frame.
class Memory {
public:
    std::uint64_t load(std::uint32_t cell, Order order, Scope scope = Scope::system);
    void store(std::uint32_t cell, std::uint64_t value, Order order, Scope scope = Scope::system);
    // These answer the value before.
    std::uint64_t exchange(std::uint32_t cell, std::uint64_t value, Ordered ordered, Scope scope = Scope::system);
    std::uint64_t bit_or(std::uint32_t cell, std::uint64_t bits, Ordered ordered, Scope scope = Scope::system);
    std::uint64_t add(std::uint32_t cell, std::uint64_t value, Ordered ordered, Scope scope = Scope::system);
    // Stores where the value before was the expected one; otherwise a relaxed load.
    std::uint64_t compare_exchange(std::uint32_t cell, std::uint64_t expected, std::uint64_t value, Ordered ordered,
                                   Scope scope = Scope::system);
    void fence(Fence kind);
    // Drops the rest of this execution: an awaited value did not come in time; another execution covers that.
    [[noreturn]] void give_up();
    // Adds a result to the outcome, in the thread's order.
    void note(std::uint64_t value) { notes_.push_back(value); }

private:
    friend class Explorer;
    explicit Memory(const std::vector<std::uint64_t>& answers, std::uint32_t cells)
        : answers_(answers), cells_(cells) {}
    std::uint64_t ask(const Step& step);
    std::uint64_t modify(const Step& step);
    const std::vector<std::uint64_t>& answers_;
    const std::uint32_t cells_;
    std::size_t at_ = 0;
    std::vector<std::uint64_t> notes_;
};

struct Thread {
    Side side = Side::host;
    std::function<void(Memory&)> body;
};

// The notes of all threads, thread by thread.
using Outcome = std::vector<std::vector<std::uint64_t>>;

struct Exploration {
    std::set<Outcome> outcomes;  // of executions in which every thread ended
    bool wild = false;           // some execution accessed memory outside the cells
    std::size_t states = 0;
    bool whole = true;  // the search was complete: the limit on states was not reached
};

// Cells begin as 0. A body depends only on the values that it loads.
Exploration explore(std::uint32_t cells, const std::vector<Thread>& threads, std::size_t max_states = 4'000'000);

}  // namespace protocols
