// SPDX-License-Identifier: Apache-2.0
// Ledger: records pieces, removes them, and finds the error for a wrong release.
#include "ledger.hpp"

#include "address_nodes.hpp"
#include "cache_rules.hpp"
#include "provenance_errors.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

std::uint64_t address_of(const void* host) noexcept {
    return reinterpret_cast<std::uintptr_t>(host);
}
// The host address, otherwise the device address.
std::uint64_t first_base(const MemoryBlock& block) noexcept {
    return block.host != nullptr ? address_of(block.host) : block.device;
}
bool has_second_base(const MemoryBlock& block) noexcept {
    return block.host != nullptr && block.device != 0 && block.device != address_of(block.host);
}

std::string hex_base(const MemoryBlock& block) {
    constexpr const char* digits = "0123456789abcdef";
    std::string hex;
    for (std::uint64_t rest = first_base(block); rest != 0 || hex.empty(); rest /= 16) {
        hex.insert(hex.begin(), digits[rest % 16]);
    }
    return hex;
}

// From the block's first address to the end of its memory, for memory that may be kept: its next owner may use more of
// it than this one.
std::uint64_t extent_of(const MemoryBlock& block, const Piece& piece) noexcept {
    if (!piece.may_be_kept) return block.bytes;
    const std::uint64_t lead = piece.host_part() != nullptr ? 0 : block.device - piece.allocation().device;
    return lead < piece.bytes() ? piece.bytes() - lead : block.bytes;
}

// Where the slab begins that has this block, in the range of the block's first address; and which place it is.
std::uint64_t begin_of(const MemoryBlock& block, const PieceSlab& slab) noexcept {
    return block.host != nullptr ? address_of(slab.host) : slab.device;
}
std::size_t place_of(const MemoryBlock& block, const PieceSlab& slab) noexcept {
    return static_cast<std::size_t>(first_base(block) - begin_of(block, slab)) / slab.place_bytes;
}
std::uint64_t facts_of(const MemoryBlock& block, std::size_t device) noexcept {
    return provenance::PlaceOwner::packed(static_cast<std::uint32_t>(device), block.kind, block.bytes);
}

provenance::Record record_of(const MemoryBlock& block, std::size_t device) noexcept {
    provenance::Record record;
    record.base = first_base(block);
    record.bytes = block.bytes;
    record.id = block.id;
    record.device = static_cast<std::uint32_t>(device);
    record.kind = block.kind;
    return record;
}

// The second range of memory that the device finds elsewhere.
provenance::Record at_device_address(provenance::Record record, const MemoryBlock& block) noexcept {
    record.base = block.device;
    record.flags = provenance::record_flags::device_address;
    return record;
}

}  // namespace

// The entry of a block that is not released. Its owner may release it meanwhile: the piece then stays as it is until
// somebody takes it out, for which the lock is needed.
LedgerEntry* Ledger::live(std::uint64_t id) const {
    LedgerEntry* const entry = entries_.at(id);
    if (entry != nullptr && entry->is(id)) return entry;
    if (returned_.empty()) return nullptr;
    const auto found = returned_.find(id);
    return found != returned_.end() ? found->second.entry : nullptr;
}

namespace {

// A record at addresses that the driver has just handed out is stale: foreign memory that other code freed unnoticed,
// or memory of a context that died, in use or kept.
template <class Enter>
auto where_stale_ones_make_way(provenance::AddressMap& addresses, const provenance::Record& record,
                               std::uint64_t extent_bytes, Enter enter) {
    auto entered = enter();
    for (int attempt = 0; !entered && entered.code() == Code::invalid_argument && attempt < 4; ++attempt) {
        const std::uint64_t extent = record.bytes == 0 ? 0 : std::max(record.bytes, extent_bytes);
        if (addresses.make_way(record.base, extent) == 0) return entered;
        entered = enter();
    }
    return entered;
}

}  // namespace

Result<provenance::Place> Ledger::place(const provenance::Record& record, std::uint64_t extent_bytes,
                                        const provenance::HolderWord& holder) {
    return where_stale_ones_make_way(addresses_, record, extent_bytes,
                                     [&] { return addresses_.place(record, extent_bytes, holder); });
}

Result<void> Ledger::insert(const provenance::Record& record) {
    const std::lock_guard lock(mutex_);
    return where_stale_ones_make_way(addresses_, record, record.bytes, [&] { return addresses_.insert(record); });
}

Result<void> Ledger::map(LedgerEntry& entry, const MemoryBlock& block, Piece& piece, provenance::PlaceOwner& owner) {
    if (piece.slab() != nullptr) return map_place(entry, block, *piece.slab(), owner);
    const provenance::Record record = record_of(block, entry.owner_device());
    const std::uint64_t extent = extent_of(block, piece);
    Result<provenance::Place> placed = place(record, extent, owner.word);
    if (!placed) return std::move(placed).error();
    OwnMemory& own = piece.make_own();
    own.at = *placed;
    if (!has_second_base(block)) return {};
    placed = place(at_device_address(record, block), extent, owner.word);
    if (!placed) {
        addresses_.discard(own.at);
        return std::move(placed).error();
    }
    own.beside = *placed;
    return {};
}

Result<void> Ledger::divide(PieceSlab& slab, std::uint64_t base, std::uint64_t first_base) {
    provenance::Record all;
    all.base = base;
    all.bytes = std::uint64_t{slab.place_bytes} * slab.places;
    return where_stale_ones_make_way(addresses_, all, all.bytes, [&] {
        return addresses_.divide(slab.records, base, first_base, slab.place_bytes, slab.places);
    });
}

// The slab's records are there while one of its places is.
Result<void> Ledger::map_place(LedgerEntry& entry, const MemoryBlock& block, PieceSlab& slab,
                               provenance::PlaceOwner& owner) {
    const std::uint64_t begin = begin_of(block, slab);
    Result<void> divided = divide(slab, begin, begin);
    if (divided && has_second_base(block)) divided = divide(slab, slab.device, begin);
    if (!divided) {
        if (slab.recorded == 0) addresses_.join(slab.records);
        return divided;
    }
    owner.first.store(first_base(block), std::memory_order_release);
    owner.facts.store(facts_of(block, entry.owner_device()), std::memory_order_release);
    addresses_.own(slab.records, place_of(block, slab), &owner);
    ++slab.recorded;
    entry.recorded = true;
    return {};
}

void Ledger::unmap(LedgerEntry& entry) {
    if (OwnMemory* const own = entry.own()) {
        addresses_.discard(own->at);
        addresses_.discard(own->beside);
    }
    if (!entry.recorded) return;
    PieceSlab& slab = *entry.slab();
    addresses_.own(slab.records, place_of(entry.block, slab), nullptr);
    if (--slab.recorded == 0) addresses_.join(slab.records);
    entry.recorded = false;
}

// Ends this identity of a live entry. false: another thread released it since it was found.
bool Ledger::end(LedgerEntry& entry, std::uint64_t id) {
    if (!entry.returned) return entry.claim(id);
    entry.returned = false;
    const auto found = returned_.find(id);
    found->second.owner->word.store(0, std::memory_order_release);
    returned_.erase(found);
    return true;
}

// On an error the caller keeps `piece`.
Result<LedgerEntry*> Ledger::add(const MemoryBlock& fresh, std::size_t device, Piece& piece) {
    LedgerEntry* const entry = entries_.add();
    if (entry == nullptr) return make_error<errors::address_map_is_full>();
    MemoryBlock block = fresh;
    block.id = entry->id();
    entry->belongs_to(device, first_base(block));
    if (Result<void> mapped = map(*entry, block, piece); !mapped) {
        entries_.remove(*entry);
        return std::move(mapped).error();
    }
    static_cast<Piece&>(*entry) = std::move(piece);
    entry->block = block;
    entry->publish(block.id);
    return entry;
}

void Ledger::remove(LedgerEntry& entry) {
    unmap(entry);
    entries_.remove(entry);
}

// As remove(), and the piece goes on.
void Ledger::take_out(LedgerEntry& entry, Piece& piece) {
    unmap(entry);
    piece = std::move(static_cast<Piece&>(entry));
    entries_.remove(entry);
}

Result<std::uint64_t> Ledger::enter(const MemoryBlock& block, std::size_t device, Piece& piece, Piece** entered) {
    const std::lock_guard lock(mutex_);
    Result<LedgerEntry*> entry = add(block, device, piece);
    if (!entry) return std::move(entry).error();
    if (entered != nullptr) *entered = *entry;
    return (*entry)->id();
}

Result<void> Ledger::refuse_overlap(const MemoryBlock& block) const {
    const auto in_use = [&](std::uint64_t base) { return base != 0 && addresses_.is_in_use(base, block.bytes); };
    const bool taken = in_use(address_of(block.host)) || in_use(block.device);
    if (!taken) return {};
    return make_error<errors::adopted_memory_overlaps>();
}

Result<std::uint64_t> Ledger::enter_adopted(const MemoryBlock& block, std::size_t device, Piece& piece) {
    const std::lock_guard lock(mutex_);
    if (Result<void> free = refuse_overlap(block); !free) return std::move(free).error();
    Result<LedgerEntry*> entry = add(block, device, piece);
    if (!entry) return std::move(entry).error();
    return (*entry)->id();
}

std::uint64_t Ledger::enter_users(const MemoryBlock& block, std::size_t device) {
    const std::lock_guard lock(mutex_);
    LedgerEntry* const entry = entries_.add();
    if (entry == nullptr) return 0;
    entry->block = block;
    entry->block.id = entry->id();
    entry->belongs_to(device, first_base(block));
    const provenance::Record record = record_of(entry->block, device);
    const provenance::Record known = addresses_.find(record.base);
    if (known && (known.flags & provenance::record_flags::foreign) != 0) (void)addresses_.erase(known.base, known.id);
    // Refused where the memory is a part of memory that is recorded already.
    if (Result<provenance::Place> placed = addresses_.place(record, record.bytes, entry->word)) {
        entry->make_own().at = *placed;
    }
    entry->publish(entry->block.id);
    return entry->block.id;
}

Result<void> Ledger::resize(std::uint64_t id, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    LedgerEntry* const entry = live(id);
    if (entry == nullptr) return make_error<errors::resizing_unknown_memory>();
    MemoryBlock resized = entry->block;
    resized.bytes = bytes;
    unmap(*entry);
    provenance::PlaceOwner& owner = entry->returned ? *returned_.at(id).owner : *entry;
    if (Result<void> mapped = map(*entry, resized, *entry, owner); !mapped) {
        // Restores the old record; its addresses are still free.
        (void)map(*entry, entry->block, *entry, owner);
        return mapped;
    }
    entry->block = resized;
    return {};
}

void Ledger::leave(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    LedgerEntry* const entry = live(id);
    if (entry != nullptr && end(*entry, id)) remove(*entry);
}

// The error for a block that is not recorded. Expects mutex_ to be held.
Error Ledger::refusal(const MemoryBlock& block) const {
    const std::string base = hex_base(block);
    if (entries_.handed_out(block.id)) return make_error<errors::block_released_before>(base, block.id);
    if (LedgerEntries::handed_out_somewhere(block.id)) {
        return make_error<errors::block_of_another_runtime>(base, block.id);
    }
    const provenance::Record known = addresses_.find(first_base(block));
    if (known && (known.flags & provenance::record_flags::foreign) == 0 && known.base != first_base(block)) {
        return make_error<errors::block_within_another>(base, block.id);
    }
    if (known) return make_error<errors::block_known_by_address_alone>(base, block.id);
    return make_error<errors::block_is_unknown>(base, block.id);
}

// The entry of a block that its owner gives back. Another thread may release it meanwhile, and hand it out again: what
// that changes is not looked at.
Result<LedgerEntry*> Ledger::released(const MemoryBlock& block, std::size_t device) const {
    LedgerEntry* const entry = live(block.id);
    if (entry == nullptr) return refusal(block);
    if (first_base(block) != entry->first.load(std::memory_order_relaxed)) {
        const provenance::Record known = addresses_.find(first_base(block));
        const bool second_range = (known.flags & provenance::record_flags::device_address) != 0;
        const bool within = known && known.id == block.id && !second_range;
        if (within) return make_error<errors::block_address_within_it>(hex_base(block), block.id);
        return make_error<errors::block_of_another_address>(hex_base(block), block.id);
    }
    if (entry->owner_device() != device) return make_error<errors::block_of_another_device>(hex_base(block), block.id);
    return entry;
}

Result<Piece> Ledger::take(const MemoryBlock& block, std::size_t device) {
    const std::lock_guard lock(mutex_);
    Result<LedgerEntry*> entry = released(block, device);
    if (!entry) return std::move(entry).error();
    if (!end(**entry, block.id)) return refusal(block);
    Piece piece;
    take_out(**entry, piece);
    return piece;
}

// Ends the identity of this block, where it is one of the device. nullptr: nothing has changed. A release that is wrong
// ends nothing, so that a right one at the same moment succeeds.
[[gnu::always_inline]] inline LedgerEntry* Ledger::claim(const MemoryBlock& block, std::size_t device) {
    LedgerEntry* const entry = entries_.at(block.id);
    if (entry == nullptr || !entry->is(block.id) || !entry->is_of(device, first_base(block))) return nullptr;
    return entry->claim(block.id) ? entry : nullptr;
}

[[gnu::always_inline]] inline rules::Released Ledger::with_facts(const LedgerEntry& entry,
                                                                 rules::Released how) const noexcept {
    how.made_for_it = entry.may_be_kept;
    how.pooled = entry.pool() != nullptr;
    how.allocated_in_order = entry.allocated_in_order;
    how.bytes = entry.bytes();
    return how;
}

Piece* Ledger::park_at_once(const MemoryBlock& block, std::size_t device, rules::Released how,
                            std::uint64_t limit_bytes) {
    LedgerEntry* const entry = claim(block, device);
    if (entry == nullptr) return nullptr;
    if (rules::keeping(with_facts(*entry, how), limit_bytes) != rules::Keeping::keep) [[unlikely]] {
        entry->publish(block.id);
        return nullptr;
    }
    addresses_.note_parked();
    return entry;
}

Result<Piece*> Ledger::park(const MemoryBlock& block, std::size_t device, rules::Released how,
                            std::uint64_t limit_bytes) {
    const auto keeps = [&](const LedgerEntry& entry) {
        return rules::keeping(with_facts(entry, how), limit_bytes) == rules::Keeping::keep;
    };
    if (LedgerEntry* const entry = claim(block, device)) {
        if (!keeps(*entry)) return entry->publish(block.id), static_cast<Piece*>(nullptr);
        addresses_.note_parked();
        return static_cast<Piece*>(entry);
    }
    const std::lock_guard lock(mutex_);
    Result<LedgerEntry*> found = released(block, device);
    if (!found) return std::move(found).error();
    // Of what was put back, the lock guards all; any other piece is nobody else's once its identity has ended.
    LedgerEntry& entry = **found;
    const bool returned = entry.returned;
    if (!returned && !entry.claim(block.id)) return refusal(block);
    if (!keeps(entry)) {
        if (!returned) entry.publish(block.id);
        return static_cast<Piece*>(nullptr);
    }
    if (returned) {  // recorded anew, under its own word: without a record it is when it is handed out
        (void)end(entry, block.id);
        unmap(entry);
        (void)map(entry, entry.block, entry);
    }
    addresses_.note_parked();
    return static_cast<Piece*>(&entry);
}

bool Ledger::rest(Piece& piece, std::uint64_t id, rules::Released how, std::uint64_t limit_bytes) {
    auto& entry = static_cast<LedgerEntry&>(piece);
    if (!entry.is(id)) return false;
    if (rules::keeping(with_facts(entry, how), limit_bytes) != rules::Keeping::keep) return false;
    entry.word.store(id | identity::released, std::memory_order_relaxed);
    addresses_.note_parked();
    return true;
}

// Most are handed out as they were. false: revive_records() has the answer.
[[gnu::always_inline]] inline bool Ledger::renew_records(LedgerEntry& entry, const MemoryBlock& block) noexcept {
    const MemoryBlock& before = entry.block;
    const bool same = block.host == before.host && block.device == before.device && block.bytes == before.bytes &&
                      block.kind == before.kind;
    const OwnMemory* const own = entry.own();
    if (!same || own == nullptr || has_second_base(block) != static_cast<bool>(own->beside)) return false;
    using provenance::AddressMap;
    return AddressMap::renew(own->at, first_base(block), block.bytes, block.id) &&
           (!own->beside || AddressMap::renew(own->beside, block.device, block.bytes, block.id));
}

std::uint64_t Ledger::wake(Piece& parked, MemoryBlock& block) {
    auto& entry = static_cast<LedgerEntry&>(parked);
    block.id = LedgerEntries::next_id(entry);
    if (block.id == 0) return 0;
    if (!renew_records(entry, block) && !revive_records(entry, block)) return 0;
    entry.block.id = block.id;  // not its addresses, which others may read
    entry.block.bytes = block.bytes;
    entry.block.kind = block.kind;
    entry.publish(block.id);
    return block.id;
}

Piece* Ledger::park_again(std::size_t device, Piece& piece) {
    const std::lock_guard lock(mutex_);
    LedgerEntry* const entry = entries_.add();
    if (entry == nullptr) return nullptr;
    static_cast<Piece&>(*entry) = std::move(piece);
    entry->block.id = entry->id();
    entry->belongs_to(device, first_base(entry->block));
    addresses_.note_parked();
    (void)map(*entry, entry->block, *entry);  // without a record it is recorded when it is handed out
    return entry;
}

// Makes the parked records those of `block`. false: they are others.
bool Ledger::revive_records(LedgerEntry& entry, const MemoryBlock& block) {
    if (block.host != entry.block.host || block.device != entry.block.device) return false;
    if (PieceSlab* const slab = entry.slab()) {
        if (!entry.recorded || !addresses_.is_whole(slab->records) || block.bytes > slab->place_bytes) return false;
        entry.facts.store(facts_of(block, entry.owner_device()), std::memory_order_release);
        return true;
    }
    if (entry.own() == nullptr) return false;
    const provenance::Record record = record_of(block, entry.owner_device());
    const bool two = has_second_base(block);
    const OwnMemory& own = *entry.own();
    if (two != static_cast<bool>(own.beside) || !addresses_.revive(own.at, record)) return false;
    return !two || addresses_.revive(own.beside, at_device_address(record, block));
}

Piece Ledger::take_parked(Piece& parked) {
    const std::lock_guard lock(mutex_);
    Piece piece;
    take_out(static_cast<LedgerEntry&>(parked), piece);
    return piece;
}

void Ledger::exclude_from_cache(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    if (LedgerEntry* const entry = live(id)) entry->may_be_kept = false;
}

void Ledger::put_back(std::size_t device, Piece& piece) {
    const std::lock_guard lock(mutex_);
    LedgerEntry* const entry = entries_.add();
    if (entry == nullptr) return;
    static_cast<Piece&>(*entry) = std::move(piece);
    entry->belongs_to(device, first_base(entry->block));
    entry->returned = true;
    provenance::PlaceOwner& owner = words_.emplace_back();
    owner.word.store(entry->block.id, std::memory_order_release);
    returned_.emplace(entry->block.id, Returned{entry, &owner});
    (void)map(*entry, entry->block, *entry, owner);  // if the map cannot grow, the block can still be released
}

void Ledger::enter_unreturned(std::size_t device, Piece& piece) {
    const std::lock_guard lock(mutex_);
    LedgerEntry* const entry = entries_.add();
    if (entry == nullptr) return;
    const AdoptedPart& part = *piece.adopted();
    entry->belongs_to(device, address_of(part.pointer));
    piece.block = {entry->id(), part.pointer, 0, part.bytes, MemoryKind::host};
    entry->block = piece.block;
    (void)map(*entry, piece.block, *entry);
    entry->publish(piece.block.id);
}

void Ledger::leave_registered(const void* address, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    left_.push_back({address_of(address), address_of(address) + bytes - 1});
    any_left_.store(true, std::memory_order_release);
}

bool Ledger::left_registered(std::uint64_t address, std::size_t bytes) const {
    if (!any_left_.load(std::memory_order_acquire)) return false;
    const std::lock_guard lock(mutex_);
    return std::any_of(left_.begin(), left_.end(),
                       [&](const Range& one) { return address <= one.last && one.first < address + bytes; });
}

void Ledger::forget_foreign(const void* address) {
    const provenance::Record known = addresses_.find(address_of(address));
    if (known && (known.flags & provenance::record_flags::foreign) != 0) (void)addresses_.erase(known.base, known.id);
}

std::vector<Piece> Ledger::take_all(std::size_t device) {
    std::vector<Piece> pieces;
    const std::lock_guard lock(mutex_);
    entries_.for_each([&](LedgerEntry& entry) {
        if (entry.owner_device() != device || !entry.has_owner() ||
            !end(entry, entry.returned ? entry.block.id : entry.id()))
            return;
        take_out(entry, pieces.emplace_back());
    });
    return pieces;
}

PlacementReport Ledger::placement(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    const LedgerEntry* const entry = live(id);
    if (entry == nullptr) return {};
    if (entry->slab() != nullptr && entry->slab()->pages != nullptr) return entry->slab()->pages->report();
    if (entry->host_part() == nullptr) return {};
    const HostPart& part = *entry->host_part();
    return part.slabs ? *part.cut.report : part.pages.report();
}

Ledger::Origin Ledger::origin(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    const LedgerEntry* const entry = live(id);
    if (entry == nullptr) return {};
    const platform::Allocation allocation = entry->allocation();
    const std::uint64_t begin = allocation.bytes != 0 ? allocation.device : entry->block.device;
    return {true, entry->owner_device(), entry->shared_pool(), static_cast<std::size_t>(entry->block.device - begin)};
}

std::size_t Ledger::size() const {
    std::size_t live = 0;
    const std::lock_guard lock(mutex_);
    entries_.for_each([&](const LedgerEntry& entry) { live += entry.has_owner() ? 1u : 0u; });
    return live;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
