// SPDX-License-Identifier: Apache-2.0
// Paged memory, as key-value caches need it: a PagedPool of equal physical pages, and PagedRanges, buffers into whose
// addresses pages are mapped. A page may be mapped in several ranges (a common prefix of several sequences); it returns
// to its pool when the last range and the last Page give it up.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/export.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

class Device;

struct PagedPoolOptions {
    std::size_t page_bytes = 0;            // at least; rounded up to the granularity. 0: the granularity
    std::vector<const Device*> also = {};  // further devices with access to the ranges
};

namespace detail {
class PagedMemory;
struct PageState;
struct PagedPoolState;
struct MadePagedRange {
    std::shared_ptr<BufferState> state;
    std::shared_ptr<PagedMemory> memory;
};
}  // namespace detail

// A reference to one page of a pool; copies are further references. Thread-safe as a shared_ptr is. Its content is what
// was written last through any range: a page that comes from the pool is not cleared.
class ISTHMUS_API Page {
public:
    Page() = default;  // no page
    explicit operator bool() const noexcept { return state_ != nullptr; }
    bool operator==(const Page&) const = default;  // the same page
    std::size_t references() const noexcept;       // Page objects and mappings of it; a snapshot

    const std::shared_ptr<detail::PageState>& state() const noexcept { return state_; }
    explicit Page(std::shared_ptr<detail::PageState> state) noexcept : state_(std::move(state)) {}

private:
    std::shared_ptr<detail::PageState> state_;
};

// Physical pages of one device's memory. A handle: copies name the same pool, which lives as long as one of its pages.
// Thread-safe.
class ISTHMUS_API PagedPool {
public:
    // With this many pages, created at once: one driver call each; 0: grow() creates them. Errors: unsupported (the
    // device does not map memory, or a device in `also` does not reach it), invalid_argument (more than any machine
    // has; a null device), wrong_device (a device of another runtime), out_of_memory, capture_error (a capture is open
    // on this thread), device_lost. After an error no page is left.
    static Result<PagedPool> create(const Device& device, std::size_t pages, const PagedPoolOptions& options = {});

    std::size_t page_bytes() const noexcept;
    std::size_t pages() const noexcept;       // of which exist
    std::size_t free_pages() const noexcept;  // of which no Page and no range holds
    // Adds pages. Errors as create(); after an error the pool has as many pages as before.
    Result<void> grow(std::size_t pages);
    // Frees the memory of the free pages; returns their number. Where a capture is open, the memory is freed behind it.
    std::size_t trim();
    // Takes `count` free pages, or none. Error: out_of_memory (so many are not free).
    Result<std::vector<Page>> take(std::size_t count);

    const std::shared_ptr<detail::PagedPoolState>& state() const noexcept { return state_; }

private:
    explicit PagedPool(std::shared_ptr<detail::PagedPoolState> state) noexcept : state_(std::move(state)) {}
    std::shared_ptr<detail::PagedPoolState> state_;
};

namespace detail {
ISTHMUS_API Result<MadePagedRange> create_paged_range(const PagedPool& pool, std::size_t slots,
                                                      std::size_t element_bytes);
ISTHMUS_API Result<void> map_pages(const std::shared_ptr<BufferState>& state, PagedMemory* memory, std::size_t first,
                                   std::span<const Page> pages);
ISTHMUS_API Result<void> unmap_pages(const std::shared_ptr<BufferState>& state, PagedMemory* memory, std::size_t first,
                                     std::size_t count, Wait wait);
ISTHMUS_API std::size_t slots_of(const PagedMemory* memory) noexcept;
ISTHMUS_API Page page_in(const PagedMemory* memory, std::size_t slot) noexcept;
}  // namespace detail

// Addresses for a number of pages, the slots. A TypedBuffer, usable wherever a Buffer is: in launches of every mode,
// copies, fills, graphs and parts. size() counts the elements from the first slot to the first one without a page; what
// is mapped behind a gap becomes part of the buffer when the gap is closed. Elements may cross pages: addresses do not
// stop between them. Movable; released as a Buffer, which unmaps its pages. Mapping and unmapping belong to the owner,
// as for GrowableBuffer: no other thread may use this object meanwhile. Device work and graphs may, because nothing
// that they use moves.
//
// Two ranges that share a page are two buffers of the same memory (V12): the order of work on one says nothing about
// the other. Use one stream, or events, between a kernel that writes a shared page and one that reads it elsewhere.
template <class T>
class PagedRange : public TypedBuffer<T> {
public:
    PagedRange() = default;
    // Reserves the addresses; they cost no memory. Errors: invalid_argument (no slots, or more than any machine has),
    // out_of_memory, capture_error (a capture is open on this thread), device_lost.
    static Result<PagedRange> create(const PagedPool& pool, std::size_t slots) {
        Result<detail::MadePagedRange> made = detail::create_paged_range(pool, slots, sizeof(T));
        if (!made) return std::move(made).error();
        return PagedRange(std::move(*made));
    }

    std::size_t slots() const noexcept { return detail::slots_of(memory_.get()); }
    // The page in this slot; empty: none.
    Page page(std::size_t slot) const noexcept { return detail::page_in(memory_.get(), slot); }

    // Maps the pages in consecutive slots: one driver call each, and one that lets all devices in. Errors, with which
    // nothing has changed: invalid_argument (a slot that does not exist; a page of another pool), in_use (a page is
    // mapped in a slot; a page would be mapped twice in this range; a service runs: the driver might wait for it),
    // invalid_handle (an empty Page; the range was moved from or released), capture_error (a capture is open on this
    // thread), device_lost, out_of_memory.
    Result<void> map(std::size_t first_slot, std::span<const Page> pages) {
        Result<void> done = detail::map_pages(this->state(), memory_.get(), first_slot, pages);
        this->size_changed();
        return done;
    }
    Result<void> map(std::size_t slot, const Page& page) { return map(slot, {&page, 1}); }
    // Unmaps these slots, each of which has a page, and gives up their references. Waits for work that uses the range.
    // Errors: invalid_argument (a slot that does not exist, or has no page), in_use (a graph uses the range, parts of
    // it were made, a service runs), timed_out, not_ready, capture_error (any capture is open), invalid_handle,
    // device_lost. With these nothing has changed; after another error of the driver fewer pages may be mapped.
    Result<void> unmap(std::size_t first_slot, std::size_t count = 1, Wait wait = {}) {
        Result<void> done = detail::unmap_pages(this->state(), memory_.get(), first_slot, count, wait);
        this->size_changed();
        return done;
    }

private:
    explicit PagedRange(detail::MadePagedRange made)
        : TypedBuffer<T>(std::move(made.state)), memory_(std::move(made.memory)) {}
    std::shared_ptr<detail::PagedMemory> memory_;
};

}  // namespace v0
}  // namespace isthmus
