// SPDX-License-Identifier: Apache-2.0
// Ledger: records pieces, removes them, and finds the error for a wrong release.
#include "ledger.hpp"

#include "process.hpp"
#include "provenance_errors.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

std::atomic<std::uint64_t> first_free_id{1};

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

}  // namespace

AdoptedPart::AdoptedPart(void* memory, std::size_t length, Release release, isthmus_adopt_callbacks c_release)
    : pointer(memory),
      bytes(length),
      release_(std::move(release)),
      c_release_(c_release),
      generation_(process::generation()) {}

AdoptedPart::~AdoptedPart() {
    if (told_ || generation_ != process::generation()) return;
    if (release_) release_(pointer, bytes);
    if (c_release_.release != nullptr) c_release_.release(c_release_.context, pointer, bytes);
}

std::uint64_t reserve_ids(std::uint64_t count) noexcept {
    return first_free_id.fetch_add(count, std::memory_order_relaxed);
}

std::uint64_t Ledger::next_id() {
    constexpr std::uint64_t many = 4096;
    if (next_ > last_) {
        next_ = reserve_ids(many);
        last_ = next_ + many - 1;
        if (!ours_.empty() && ours_.back().last + 1 == next_) {
            ours_.back().last = last_;
        } else {
            ours_.push_back({next_, last_});
        }
    }
    return next_++;
}

bool Ledger::handed_out(std::uint64_t id) const {
    const auto behind = std::upper_bound(ours_.begin(), ours_.end(), id,
                                         [](std::uint64_t wanted, const Range& range) { return wanted < range.first; });
    if (behind == ours_.begin()) return false;
    const Range& range = *(behind - 1);
    return id <= range.last && (range.last != last_ || id < next_);
}

// A record at addresses that the driver has just handed out is stale: foreign memory that other code freed unnoticed,
// or memory of a context that died.
Result<void> Ledger::insert(const provenance::Record& record) {
    Result<void> inserted = addresses_.insert(record);
    for (int attempt = 0; !inserted && inserted.code() == Code::invalid_argument && attempt < 4; ++attempt) {
        std::vector<provenance::Record> stale;
        addresses_.for_each([&](const provenance::Record& known) {
            if (known.base < record.base + record.bytes && record.base < known.base + known.bytes) {
                stale.push_back(known);
            }
        });
        if (stale.empty()) return inserted;
        for (const provenance::Record& known : stale) (void)addresses_.erase(known.base, known.id);
        inserted = addresses_.insert(record);
    }
    return inserted;
}

Result<void> Ledger::map(const MemoryBlock& block, std::size_t device) {
    provenance::Record record;
    record.base = first_base(block);
    record.bytes = block.bytes;
    record.id = block.id;
    record.device = static_cast<std::uint32_t>(device);
    record.kind = block.kind;
    if (Result<void> inserted = insert(record); !inserted) return inserted;
    if (!has_second_base(block)) return {};
    record.base = block.device;
    record.flags = provenance::record_flags::device_address;
    Result<void> inserted = insert(record);
    if (!inserted) (void)addresses_.erase(first_base(block), block.id);
    return inserted;
}

void Ledger::unmap(const MemoryBlock& block) {
    (void)addresses_.erase(first_base(block), block.id);
    if (has_second_base(block)) (void)addresses_.erase(block.device, block.id);
}

Result<std::uint64_t> Ledger::enter(const MemoryBlock& fresh, std::size_t device, Piece& piece) {
    MemoryBlock block = fresh;
    const std::lock_guard lock(mutex_);
    block.id = next_id();
    if (Result<void> mapped = map(block, device); !mapped) return std::move(mapped).error();
    entries_.emplace(block.id, Entry{block, device, std::move(piece)});
    return block.id;
}

Result<void> Ledger::refuse_overlap(const MemoryBlock& block) const {
    bool taken = false;
    addresses_.for_each([&](const provenance::Record& known) {
        const auto meets = [&](std::uint64_t base) {
            return base != 0 && known.base < base + block.bytes && base < known.base + known.bytes;
        };
        const bool ours = (known.flags & provenance::record_flags::foreign) == 0;
        taken = taken || (ours && (meets(address_of(block.host)) || meets(block.device)));
    });
    if (!taken) return {};
    return make_error<errors::adopted_memory_overlaps>();
}

Result<std::uint64_t> Ledger::enter_adopted(const MemoryBlock& fresh, std::size_t device, Piece& piece) {
    MemoryBlock block = fresh;
    const std::lock_guard lock(mutex_);
    if (Result<void> free = refuse_overlap(block); !free) return std::move(free).error();
    block.id = next_id();
    if (Result<void> mapped = map(block, device); !mapped) return std::move(mapped).error();
    entries_.emplace(block.id, Entry{block, device, std::move(piece)});
    return block.id;
}

std::uint64_t Ledger::enter_users(const MemoryBlock& fresh, std::size_t device) {
    MemoryBlock block = fresh;
    const std::lock_guard lock(mutex_);
    block.id = next_id();
    provenance::Record record;
    record.base = first_base(block);
    record.bytes = block.bytes;
    record.id = block.id;
    record.device = static_cast<std::uint32_t>(device);
    record.kind = block.kind;
    const provenance::Record known = addresses_.find(record.base);
    if (known && (known.flags & provenance::record_flags::foreign) != 0) (void)addresses_.erase(known.base, known.id);
    (void)addresses_.insert(record);  // refused where the memory is a part of memory that is recorded already
    entries_.emplace(block.id, Entry{block, device, {}});
    return block.id;
}

Result<void> Ledger::resize(std::uint64_t id, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return make_error<errors::resizing_unknown_memory>();
    MemoryBlock& block = found->second.block;
    MemoryBlock resized = block;
    resized.bytes = bytes;
    unmap(block);
    if (Result<void> mapped = map(resized, found->second.device); !mapped) {
        // Restores the old record; its addresses are still free.
        (void)map(block, found->second.device);
        return mapped;
    }
    block = resized;
    return {};
}

void Ledger::leave(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    unmap(found->second.block);
    entries_.erase(found);
}

// The error for a block that is not recorded. Expects mutex_ to be held.
Error Ledger::refusal(const MemoryBlock& block) const {
    const std::string base = hex_base(block);
    if (handed_out(block.id)) return make_error<errors::block_released_before>(base, block.id);
    if (block.id != 0 && block.id < first_free_id.load(std::memory_order_relaxed)) {
        return make_error<errors::block_of_another_runtime>(base, block.id);
    }
    const provenance::Record known = addresses_.find(first_base(block));
    if (known && (known.flags & provenance::record_flags::foreign) == 0 && known.base != first_base(block)) {
        return make_error<errors::block_within_another>(base, block.id);
    }
    if (known) return make_error<errors::block_known_by_address_alone>(base, block.id);
    return make_error<errors::block_is_unknown>(base, block.id);
}

Result<Piece> Ledger::take(const MemoryBlock& block, std::size_t device) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(block.id);
    if (found == entries_.end()) return refusal(block);
    Entry& entry = found->second;
    const std::uint64_t offset = first_base(block) - first_base(entry.block);
    if (offset != 0) {
        const bool within = offset < entry.block.bytes;
        if (within) return make_error<errors::block_address_within_it>(hex_base(block), block.id);
        return make_error<errors::block_of_another_address>(hex_base(block), block.id);
    }
    if (entry.device != device) return make_error<errors::block_of_another_device>(hex_base(block), block.id);
    unmap(entry.block);
    Piece piece = std::move(entry.piece);
    piece.block = entry.block;
    entries_.erase(found);
    return piece;
}

void Ledger::exclude_from_cache(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(id); found != entries_.end()) found->second.piece.may_be_kept = false;
}

void Ledger::put_back(std::size_t device, Piece& piece) {
    const std::lock_guard lock(mutex_);
    const MemoryBlock block = piece.block;
    (void)map(block, device);  // if the map cannot grow, the block can still be released by its identity
    entries_.emplace(block.id, Entry{block, device, std::move(piece)});
}

void Ledger::enter_unreturned(std::size_t device, Piece& piece) {
    const std::lock_guard lock(mutex_);
    piece.block = {next_id(), piece.adopted->pointer, 0, piece.adopted->bytes, MemoryKind::host};
    (void)map(piece.block, device);
    entries_.emplace(piece.block.id, Entry{piece.block, device, {}});
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
    for (auto entry = entries_.begin(); entry != entries_.end();) {
        if (entry->second.device != device) {
            ++entry;
            continue;
        }
        unmap(entry->second.block);
        pieces.push_back(std::move(entry->second.piece));
        entry = entries_.erase(entry);
    }
    return pieces;
}

PlacementReport Ledger::placement(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end() || !found->second.piece.host_part) return {};
    const HostPart& part = *found->second.piece.host_part;
    return part.slabs ? *part.cut.report : part.pages.report();
}

Ledger::Origin Ledger::origin(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return {};
    const Piece& piece = found->second.piece;
    const std::uint64_t begin = piece.allocation.bytes != 0 ? piece.allocation.device : found->second.block.device;
    return {true, found->second.device, piece.pool, static_cast<std::size_t>(found->second.block.device - begin)};
}

std::size_t Ledger::size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
