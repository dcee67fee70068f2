// SPDX-License-Identifier: Apache-2.0
// LedgerEntries: chunks of entries, numbered across the process.
#include "ledger_entries.hpp"

#include <atomic>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

static_assert(sizeof(LedgerEntry) <= 192, "three lines for each allocation");

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
    if (chunks_.empty()) first_chunk_ = chunk;
    chunks_.resize(chunk - first_chunk_ + 1);
    chunks_.back() = std::make_unique<Chunk>();
    for (std::size_t at = per_chunk; at-- > 0;) {  // in this order, so that the first entry is taken first
        LedgerEntry& entry = (*chunks_.back())[at];
        entry.id = chunk * per_chunk + at;
        entry.next_free = std::exchange(free_, &entry);
    }
    return true;
}

LedgerEntry* LedgerEntries::add() {
    if (free_ == nullptr && !grow()) return nullptr;
    LedgerEntry* const entry = free_;
    free_ = entry->next_free;
    entry->id.store(entry->id.load(std::memory_order_relaxed) + identity::one_owner, std::memory_order_relaxed);
    return entry;
}

bool LedgerEntries::renew(LedgerEntry& entry) noexcept {
    const std::uint64_t last = entry.id.load(std::memory_order_relaxed);
    if (identity::owner(last) == identity::last_owner) return false;
    entry.id.store(last + identity::one_owner, std::memory_order_relaxed);
    return true;
}

void LedgerEntries::remove(LedgerEntry& entry) noexcept {
    static_cast<Piece&>(entry) = {};
    entry.state = LedgerEntry::State::free;
    entry.at = {};
    entry.beside = {};
    if (identity::owner(entry.id) == identity::last_owner) return;  // never used again
    entry.next_free = std::exchange(free_, &entry);
}

LedgerEntry* LedgerEntries::at(std::uint64_t id) const noexcept {
    const std::uint64_t chunk = identity::number(id) / per_chunk - first_chunk_;  // below the first: beyond all
    if (chunk >= chunks_.size() || !chunks_[chunk]) return nullptr;
    return &(*chunks_[chunk])[identity::number(id) % per_chunk];
}

bool LedgerEntries::handed_out(std::uint64_t id) const noexcept {
    if ((id & identity::no_entry) != 0 || identity::owner(id) == 0) return false;
    const LedgerEntry* const entry = at(id);
    return entry != nullptr && identity::owner(id) <= identity::owner(entry->id);
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
