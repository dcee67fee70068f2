// SPDX-License-Identifier: Apache-2.0
// ModelAtomics: the atomics policy that runs the shipped protocols under the explorer, unchanged or weakened at one
// place. It throws where the explorer has to choose a step, so the protocols are not noexcept.
#pragma once

#include "explorer.hpp"

#include <isthmus/concurrent/protocol/ring.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace protocols {

// One change at one cell; the unchanged protocol is correct.
struct Weakening {
    enum class Kind : std::uint8_t {
        none,
        relaxed_store,       // instead of a release
        relaxed_load,        // instead of an acquire
        device_scope_store,  // on either side
        device_scope_load,
        no_store_fence,  // where fences make the order
        no_load_fence,
        no_sequential_fence,
        pairs_backwards,  // lawful: the order of the two words is unspecified
    } kind = Kind::none;
    std::uint32_t cell = 0;
};

class ModelAtomics {
public:
    using Cell = std::uint32_t;
    // A ring with a spread uses only the first words of each line: of the lines behind the first, the model keeps four.
    static constexpr std::uint32_t kept_of_line = 4;
    static Cell stamped_cell(Cell place, std::uint64_t at) {
        constexpr std::uint64_t line = isthmus::protocol::line_stamped;
        return place + static_cast<Cell>(at < line ? at : at / line * kept_of_line + at % line);
    }
    static constexpr std::uint32_t looks_between_commands = 1;

    // fences: fences around relaxed accesses make the order, as __threadfence_system does.
    explicit ModelAtomics(Memory& memory, Weakening weakening = {}, bool fences = false)
        : memory_(&memory), weakening_(weakening), fences_(fences) {}

    std::uint32_t load_acquire(Cell cell) const { return static_cast<std::uint32_t>(load_stamped_acquire(cell)); }
    std::uint32_t load_relaxed(Cell cell) const { return static_cast<std::uint32_t>(load_stamped_relaxed(cell)); }
    void store_release(Cell cell, std::uint32_t value) const { store_stamped_release(cell, value); }
    void store_relaxed(Cell cell, std::uint32_t value) const { store_stamped_relaxed(cell, value); }

    std::uint64_t load_stamped_acquire(Cell cell) const {
        using Kind = Weakening::Kind;
        if (fences_) {
            const std::uint64_t value = memory_->load(cell, Order::relaxed);
            if (!here(Kind::no_load_fence, cell)) memory_->fence(Fence::acquire);
            return value;
        }
        return memory_->load(cell, here(Kind::relaxed_load, cell) ? Order::relaxed : Order::ordered,
                             here(Kind::device_scope_load, cell) ? Scope::device : Scope::system);
    }
    std::uint64_t load_stamped_relaxed(Cell cell) const { return memory_->load(cell, Order::relaxed); }
    void load_stamped_pair_acquire(Cell first, std::uint64_t (&values)[2]) const {
        if (fences_) {  // one fence for both
            load_stamped_pair_relaxed(first, values);
            if (!here(Weakening::Kind::no_load_fence, first + 1)) memory_->fence(Fence::acquire);
            return;
        }
        const Cell backwards = weakening_.kind == Weakening::Kind::pairs_backwards ? 1 : 0;
        for (const Cell at : {backwards, 1 - backwards}) values[at] = load_stamped_acquire(first + at);
    }
    void load_stamped_pair_relaxed(Cell first, std::uint64_t (&values)[2]) const {
        const Cell backwards = weakening_.kind == Weakening::Kind::pairs_backwards ? 1 : 0;
        for (const Cell at : {backwards, 1 - backwards}) values[at] = load_stamped_relaxed(first + at);
    }
    void store_stamped_release(Cell cell, std::uint64_t value) const {
        using Kind = Weakening::Kind;
        if (fences_) {
            if (!here(Kind::no_store_fence, cell)) memory_->fence(Fence::release);
            return memory_->store(cell, value, Order::relaxed);
        }
        memory_->store(cell, value, here(Kind::relaxed_store, cell) ? Order::relaxed : Order::ordered,
                       here(Kind::device_scope_store, cell) ? Scope::device : Scope::system);
    }
    void store_stamped_relaxed(Cell cell, std::uint64_t value) const { memory_->store(cell, value, Order::relaxed); }
    // Separate fences (isthmus/ipc/protocol/frame_stamps.hpp), each for the cell next to it.
    void fence_acquire(Cell cell) const {
        if (!here(Weakening::Kind::no_load_fence, cell)) memory_->fence(Fence::acquire);
    }
    void fence_release(Cell cell) const {
        if (!here(Weakening::Kind::no_store_fence, cell)) memory_->fence(Fence::release);
    }
    void fence_sequential(Cell cell) const {
        if (!here(Weakening::Kind::no_sequential_fence, cell)) memory_->fence(Fence::sequential);
    }
    void fence_streaming(Cell) const {}  // the model has no streaming stores
    void pause(std::uint32_t) const { memory_->give_up(); }

private:
    bool here(Weakening::Kind kind, Cell cell) const { return weakening_.kind == kind && weakening_.cell == cell; }
    Memory* memory_;
    Weakening weakening_;
    bool fences_;
};

// Whether every execution ended as wanted, and at least one ended.
inline bool only(const Exploration& exploration, const std::set<Outcome>& wanted) {
    if (exploration.wild || !exploration.whole || exploration.outcomes.empty()) return false;
    for (const Outcome& outcome : exploration.outcomes) {
        if (wanted.count(outcome) == 0) return false;
    }
    return true;
}

}  // namespace protocols
