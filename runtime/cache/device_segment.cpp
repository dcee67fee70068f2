// SPDX-License-Identifier: Apache-2.0
// DeviceSegment: the driver's calls round SegmentMap.
#include "device_segment.hpp"

#include <algorithm>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Addresses cost nothing (observed: 4 TiB are reserved in 5 µs): twice the memory, so that holes between blocks leave
// room for large ones.
constexpr std::uint64_t addresses_for_memory = 2;

platform::PhysicalRequest handle_of(platform::Driver& driver, std::size_t bytes) {
    platform::PhysicalRequest request;
    request.place = {MemoryPlace::Where::device, driver.facts().ordinal};
    request.bytes = bytes;
    return request;
}

}  // namespace

platform::Status DeviceSegment::begin() {
    const platform::Status unsupported{Code::unsupported, 0, "cuMemAddressReserve"};
    platform::VirtualMemory* const memory = driver_.virtual_memory();
    if (!enabled_ || refused_ || memory == nullptr) return unsupported;
    if (map_) return {};
    platform::Granularity granularity;
    if (!memory->granularity(handle_of(driver_, 0), granularity).ok()) return unsupported;
    const std::uint64_t granule = granularity.minimum_bytes;
    if (granule == 0 || granule % SegmentMap::block_unit != 0) return refused_ = true, unsupported;
    const std::uint64_t total = driver_.facts().total_memory_bytes * addresses_for_memory;
    const std::uint64_t bytes = std::max(total - total % granule, granule);
    std::uint64_t base = 0;
    if (!memory->reserve(static_cast<std::size_t>(bytes), 0, base).ok()) return refused_ = true, unsupported;
    map_.emplace(bytes, granule);
    reserved_bytes_ = bytes;
    base_.store(base, std::memory_order_release);
    end_.store(base + bytes, std::memory_order_release);
    return {};
}

bool DeviceSegment::owns(std::uint64_t address) const noexcept {
    return address < end_.load(std::memory_order_acquire) && address >= base_.load(std::memory_order_acquire);
}

platform::Status DeviceSegment::allocate(std::size_t bytes, platform::Allocation& out) {
    const std::lock_guard lock(mutex_);
    if (const platform::Status begun = begin(); !begun.ok()) return begun;
    const std::optional<OffsetRange> block = map_->take(bytes);
    if (!block) return {Code::unsupported, 0, "cuMemMap"};
    for (const OffsetRange& run : map_->missing(*block)) {
        if (const platform::Status mapped = map(run); !mapped.ok()) {
            const OffsetRange idle = map_->idle(map_->give_back(block->first).value_or(OffsetRange{}));
            unmap(idle);
            return mapped;
        }
    }
    out = {MemoryKind::device, nullptr, base_.load(std::memory_order_relaxed) + block->first, bytes};
    driver_.memory().lend(out.device, bytes, platform::StreamHandle::none);
    return {};
}

// A handle is released as soon as it is mapped: from then on the mapping holds the memory.
platform::Status DeviceSegment::map(const OffsetRange& run) {
    platform::VirtualMemory& memory = *driver_.virtual_memory();
    const auto granule = static_cast<std::size_t>(map_->granule_bytes());
    const std::uint64_t first = base_.load(std::memory_order_relaxed) + run.first;
    platform::Status status;
    std::uint64_t mapped = 0;
    while (status.ok() && mapped < run.bytes) {
        platform::PhysicalHandle handle = platform::PhysicalHandle::none;
        status = memory.create(handle_of(driver_, granule), handle);
        if (!status.ok()) break;
        status = memory.map(first + mapped, granule, handle);
        if (status.ok()) mapped += granule;
        const platform::Status released = memory.release(handle);
        if (status.ok()) status = released;
    }
    const platform::AccessGrant grant{{MemoryPlace::Where::device, driver_.facts().ordinal}, RangeAccess::read_write};
    if (status.ok()) status = memory.set_access(first, static_cast<std::size_t>(run.bytes), &grant, 1);
    if (status.ok()) {
        map_->now_mapped(run);
    } else if (mapped != 0 && !memory.unmap(first, static_cast<std::size_t>(mapped)).ok()) {
        // Mapped, and accessible to nobody: no later block may lie there.
        map_->abandon({run.first, mapped});
    }
    return status;
}

void DeviceSegment::unmap(const OffsetRange& run) noexcept {
    if (run.bytes == 0) return;
    const std::uint64_t first = base_.load(std::memory_order_relaxed) + run.first;
    if (driver_.virtual_memory()->unmap(first, static_cast<std::size_t>(run.bytes)).ok()) map_->now_unmapped(run);
}

platform::Status DeviceSegment::release(const platform::Allocation& block) {
    const std::lock_guard lock(mutex_);
    const platform::Status unknown{Code::invalid_argument, 0, "cuMemUnmap"};
    if (!map_) return unknown;
    const std::optional<OffsetRange> freed = map_->give_back(block.device - base_.load(std::memory_order_relaxed));
    if (!freed) return unknown;
    driver_.memory().lend(block.device, 0, platform::StreamHandle::none);
    unmap(map_->idle(*freed));
    return {};
}

void DeviceSegment::trim() noexcept {
    const std::lock_guard lock(mutex_);
    if (!map_) return;
    for (const OffsetRange& run : map_->all_idle()) unmap(run);
}

bool DeviceSegment::fits_within(std::size_t bytes, std::uint64_t most) const {
    const std::lock_guard lock(mutex_);
    if (!map_) return true;
    const std::optional<std::uint64_t> growth = map_->growth(bytes);
    // Where it fits nowhere, allocate() says so: less kept memory is no help.
    return !growth || *growth == 0 || map_->mapped_bytes() + *growth <= most;
}

std::uint64_t DeviceSegment::mapped_bytes() const {
    const std::lock_guard lock(mutex_);
    return map_ ? map_->mapped_bytes() : 0;
}

void DeviceSegment::end() noexcept {
    const std::lock_guard lock(mutex_);
    if (!map_) return;
    platform::VirtualMemory& memory = *driver_.virtual_memory();
    const std::uint64_t base = base_.load(std::memory_order_relaxed);
    for (const OffsetRange& run : map_->all_mapped())
        (void)memory.unmap(base + run.first, static_cast<std::size_t>(run.bytes));
    (void)memory.free_address(base, static_cast<std::size_t>(reserved_bytes_));
    map_.reset();
    refused_ = true;
    end_.store(0, std::memory_order_release);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
