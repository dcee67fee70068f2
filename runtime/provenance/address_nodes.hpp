// SPDX-License-Identifier: Apache-2.0
// Building blocks of the address map: words that readers follow without a lock. Blocks are reused for the same purpose
// only, and return to the system only with the map, so a late reader reads old words, never foreign memory.
#pragma once

#include "address_map.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isthmus::provenance::nodes {

// A Ref names a node or a slot: the block's address, a multiple of 64, plus a shift in its low bits. A node is an array
// of words, each for 2^shift addresses. A slot's shift maps every address to index 0: a lookup that continues at a slot
// reads the slot's first word, which names the slot again. A path of fixed length thus ends at a slot however early it
// reached it, and readers need no branch.
using Ref = std::uint64_t;
using Word = std::atomic<Ref>;
inline constexpr Ref shift_mask = 63;

inline bool is_slot(Ref ref) {
    return (ref & shift_mask) == shift_mask;
}
inline int shift_of(Ref ref) {
    return static_cast<int>(ref & shift_mask);
}
inline Word* words_of(Ref ref) {
    return reinterpret_cast<Word*>(ref & ~shift_mask);
}
inline Ref ref_of(const void* block, int shift) {
    return reinterpret_cast<std::uintptr_t>(block) | static_cast<Ref>(shift);
}
// Pairs with the acquire in follow(): a reader that sees the word sees what was written before it.
inline void put(Word& word, Ref ref) {
    word.store(ref, std::memory_order_release);
}
inline Ref get(const Word& word) {  // for the writer's own words
    return word.load(std::memory_order_relaxed);
}
// Called between a reader's loads; does nothing. Tests replace it by writer actions, and so run every possible
// interleaving in the shipped code.
struct Undisturbed {
    void operator()() const noexcept {}
};
// From a node for 2^bits addresses, or from a slot, to its entry for `address`.
inline Ref follow(Ref ref, std::uint64_t address, int bits) {
    const std::uint64_t inside = address & ((std::uint64_t{1} << bits) - 1);
    return words_of(ref)[inside >> shift_of(ref)].load(std::memory_order_acquire);
}

// The holder of what left the map while a word held it: of no identity.
inline constinit std::atomic<std::uint64_t> nobody{0};

// From a place of divided memory to its owner. The owners' words follow behind it.
struct PlaceTable {
    using Owner = std::atomic<const PlaceOwner*>;
    std::atomic<std::uint64_t> shape{0};  // bytes of a place, their number, and 1, so that it is no slot's id

    static constexpr std::uint64_t packed(std::size_t place_bytes, std::size_t places) noexcept {
        return std::uint64_t{place_bytes} << 1 | std::uint64_t{places} << 32 | 1;
    }
    static constexpr std::uint32_t place_bytes(std::uint64_t shape) noexcept {
        return static_cast<std::uint32_t>(shape) >> 1;
    }
    static constexpr std::uint32_t places(std::uint64_t shape) noexcept {
        return static_cast<std::uint32_t>(shape >> 32);
    }
    static constexpr std::size_t bytes(std::size_t places) noexcept {
        return sizeof(PlaceTable) + places * sizeof(Owner);
    }
    Owner* owners() noexcept { return reinterpret_cast<Owner*>(this + 1); }
    const Owner* owners() const noexcept { return reinterpret_cast<const Owner*>(this + 1); }
};

// One allocation, in one cache line. It is alive while its version is even and its holder has its identity. Or divided
// memory: of no bytes, so that read() looks on; its id is where the first range begins, its holder is the table's first
// word, and its places are alive while they have owners.
struct alignas(64) Slot {
    Slot() : self(ref_of(this, static_cast<int>(shift_mask))), holder(&id) {}

    const Word self;
    std::atomic<std::uint64_t> version{
        1};  // even: filled. Never decreases, so a record read under one version is whole
    std::atomic<std::uint64_t> base{0};
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::uint64_t> id{0};
    std::atomic<std::uint64_t> owner{0};  // device, kind, flags
    // Bytes from `base` that the tree connects to this slot, for the writer. At least `bytes`; 0: the tree does not
    // lead here. A slot that is connected and not alive is parked: its memory is kept for a later allocation.
    std::atomic<std::uint64_t> extent{0};
    // The word of the allocation's owner, which outlives the map's readers; `id` where it has none. While it has
    // another value than `id`, nobody finds the record.
    std::atomic<const std::atomic<std::uint64_t>*> holder;

    Ref ref() const { return get(self); }
    bool filled() const { return version.load(std::memory_order_relaxed) % 2 == 0; }
    bool alive() const {
        const std::atomic<std::uint64_t>& held = *holder.load(std::memory_order_relaxed);
        return filled() && held.load(std::memory_order_relaxed) == id.load(std::memory_order_relaxed);
    }
    static constexpr std::uint64_t divided_mark = std::uint64_t{1} << 63;  // in `owner`
    bool divided() const { return (owner.load(std::memory_order_relaxed) & divided_mark) != 0; }
    PlaceTable& table() const {  // of divided memory
        return *reinterpret_cast<PlaceTable*>(
            const_cast<std::atomic<std::uint64_t>*>(holder.load(std::memory_order_relaxed)));
    }
    bool connected() const { return extent.load(std::memory_order_relaxed) != 0; }
    std::uint64_t first() const { return base.load(std::memory_order_relaxed); }
    std::uint64_t last() const { return first() + (extent.load(std::memory_order_relaxed) - 1); }

    // Writer only; the version is odd.
    void fill(const Record& record);
    void fill_divided(std::uint64_t range_base, std::uint64_t first_base, const PlaceTable& places);
    // From odd to even and back: of a slot that nobody else changes.
    void turn() { version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
    // The data of a parked record's next owner, of the same base. Only who parked it may call it, beside everything
    // else but the end of the slot. Readers find it once the holder has its identity.
    void fill_again(const Record& record) {
        const std::uint64_t seen = version.load(std::memory_order_relaxed);
        version.store(seen + 1, std::memory_order_relaxed);
        fill(record);
        version.store(seen + 2, std::memory_order_release);
    }

    // For readers. false: the slot was not alive, was reused meanwhile, or does not contain `address`.
    template <class Between = Undisturbed>
    bool read(std::uint64_t address, Record& record, const Between& between = {}) const;
    // The same of divided memory, for which read() calls it.
    template <class Between = Undisturbed>
    bool read_place(std::uint64_t address, Record& record, const Between& between = {}) const;
};
static_assert(sizeof(Slot) == 64);

template <class Between>  // declared inline, because g++ otherwise emits a call
inline bool Slot::read(std::uint64_t address, Record& record, const Between& between) const {
    // The acquires keep the second load of the version behind the other loads; they pair with the releases in fill().
    const std::uint64_t before = version.load(std::memory_order_acquire);
    between();
    const std::uint64_t from = base.load(std::memory_order_acquire);
    between();
    const std::uint64_t length = bytes.load(std::memory_order_acquire);
    between();
    const std::uint64_t identity = id.load(std::memory_order_acquire);
    between();
    const std::uint64_t packed = owner.load(std::memory_order_acquire);
    between();
    const std::atomic<std::uint64_t>& word = *holder.load(std::memory_order_acquire);
    between();
    const std::uint64_t held = word.load(std::memory_order_acquire);
    between();
    const std::uint64_t changed = before ^ version.load(std::memory_order_relaxed);
    if ((changed | (before & 1) | (held ^ identity)) != 0 || address - from >= length) {
        return (packed & divided_mark) != 0 && read_place(address, record, between);
    }
    record.base = from;
    record.bytes = length;
    record.id = identity;
    record.device = static_cast<std::uint32_t>(packed);
    record.kind = static_cast<MemoryKind>(static_cast<std::uint8_t>(packed >> 32));
    record.flags = static_cast<std::uint8_t>(packed >> 40);
    return true;
}

// The owner's words say all of a place but where its other ranges lie. Whatever path led to them, they are right if the
// address is theirs: an owner may have left this place, and have another one.
template <class Between>
[[gnu::noinline]] bool Slot::read_place(std::uint64_t address, Record& record, const Between& between) const {
    const std::uint64_t before = version.load(std::memory_order_acquire);
    between();
    const std::uint64_t from = base.load(std::memory_order_acquire);
    between();
    const std::uint64_t first_base = id.load(std::memory_order_acquire);
    between();
    const std::uint64_t packed = owner.load(std::memory_order_acquire);
    between();
    const std::atomic<std::uint64_t>* const word = holder.load(std::memory_order_acquire);
    between();
    // Before the word is taken for a table's. Tables stay tables, and have room for as many places as they say.
    const bool same = version.load(std::memory_order_relaxed) == before;
    if (before % 2 != 0 || !same || (packed & divided_mark) == 0) return false;
    const auto& table = *reinterpret_cast<const PlaceTable*>(word);
    const std::uint64_t shape = table.shape.load(std::memory_order_acquire);
    between();
    const std::uint64_t offset = address - from;
    if (offset >> 32 != 0) return false;
    const std::uint32_t place = static_cast<std::uint32_t>(offset) / PlaceTable::place_bytes(shape);
    if (place >= PlaceTable::places(shape)) return false;
    const PlaceOwner* const owned_by = table.owners()[place].load(std::memory_order_acquire);
    between();
    if (owned_by == nullptr) return false;
    const std::uint64_t identity = owned_by->word.load(std::memory_order_acquire);
    between();
    const std::uint64_t first = owned_by->first.load(std::memory_order_acquire);
    between();
    const std::uint64_t facts = owned_by->facts.load(std::memory_order_acquire);
    between();
    const std::uint64_t still = owned_by->word.load(std::memory_order_acquire);
    between();
    if (version.load(std::memory_order_relaxed) != before) return false;
    if (still != identity || !PlaceOwner::is_somebody(identity)) return false;
    if (offset + first_base - first >= PlaceOwner::bytes_of(facts)) return false;
    record.base = first - first_base + from;
    record.bytes = PlaceOwner::bytes_of(facts);
    record.id = identity;
    record.device = PlaceOwner::device_of(facts);
    record.kind = PlaceOwner::kind_of(facts);
    record.flags = from != first_base ? record_flags::device_address : std::uint8_t{0};
    return true;
}

inline const Slot& slot_of(Ref ref) {
    return *reinterpret_cast<const Slot*>(ref & ~shift_mask);
}

// Bytes taken from the system, and their limit.
struct Budget {
    std::size_t limit = 0;
    std::atomic<std::size_t> used{0};
};

// Blocks of one size. take() and give() are for the writer only.
class BlockPool {
public:
    // `construct` begins the lifetime of the objects in a block; it runs once per block.
    BlockPool(Budget& budget, std::size_t block_bytes, void (*construct)(void* block, std::size_t bytes))
        : budget_(budget), block_bytes_(block_bytes), construct_(construct) {}
    ~BlockPool();
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;

    // nullptr: out of memory. A reused block has the content it had when it was given back.
    void* take() { return free_count_ != 0 || grow() ? free_[--free_count_] : nullptr; }
    void give(void* block) noexcept { free_[free_count_++] = block; }  // free_ has a place for every block

    template <class Visit>
    void for_each_block(Visit visit) const {
        for (const Chunk* chunk = chunks_; chunk != nullptr; chunk = chunk->next) {
            for (std::size_t i = 0; i < chunk->blocks; ++i)
                visit(static_cast<const void*>(chunk->block(i, block_bytes_)));
        }
    }

private:
    struct alignas(64) Chunk {
        Chunk* next;
        std::size_t blocks;
        std::byte* block(std::size_t i, std::size_t bytes) const {
            return reinterpret_cast<std::byte*>(const_cast<Chunk*>(this) + 1) + i * bytes;
        }
    };
    bool grow();
    bool make_places(std::size_t blocks);

    Budget& budget_;
    const std::size_t block_bytes_;
    void (*const construct_)(void*, std::size_t);
    Chunk* chunks_ = nullptr;
    std::size_t blocks_ = 0;  // in all chunks
    void** free_ = nullptr;
    std::size_t free_count_ = 0;
    std::size_t free_places_ = 0;
};

}  // namespace isthmus::provenance::nodes

namespace isthmus::provenance {

// The version stays: a reader that finds the new identity beside the word of the old one, or the other way round, finds
// no record, and all else is the same. Release, behind the end of the old identity: who reads the new one reads of the
// word that the old one has ended, or what came later.
inline bool AddressMap::renew(const Place& place, std::uint64_t base, std::uint64_t bytes, std::uint64_t id) noexcept {
    nodes::Slot* const slot = place.slot_;
    if (slot == nullptr || slot->first() != base || !slot->connected() ||
        slot->bytes.load(std::memory_order_relaxed) != bytes) {
        return false;
    }
    slot->id.store(id, std::memory_order_release);
    return true;
}

}  // namespace isthmus::provenance
