// SPDX-License-Identifier: Apache-2.0
// Explorer: every execution of a few short threads under a model of weak memory, small enough to be tried whole.
//
// Each cell, of up to 64 bits in one piece, keeps all that was stored to it, in order; each thread has a view, the
// oldest entry of each cell that it may still read. A load may read any entry from there on. A release store carries
// its thread's view, an acquire load that reads it takes that over; relaxed ones do neither; fences do it for the
// relaxed accesses around them; sequentially consistent fences share one view. A relaxed load may also happen late,
// behind stores that follow it in its thread, and then read what those made others store (load buffering). That is
// release/acquire of C++ and PTX without read-modify-writes, for cells with one writer each: what it shows may happen
// on some machine, what it never shows may not. Accesses of a narrower scope than the reader's synchronise with nobody
// on the other side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace protocols {

enum class Side : std::uint8_t { host, device };
enum class Order : std::uint8_t { relaxed, ordered };  // ordered: acquire of a load, release of a store
enum class Scope : std::uint8_t { device, system };
enum class Fence : std::uint8_t { acquire, release, sequential };

// What a thread does next.
struct Step {
    enum class Kind : std::uint8_t { load, store, fence, end, hopeless, wild } kind = Kind::end;
    std::uint32_t cell = 0;
    std::uint64_t value = 0;
    Order order = Order::relaxed;
    Scope scope = Scope::system;
    Fence fence = Fence::acquire;
};

// One thread's way into the model; what its body calls. Throws where the body is to stop, so that it has to be free of
// state that outlives it.
class Memory {
public:
    std::uint64_t load(std::uint32_t cell, Order order, Scope scope = Scope::system);
    void store(std::uint32_t cell, std::uint64_t value, Order order, Scope scope = Scope::system);
    void fence(Fence kind);
    // The rest of this execution is of no interest: what was waited for did not come in time, and will in another one.
    [[noreturn]] void give_up();
    // A result for the outcome, whose order is the thread's.
    void note(std::uint64_t value) { notes_.push_back(value); }

private:
    friend class Explorer;
    explicit Memory(const std::vector<std::uint64_t>& answers, std::uint32_t cells)
        : answers_(answers), cells_(cells) {}
    std::uint64_t ask(const Step& step);
    const std::vector<std::uint64_t>& answers_;
    const std::uint32_t cells_;
    std::size_t at_ = 0;
    std::vector<std::uint64_t> notes_;
};

struct Thread {
    Side side = Side::host;
    std::function<void(Memory&)> body;
};

// What all threads noted, thread by thread.
using Outcome = std::vector<std::vector<std::uint64_t>>;

struct Exploration {
    std::set<Outcome> outcomes;  // of executions in which every thread came to its end
    bool wild = false;           // a thread reached beyond the cells in some execution
    std::size_t states = 0;
    bool whole = true;  // nothing was left out for want of room
};

// Cells begin as 0. Bodies are functions of what they load and of nothing else.
Exploration explore(std::uint32_t cells, const std::vector<Thread>& threads, std::size_t max_states = 4'000'000);

}  // namespace protocols
