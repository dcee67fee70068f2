// The radix tree behind the address map: how writers lead addresses to slots, and readers follow.
//
// Four levels lie below the root, and each node is only as fine as keeps its allocations apart: where words of 2 MiB
// do, there are none for 4 KiB. Wherever one allocation alone is concerned the path ends: a huge range takes few words,
// and so does a lonely one.
//
// Why readers need no lock. Words and slots are atomic, and blocks are never returned while the tree lives. An
// allocation is there, for all its addresses at once, from the moment its slot turns alive until it turns dead; the
// words that lead to it are written before and taken away after. So a reader that arrives at a living slot that holds
// the address is right whatever way it took. A reader that does not may have been led astray by a node that was put to
// another use under it: it looks again, until no node was given up while it looked. A block is only ever a node of one
// kind, so that nobody leaves it by a wrong index.
#pragma once

#include "address_nodes.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isthmus::provenance::nodes {

// The levels below the root, as bits of the addresses that a node stands for.
inline constexpr int root_shift = 45;
inline constexpr int upper = 45;
inline constexpr int middle = 34;
inline constexpr int lower = 23;
inline constexpr int granule = 12;
inline constexpr std::size_t root_words = std::size_t{1} << (AddressMap::address_bits - root_shift);

// Nodes of one kind stand for 2^bits addresses, each of their words for 2^shift. By level, the coarse ones first: the
// words of the last of a level lead on to the next, those of the others to slots only. Drivers align to 2 MiB, 64 KiB
// and 512 bytes, systems to 4 KiB, 64 and 16 bytes, anyone to 1.
struct NodeKind {
    int bits;
    int shift;
    constexpr std::size_t words() const { return std::size_t{1} << (bits - shift); }
    // Above the granules a line behind the words counts, for the writer, how many lead anywhere.
    constexpr bool counts() const { return bits != granule; }
    constexpr std::size_t bytes() const { return words() * sizeof(Word) + (counts() ? 64 : 0); }
};
inline constexpr std::array<NodeKind, 10> node_kinds = {{{upper, middle},
                                                         {middle, 28},
                                                         {middle, lower},
                                                         {lower, 20},
                                                         {lower, 16},
                                                         {lower, granule},
                                                         {granule, 9},
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

// Readers call find() at any time; everything else is the writer's, of whom there is one at a time.
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
    // A slot whose allocation meets `range`; nullptr: none.
    const Slot* first_met(Range range) const;
    // Leads `range`, in which nothing else lies, to `slot`. False: out of memory, and nothing leads to it.
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
    const Slot nobody_;  // never alive: where all paths end that lead to no allocation
    // Grows whenever a node is given up, before its words are written for another use.
    alignas(64) std::atomic<std::uint64_t> given_up_{0};
    std::array<BlockPool, node_kinds.size()> pools_;
};

// Out of line: only where there is nothing, or a writer was in the way.
template <class Between>
[[gnu::noinline]] void Tree::look_again(std::uint64_t address, Record& record, const Between& between) const {
    for (;;) {
        // Pairs with the release in give_up(): nodes given up until now are not reached any more.
        const std::uint64_t before = given_up_.load(std::memory_order_acquire);
        between();
        if (arrive(address, between).read(address, record, between)) return;
        // Whoever writes a node anew does so after its giving up, so that a reader of the new words sees it here.
        if (given_up_.load(std::memory_order_relaxed) == before) return;
        between();
    }
}

}  // namespace isthmus::provenance::nodes
