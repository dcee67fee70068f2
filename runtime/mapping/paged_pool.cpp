// SPDX-License-Identifier: Apache-2.0
// PagedPool and PagedRange: validation; what they do is in paged_memory.cpp.
#include <isthmus/mapping/paged_pool.hpp>

#include <isthmus/device.hpp>

#include "buffer_state.hpp"
#include "composed.hpp"
#include "growable_memory.hpp"
#include "mapping_errors.hpp"
#include "memory_errors.hpp"
#include "paged_memory.hpp"
#include "wait_pause.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace {

constexpr std::string_view making = "making a paged pool";

bool too_many(std::size_t pages, std::size_t page_bytes) {
    return pages > detail::max_physical_bytes / page_bytes;
}

}  // namespace

std::size_t Page::references() const noexcept {
    return static_cast<std::size_t>(state_.use_count());
}

Result<PagedPool> PagedPool::create(const Device& device, std::size_t pages, const PagedPoolOptions& options) {
    const std::shared_ptr<detail::DeviceState>& owner = device.state();
    if (Result<void> now = detail::may_change_memory(*owner, making); !now) return std::move(now).error();
    const rules::MappingAnswer answer =
        rules::may_create(owner->capabilities, detail::creation_facts(*owner), detail::creation_wish({}));
    if (!answer) return detail::refusal(answer, making);
    if (Result<void> named = detail::check_also(*owner, options.also, "a paged pool"); !named) {
        return std::move(named).error();
    }
    Result<detail::DeviceStates> let_in =
        detail::let_into(owner, detail::request_of(*owner, 0, {}).place, options.also);
    if (!let_in) return std::move(let_in).error();
    Result<platform::Granularity> granularity = detail::ask_granularity(*owner, {});
    if (!granularity) return std::move(granularity).error();
    const std::size_t unit = granularity->minimum_bytes;
    const std::optional<std::size_t> page_bytes = rules::round_up(std::max<std::size_t>(options.page_bytes, 1), unit);
    if (!page_bytes || too_many(pages, *page_bytes)) {
        return make_error<errors::allocation_larger_than_any_machine>(options.page_bytes);
    }
    PagedPool pool(std::make_shared<detail::PagedPoolState>(owner, *page_bytes, unit, std::move(let_in).value()));
    if (Result<void> grown = pool.state_->grow(pages); !grown) return std::move(grown).error();
    return pool;
}

std::size_t PagedPool::page_bytes() const noexcept {
    return state_ ? state_->page_bytes : 0;
}
std::size_t PagedPool::pages() const noexcept {
    if (!state_) return 0;
    const std::lock_guard lock(state_->mutex);
    return state_->pages;
}
std::size_t PagedPool::free_pages() const noexcept {
    if (!state_) return 0;
    const std::lock_guard lock(state_->mutex);
    return state_->free.size();
}

Result<void> PagedPool::grow(std::size_t pages) {
    constexpr std::string_view what = "growing a paged pool";
    if (!state_) return make_error<errors::paged_pool_moved_from>(what);
    if (Result<void> now = detail::may_change_memory(*state_->device, what); !now) return now;
    if (too_many(pages, state_->page_bytes)) return make_error<errors::allocation_larger_than_any_machine>(pages);
    return state_->grow(pages);
}

std::size_t PagedPool::trim() {
    return state_ ? state_->trim() : 0;
}

Result<std::vector<Page>> PagedPool::take(std::size_t count) {
    if (!state_) return make_error<errors::paged_pool_moved_from>("taking pages");
    return state_->take(count);
}

namespace detail {
namespace {

bool belongs(const std::shared_ptr<BufferState>& state, const PagedMemory* memory) {
    return state && memory != nullptr && !memory->ended && memory->buffer.lock() == state;
}

Result<void> check_pages(const PagedMemory& memory, std::span<const Page> pages) {
    std::vector<const PageState*> all = memory.held();
    for (const Page& page : pages) {
        if (!page) return make_error<errors::mapping_no_page>();
        if (page.state()->pool != memory.pool) return make_error<errors::page_of_another_pool>();
        all.push_back(page.state().get());
    }
    std::sort(all.begin(), all.end(), std::less<>());
    if (std::adjacent_find(all.begin(), all.end()) == all.end()) return {};
    return make_error<errors::page_twice_in_a_range>();
}

Result<void> may_unmap(BufferState& buffer) {
    DeviceState& device = *buffer.device;
    const rules::Bar bar = device.bar(rules::PublicCall::unmap);
    if (bar == rules::Bar::capture_elsewhere) return make_error<errors::unmapping_pages_in_capture>();
    if (bar != rules::Bar::none) return device.refusal(rules::PublicCall::unmap, "unmapping pages");
    if (buffer.in_graphs()) return make_error<errors::unmapping_pages_of_graph>();
    if (buffer.views.has_parts()) return make_error<errors::unmapping_pages_with_parts>();
    return {};
}

void adopt_size(BufferState& buffer, const PagedMemory& memory) {
    const std::lock_guard lock(buffer.views);
    buffer.memory.change_size(memory.usable_bytes());
}

}  // namespace

Result<MadePagedRange> create_paged_range(const PagedPool& pool, std::size_t slots, std::size_t element_bytes) {
    constexpr std::string_view what = "reserving a paged range";
    const std::shared_ptr<PagedPoolState>& from = pool.state();
    if (!from) return make_error<errors::paged_pool_moved_from>(what);
    if (Result<void> now = may_change_memory(*from->device, what); !now) return std::move(now).error();
    if (slots == 0 || too_many(slots, from->page_bytes)) return make_error<errors::paged_range_size>(slots);
    Result<std::shared_ptr<ReservationState>> where =
        ReservationState::reserve(from->device, slots * from->page_bytes, 0, from->granularity);
    if (!where) return std::move(where).error();
    auto memory = std::make_shared<PagedMemory>(from, std::move(where).value(), slots, element_bytes);
    memory->reason = "pages of a pool are mapped at reserved addresses";
    NewBuffer buffer(from->device);
    lay_over(buffer, memory);
    std::shared_ptr<BufferState> state = buffer.make();
    memory->buffer = state;
    return MadePagedRange{std::move(state), std::move(memory)};
}

Result<void> map_pages(const std::shared_ptr<BufferState>& state, PagedMemory* memory, std::size_t first,
                       std::span<const Page> pages) {
    constexpr std::string_view what = "mapping pages";
    if (!belongs(state, memory)) return make_error<errors::growable_buffer_is_empty>(what);
    if (Result<void> now = may_change_memory(*state->device, what); !now) return now;
    const rules::MappingAnswer answer = rules::may_map_pages(memory->mapped(), first, pages.size());
    if (!answer) return refusal(answer, composed("mapping {} pages at slot {}", pages.size(), first));
    if (Result<void> fine = check_pages(*memory, pages); !fine) return fine;
    if (pages.empty()) return {};
    if (Result<void> mapped = memory->map(first, pages); !mapped) return mapped;
    adopt_size(*state, *memory);
    return {};
}

Result<void> unmap_pages(const std::shared_ptr<BufferState>& state, PagedMemory* memory, std::size_t first,
                         std::size_t count, Wait wait) {
    if (!belongs(state, memory)) return make_error<errors::growable_buffer_is_empty>("unmapping pages");
    BufferState& buffer = *state;
    if (Result<void> can = may_unmap(buffer); !can) return can;
    const rules::MappingAnswer answer = rules::may_unmap_pages(memory->mapped(), first, count);
    if (!answer) return refusal(answer, composed("unmapping {} pages at slot {}", count, first));
    if (count == 0) return {};
    if (Result<void> alone = buffer.begin_release(); !alone) return alone;
    Result<void> unmapped = buffer.wait_until_unused(Deadline(wait, buffer.device->config->wait_timeout));
    if (unmapped) {
        unmapped = memory->unmap(first, count);
        adopt_size(buffer, *memory);
    }
    buffer.views.release_failed();
    return unmapped;
}

std::size_t slots_of(const PagedMemory* memory) noexcept {
    return memory != nullptr ? memory->slots() : 0;
}

Page page_in(const PagedMemory* memory, std::size_t slot) noexcept {
    return memory != nullptr ? memory->page(slot) : Page();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
