// SPDX-License-Identifier: Apache-2.0
// The states of a paged pool, of its pages, and of a range into which pages are mapped.
#pragma once

#include <isthmus/mapping/paged_pool.hpp>

#include "buffer_memory.hpp"
#include "virtual_memory_state.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Thread-safe.
struct PagedPoolState : std::enable_shared_from_this<PagedPoolState> {
    PagedPoolState(std::shared_ptr<DeviceState> owner, std::size_t bytes, std::size_t unit, DeviceStates let_in)
        : device(std::move(owner)), page_bytes(bytes), granularity(unit), devices(std::move(let_in)) {}

    // One driver call a page. On an error nothing has changed.
    Result<void> grow(std::size_t pages);
    Result<std::vector<Page>> take(std::size_t count);
    void give_back(std::shared_ptr<PhysicalState> memory) noexcept;
    std::size_t trim();

    const std::shared_ptr<DeviceState> device;
    const std::size_t page_bytes;
    const std::size_t granularity;
    const DeviceStates devices;  // with access to the ranges

    mutable std::mutex mutex;  // guards the members below
    std::size_t pages = 0;
    std::vector<std::shared_ptr<PhysicalState>> free;  // has room for all pages: giving back allocates nothing
};

// One page while something refers to it: a Page, or a mapping, which lives until the driver has unmapped it.
struct PageState {
    PageState(std::shared_ptr<PagedPoolState> owner, std::shared_ptr<PhysicalState> taken)
        : pool(std::move(owner)), memory(std::move(taken)) {}
    ~PageState() { pool->give_back(std::move(memory)); }
    PageState(const PageState&) = delete;
    PageState& operator=(const PageState&) = delete;

    const std::shared_ptr<PagedPoolState> pool;
    std::shared_ptr<PhysicalState> memory;
};

// Not thread-safe: only the range's owner maps and unmaps.
class PagedMemory final : public BufferMemory {
public:
    PagedMemory(std::shared_ptr<PagedPoolState> from, std::shared_ptr<ReservationState> where, std::size_t slots,
                std::size_t element)
        : pool(std::move(from)), element_bytes(element), reservation_(std::move(where)), slots_(slots) {
        kind = MemoryKind::vmm;
    }
    ~PagedMemory() override { end(); }

    // On an error nothing has changed.
    Result<void> map(std::size_t first, std::span<const Page> pages);
    // Expects that nothing uses the pages. After an error the slots before the failing one are unmapped.
    Result<void> unmap(std::size_t first, std::size_t count);
    std::vector<bool> mapped() const;  // by slot
    // Whole elements from the beginning to the first slot without a page.
    std::size_t usable_bytes() const;
    std::size_t slots() const noexcept { return slots_.size(); }
    Page page(std::size_t slot) const noexcept { return slot < slots_.size() ? slots_[slot].page : Page(); }
    std::vector<const PageState*> held() const;  // the pages that are mapped, each once

    // Each mapping ends itself: it retries a failed undo, and defers it behind captures and running services.
    void end() override;
    MemoryBlock block() const override;

    const std::shared_ptr<PagedPoolState> pool;
    const std::size_t element_bytes;
    std::weak_ptr<BufferState> buffer;

private:
    struct Slot {
        Page page;
        std::shared_ptr<MappingState> mapping;  // refers to the page, too
    };
    std::shared_ptr<ReservationState> reservation_;
    std::vector<Slot> slots_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
