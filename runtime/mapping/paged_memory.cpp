// SPDX-License-Identifier: Apache-2.0
// Pages of a pool, and mapping them into ranges.
#include "paged_memory.hpp"

#include "composed.hpp"
#include "mapping_errors.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

Result<void> PagedPoolState::grow(std::size_t pages_added) {
    std::vector<std::shared_ptr<PhysicalState>> added;
    added.reserve(pages_added);
    while (added.size() < pages_added) {
        Result<std::shared_ptr<PhysicalState>> page = PhysicalState::create(device, page_bytes, page_bytes, {});
        if (!page) {
            for (const std::shared_ptr<PhysicalState>& each : added) each->release_now();
            return std::move(page).error();
        }
        added.push_back(std::move(page).value());
    }
    const std::lock_guard lock(mutex);
    free.reserve(pages + pages_added);
    pages += pages_added;
    free.insert(free.end(), added.begin(), added.end());
    return {};
}

Result<std::vector<Page>> PagedPoolState::take(std::size_t count) {
    std::vector<std::shared_ptr<PhysicalState>> taken;
    {
        const std::lock_guard lock(mutex);
        if (count > free.size()) return make_error<errors::pool_without_free_pages>(count, free.size(), pages);
        taken.assign(free.end() - static_cast<std::ptrdiff_t>(count), free.end());
        free.resize(free.size() - count);
    }
    std::vector<Page> made;
    made.reserve(count);
    for (std::shared_ptr<PhysicalState>& each : taken) {
        made.emplace_back(std::make_shared<PageState>(weak_from_this().lock(), std::move(each)));
    }
    return made;
}

void PagedPoolState::give_back(std::shared_ptr<PhysicalState> memory) noexcept {
    const std::lock_guard lock(mutex);
    free.push_back(std::move(memory));
}

std::size_t PagedPoolState::trim() {
    std::vector<std::shared_ptr<PhysicalState>> freed;  // ends without the lock
    const std::lock_guard lock(mutex);
    freed.assign(free.begin(), free.end());
    free.clear();
    pages -= freed.size();
    return freed.size();
}

Result<void> PagedMemory::map(std::size_t first, std::span<const Page> pages) {
    Result<std::vector<CallInFlight>> calls = enter_all(pool->devices, "mapping pages");
    if (!calls) return std::move(calls).error();
    std::vector<std::shared_ptr<MappingState>> added;
    added.reserve(pages.size());
    Result<void> open;
    for (std::size_t at = 0; at < pages.size() && open; ++at) {
        // Refers to the whole page, so that it is not free before it is unmapped.
        const std::shared_ptr<PhysicalState> memory(pages[at].state(), pages[at].state()->memory.get());
        Result<std::shared_ptr<MappingState>> mapping = reservation_->map((first + at) * pool->page_bytes, memory);
        if (mapping) {
            added.push_back(std::move(mapping).value());
        } else {
            open = std::move(mapping).error();
        }
    }
    if (open) open = MappingState::set_access_entered(added, pool->devices, RangeAccess::read_write);
    if (!open) {  // a mapping that the driver does not undo now ends itself
        for (const std::shared_ptr<MappingState>& mapping : added) (void)mapping->unmap_entered();
        return open;
    }
    for (std::size_t at = 0; at < pages.size(); ++at) slots_[first + at] = {pages[at], std::move(added[at])};
    return open;
}

Result<void> PagedMemory::unmap(std::size_t first, std::size_t count) {
    Result<std::vector<CallInFlight>> calls = enter_all(pool->devices, "unmapping pages");
    if (!calls) return std::move(calls).error();
    for (std::size_t slot = first; slot < first + count; ++slot) {
        if (Result<void> undone = slots_[slot].mapping->unmap_entered(); !undone) return undone;
        slots_[slot] = {};
    }
    return {};
}

std::vector<bool> PagedMemory::mapped() const {
    std::vector<bool> found(slots_.size());
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) found[slot] = slots_[slot].mapping != nullptr;
    return found;
}

std::size_t PagedMemory::usable_bytes() const {
    const auto gap =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.mapping == nullptr; });
    const std::size_t bytes = static_cast<std::size_t>(gap - slots_.begin()) * pool->page_bytes;
    return bytes / element_bytes * element_bytes;
}

std::vector<const PageState*> PagedMemory::held() const {
    std::vector<const PageState*> found;
    for (const Slot& slot : slots_) {
        if (slot.page) found.push_back(slot.page.state().get());
    }
    return found;
}

void PagedMemory::end() {
    for (Slot& slot : slots_) slot = {};
    reservation_.reset();
    ended = true;
}

MemoryBlock PagedMemory::block() const {
    MemoryBlock block;
    block.id = reservation_->id;
    block.device = reservation_->base;
    block.bytes = reservation_->bytes;
    block.kind = kind;
    return block;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
