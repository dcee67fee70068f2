// SPDX-License-Identifier: Apache-2.0
// The radix tree behind the address map: how writers connect addresses to slots, and how readers follow.
//
// Four levels lie below the root. Each node is only as fine as needed to keep its allocations apart: where words of 2
// MiB suffice, there are none for 4 KiB. A path ends as soon as only one allocation remains, so a huge range takes few
// words, and so does an isolated one.
//
// Why readers need no lock. Words and slots are atomic, and blocks are never returned to the system while the tree
// lives. An allocation is visible, for all its addresses at once, from the moment its slot becomes alive until it
// becomes dead; the words that lead to it are written before and removed afterwards. So a reader that arrives at a
// living slot that contains the address has the right answer, whatever path it took. A reader that arrives elsewhere
// may have been misled by a node that was reused meanwhile: it looks again, until no node was given up during a lookup.
// A block only ever serves as a node of one kind, so no reader indexes beyond it.
#pragma once

#include "address_nodes.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isthmus::provenance::nodes {

// The levels below the root, as bits of the addresses that a node covers.
inline constexpr int root_shift = 45;
inline constexpr int upper = 45;
inline constexpr int middle = 34;
inline constexpr int lower = 23;
inline constexpr int granule = 12;
inline constexpr std::size_t root_words = std::size_t{1} << (AddressMap::address_bits - root_shift);

// A node kind covers 2^bits addresses; each of its words covers 2^shift. Ordered by level, coarse kinds first. The
// words of the last kind of a level lead to the next level, those of the other kinds to slots only. Drivers align to 2
// MiB, 64 KiB and 512 bytes, places of small buffers to 256 bytes, systems to 4 KiB, 64 and 16 bytes, other code to 1.
struct NodeKind {
    int bits;
    int shift;
    constexpr std::size_t words() const { return std::size_t{1} << (bits - shift); }
    // Above the granules, a line behind the words counts, for the writer, how many words are in use.
    constexpr bool counts() const { return bits != granule; }
    constexpr std::size_t bytes() const { return words() * sizeof(Word) + (counts() ? 64 : 0); }
};
inline constexpr std::array<NodeKind, 11> node_kinds = {{{upper, middle},
                                                         {middle, 28},
                                                         {middle, lower},
                                                         {lower, 20},
                                                         {lower, 16},
                                                         {lower, granule},
                                                         {granule, 9},
                                                         {granule, 8},
                                                         {granule, 6},
                                                         {granule, 4},
                                                         {granule, 0}}};

static_assert(
    [] {
        for (const NodeKind kind : node_kinds) {
            if (kind.bytes() % 64 != 0) return false;
        }
        return true;
    }(),
    "a Ref has no room for an address that is not a multiple of 64");

struct Range {
    std::uint64_t first;
    std::uint64_t last;
};

// Readers may call find() at any time. All other functions belong to the writer; there is one writer at a time.
class Tree {
public:
    explicit Tree(Budget& budget);

    template <class Between = Undisturbed>
    Record find(std::uint64_t address, const Between& between = {}) const {
        Record record;
        if (!arrive(address, between).read(address, record, between)) [[unlikely]] {
            look_again(address, record, between);
        }
        return record;
    }
    template <class Between = Undisturbed>
    const Slot& arrive(std::uint64_t address, const Between& between = {}) const {
        Ref ref = root_[(address >> root_shift) & (root_words - 1)].load(std::memory_order_acquire);
        between();
        ref = follow(ref, address, upper);
        between();
        ref = follow(ref, address, middle);
        between();
        ref = follow(ref, address, lower);
        between();
        ref = follow(ref, address, granule);
        between();
        return slot_of(ref);
    }
    // A slot whose allocation overlaps `range`; nullptr: none.
    const Slot* first_met(Range range) const;
    // Connects `range`, which contains no other allocation, to `slot`. false: out of memory, and nothing leads to the
    // slot.
    bool add(const Slot& slot, Range range);
    // Undoes add(). Needs no memory.
    void remove(const Slot& slot, Range range);

private:
    template <class Between>
    void look_again(std::uint64_t address, Record& record, const Between& between) const;
    bool nothing(Ref ref) const { return ref == nobody_.ref(); }
    BlockPool& pool_of(NodeKind kind);
    Ref make_node(NodeKind kind);
    void give_up(Ref node, int bits);
    static Word& count_of(Ref node, int bits) { return words_of(node)[std::size_t{1} << (bits - shift_of(node))]; }
    static void count(Ref node, int bits, int change);
    const Slot* first_met(Ref ref, int bits, Range range) const;
    bool place(Word& word, int bits, Range range, const Slot& slot);
    bool divide(Word& word, NodeKind kind, std::uint64_t inside);
    void remove(Word& word, int bits, Range range, const Slot& slot);
    void tidy(Word& word, int bits);

    std::array<Word, root_words> root_;
    const Slot nobody_;  // never alive: the end of every path that leads to no allocation
    // Incremented whenever a node is given up, before its words are rewritten for another use.
    alignas(64) std::atomic<std::uint64_t> given_up_{0};
    std::array<BlockPool, node_kinds.size()> pools_;
};

// Out of line: runs only where there is no allocation, or a writer interfered.
template <class Between>
[[gnu::noinline]] void Tree::look_again(std::uint64_t address, Record& record, const Between& between) const {
    for (;;) {
        // Pairs with the release in give_up(): nodes given up until now are no longer reached.
        const std::uint64_t before = given_up_.load(std::memory_order_acquire);
        between();
        if (arrive(address, between).read(address, record, between)) return;
        // A node is rewritten only after it was given up, so a reader of the new words sees the new count here.
        if (given_up_.load(std::memory_order_relaxed) == before) return;
        between();
    }
}

}  // namespace isthmus::provenance::nodes
