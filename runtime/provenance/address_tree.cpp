// SPDX-License-Identifier: Apache-2.0
// The writer's functions of the tree. Readers may follow the tree at the same time.
#include "address_tree.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace isthmus::provenance::nodes {
namespace {

Range range_of(const Slot& slot) {
    return {slot.first(), slot.last()};
}
// The part of `range` within the 2^bits addresses that contain `inside`.
Range part(Range range, std::uint64_t inside, int bits) {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    return {std::max(range.first, inside & ~mask), std::min(range.last, inside | mask)};
}
bool meet(Range a, Range b) {
    return a.first <= b.last && b.first <= a.last;
}
// For two ranges that do not overlap: do they share no word for 2^shift addresses?
bool apart(Range a, Range b, int shift) {
    return a.first < b.first ? a.last >> shift < b.first >> shift : b.last >> shift < a.first >> shift;
}

int level_below(int bits) {
    return bits == upper ? middle : bits == middle ? lower : granule;
}
Word& word_in(Ref node, int bits, std::uint64_t address) {
    return words_of(node)[(address & ((std::uint64_t{1} << bits) - 1)) >> shift_of(node)];
}

// Calls each(word, part) for every word that `range` touches in a node for 2^bits addresses; `part` is what the word
// covers of the range. The node contains the range. Stops when `each` answers false, and then answers false.
template <class Each>
bool each_word(Ref node, int bits, Range range, Each each) {
    for (std::uint64_t at = range.first;;) {
        const Range here = part(range, at, shift_of(node));
        if (!each(word_in(node, bits, at), here)) return false;
        if (here.last == range.last) return true;
        at = here.last + 1;
    }
}

// each_word() for the words of the root.
template <class Root, class Each>
bool each_root_word(Root& root, Range range, Each each) {
    for (std::uint64_t at = range.first;;) {
        const Range here = part(range, at, root_shift);
        if (!each(root[at >> root_shift], here)) return false;
        if (here.last == range.last) return true;
        at = here.last + 1;
    }
}

void construct_words(void* block, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes / sizeof(Word); ++i) new (static_cast<Word*>(block) + i) Word;
}
template <std::size_t... kind>
std::array<BlockPool, sizeof...(kind)> make_pools(Budget& budget, std::index_sequence<kind...>) {
    return {BlockPool(budget, node_kinds[kind].bytes(), construct_words)...};
}

// The coarsest kind of node for 2^bits addresses in which `range` shares no word with its two closest neighbours. If no
// kind fits: the finest kind, whose words lead to the next level.
template <class Fits>
NodeKind coarsest(int bits, Fits fits) {
    NodeKind chosen{};
    for (const NodeKind kind : node_kinds) {
        if (kind.bits != bits) continue;
        chosen = kind;
        if (fits(kind.shift)) break;
    }
    return chosen;
}
int finest_shift(int bits) {
    return coarsest(bits, [](int) { return false; }).shift;
}

}  // namespace

Tree::Tree(Budget& budget) : pools_(make_pools(budget, std::make_index_sequence<node_kinds.size()>())) {
    for (Word& word : root_) put(word, nobody_.ref());
}

BlockPool& Tree::pool_of(NodeKind kind) {
    std::size_t which = 0;
    while (node_kinds[which].bits != kind.bits || node_kinds[which].shift != kind.shift) ++which;
    return pools_[which];
}

const Slot* Tree::first_met(Range range) const {
    const Slot* met = nullptr;
    each_root_word(root_, range, [&](const Word& word, Range here) {
        met = first_met(get(word), root_shift, here);
        return met == nullptr;
    });
    return met;
}

bool Tree::add(const Slot& slot, Range range) {
    if (each_root_word(root_, range, [&](Word& word, Range here) { return place(word, root_shift, here, slot); })) {
        return true;
    }
    remove(slot, range);
    return false;
}

void Tree::remove(const Slot& slot, Range range) {
    each_root_word(root_, range, [&](Word& word, Range here) { return remove(word, root_shift, here, slot), true; });
}

Ref Tree::make_node(NodeKind kind) {
    void* block = pool_of(kind).take();
    if (block == nullptr) return 0;
    for (std::size_t i = 0; i < kind.words(); ++i) put(static_cast<Word*>(block)[i], nobody_.ref());
    const Ref node = ref_of(block, kind.shift);
    if (kind.counts()) put(count_of(node, kind.bits), 0);
    return node;
}

void Tree::count(Ref node, int bits, int change) {
    if (bits != granule) put(count_of(node, bits), get(count_of(node, bits)) + static_cast<Ref>(change));
}

// The caller has replaced the word that led to the node.
void Tree::give_up(Ref node, int bits) {
    given_up_.store(given_up_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    pool_of({bits, shift_of(node)}).give(words_of(node));
}

const Slot* Tree::first_met(Ref ref, int bits, Range range) const {
    if (is_slot(ref)) {
        const Slot& slot = slot_of(ref);
        return !nothing(ref) && meet(range_of(slot), range) ? &slot : nullptr;
    }
    const Slot* met = nullptr;
    each_word(ref, bits, range, [&](const Word& word, Range here) {
        if (!nothing(get(word))) met = first_met(get(word), level_below(bits), here);
        return met == nullptr;
    });
    return met;
}

// Connects `range` to `slot` below `word`, which covers 2^bits addresses. false: out of memory, and a part of the range
// may be connected.
bool Tree::place(Word& word, int bits, Range range, const Slot& slot) {
    const Ref old = get(word);
    if (nothing(old)) {
        put(word, slot.ref());
        return true;
    }
    if (is_slot(old) || shift_of(old) != finest_shift(bits)) {
        // The words at both ends of the range may hold neighbours; between them the range is free.
        std::array<Ref, 2> close = {old, old};
        if (!is_slot(old)) close = {get(word_in(old, bits, range.first)), get(word_in(old, bits, range.last))};
        const auto fits = [&](int shift) {
            return std::all_of(close.begin(), close.end(),
                               [&](Ref ref) { return nothing(ref) || apart(range_of(slot_of(ref)), range, shift); });
        };
        const bool free = nothing(close[0]) && nothing(close[1]);
        if (!free && !divide(word, coarsest(bits, fits), range.first)) return false;
    }
    const Ref node = get(word);
    return each_word(node, bits, range, [&](Word& below, Range here) {
        if (nothing(get(below))) count(node, bits, 1);
        return place(below, level_below(bits), here, slot);
    });
}

// Replaces the entry of `word` for the addresses around `inside` by a node of this kind that leads to the same slots.
bool Tree::divide(Word& word, NodeKind kind, std::uint64_t inside) {
    const int bits = kind.bits;
    const Ref node = make_node(kind);
    if (node == 0) return false;
    const Ref old = get(word);
    const auto enter = [&](Ref ref) {
        each_word(node, bits, part(range_of(slot_of(ref)), inside, bits), [&](Word& below, Range) {
            count(node, bits, 1);
            return put(below, ref), true;
        });
    };
    if (is_slot(old)) {
        enter(old);
        put(word, node);
        return true;
    }
    Ref entered = nobody_.ref();  // the words of one allocation are adjacent
    for (std::size_t i = 0; i < std::size_t{1} << (bits - shift_of(old)); ++i) {
        const Ref ref = get(words_of(old)[i]);
        if (!nothing(ref) && ref != entered) enter(ref);
        entered = ref;
    }
    put(word, node);
    give_up(old, bits);
    return true;
}

// Undoes place(), even if it was done only in part. Needs no memory.
void Tree::remove(Word& word, int bits, Range range, const Slot& slot) {
    const Ref ref = get(word);
    if (ref == slot.ref()) return put(word, nobody_.ref());
    if (is_slot(ref)) return;
    each_word(ref, bits, range, [&](Word& below, Range here) {
        const bool led = !nothing(get(below));
        remove(below, level_below(bits), here, slot);
        if (led && nothing(get(below))) count(ref, bits, -1);
        return true;
    });
    tidy(word, bits);
}

// Gives up the node behind `word` when none of its words is in use; a granule's node also when it leads to only one
// allocation. Other nodes stay in that case, so that allocations that come and go beside a neighbour do not create and
// give up a node each time.
void Tree::tidy(Word& word, int bits) {
    const Ref node = get(word);
    Ref only = nobody_.ref();
    if (bits != granule) {
        if (get(count_of(node, bits)) != 0) return;
    } else {
        for (std::size_t i = 0; i < std::size_t{1} << (bits - shift_of(node)); ++i) {
            const Ref ref = get(words_of(node)[i]);
            if (nothing(ref) || ref == only) continue;
            if (!nothing(only)) return;
            only = ref;
        }
    }
    put(word, only);
    give_up(node, bits);
}

}  // namespace isthmus::provenance::nodes
