// SPDX-License-Identifier: Apache-2.0
// LedgerEntries: chunks of entries, numbered across the process.
#include "ledger_entries.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// docs/performance.md has what a small buffer takes.
static_assert(sizeof(LedgerEntry) == 72);

std::atomic<std::uint64_t> first_free_id{1};
std::atomic<std::uint64_t> first_free_chunk{0};

}  // namespace

std::uint64_t reserve_ids(std::uint64_t count) noexcept {
    return identity::no_entry | first_free_id.fetch_add(count, std::memory_order_relaxed);
}

bool LedgerEntries::grow() {
    constexpr std::uint64_t end = identity::one_owner / per_chunk;
    const std::uint64_t chunk = first_free_chunk.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= end) {
        first_free_chunk.store(end, std::memory_order_relaxed);
        return false;
    }
    chunks_.push_back(std::make_unique<Chunk>());
    Chunk& made = *chunks_.back();
    enter_in_directory(chunk, &made);              // it may throw; an entry is nobody's until it is taken
    for (std::size_t at = per_chunk; at-- > 0;) {  // in this order, so that the first entry is taken first
        LedgerEntry& entry = made[at];
        entry.word.store(identity::released | (chunk * per_chunk + at), std::memory_order_relaxed);
        add_free(entry);
    }
    return true;
}

// Each store is a release: who finds a chunk finds its entries. An older directory lacks chunks, but only such that
// were made after it was replaced, none of whose identities its reader can have.
void LedgerEntries::enter_in_directory(std::uint64_t number, Chunk* chunk) {
    const Directory* const old = directories_.empty() ? nullptr : directories_.back().get();
    const std::uint64_t first = old != nullptr ? old->first : number;
    const auto place = static_cast<std::size_t>(number - first);
    if (old == nullptr || place >= old->size) {
        constexpr std::size_t least = 64;
        auto larger = std::make_unique<Directory>(first, std::max(least, std::bit_ceil(place + 1)));
        for (std::size_t at = 0; old != nullptr && at < old->size; ++at) {
            larger->chunks[at].store(old->chunks[at].load(std::memory_order_relaxed), std::memory_order_relaxed);
        }
        directories_.push_back(std::move(larger));
    }
    const Directory& newest = *directories_.back();
    newest.chunks[place].store(chunk, std::memory_order_release);
    directory_.store(&newest, std::memory_order_release);
}

LedgerEntry* LedgerEntries::add() {
    if (free_ == nullptr && !grow()) return nullptr;
    LedgerEntry* const entry = free_;
    free_ = reinterpret_cast<LedgerEntry*>(entry->first.load(std::memory_order_relaxed));
    const std::uint64_t last = entry->word.load(std::memory_order_relaxed);
    entry->word.store(last + identity::one_owner, std::memory_order_relaxed);
    return entry;
}

void LedgerEntries::remove(LedgerEntry& entry) noexcept {
    static_cast<Piece&>(entry) = {};
    entry.word.store(entry.id() | identity::released, std::memory_order_relaxed);
    entry.returned = false;
    if (identity::owner(entry.id()) == identity::last_owner) return;  // never used again
    add_free(entry);
}

bool LedgerEntries::handed_out(std::uint64_t id) const noexcept {
    if ((id & identity::no_entry) != 0 || identity::owner(id) == 0) return false;
    const LedgerEntry* const entry = at(id);
    return entry != nullptr && identity::owner(id) <= identity::owner(entry->id());
}

bool LedgerEntries::handed_out_somewhere(std::uint64_t id) noexcept {
    if ((id & identity::no_entry) != 0) {
        return (id & ~identity::no_entry) < first_free_id.load(std::memory_order_relaxed);
    }
    return identity::owner(id) != 0 &&
           identity::number(id) / per_chunk < first_free_chunk.load(std::memory_order_relaxed);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
