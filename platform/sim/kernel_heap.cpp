// SPDX-License-Identifier: Apache-2.0
#include "kernel_heap.hpp"

#include "allocate.hpp"
#include "written_bytes.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace isthmus::sim {
namespace {

constexpr int heap_limit = 2;  // CU_LIMIT_MALLOC_HEAP_SIZE
constexpr std::size_t first_bytes = std::size_t{8} << 20;

std::size_t rounded(std::size_t bytes) {
    return (std::max<std::size_t>(bytes, 1) + HeapPlaces::unit - 1) / HeapPlaces::unit * HeapPlaces::unit;
}

}  // namespace

std::size_t HeapPlaces::take(std::size_t bytes) {
    if (bytes > none - 2 * unit - header) return none;
    const std::size_t needed = rounded(bytes) + header;
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
        const auto [offset, room] = *gap;
        if (room < needed) continue;
        gaps_.erase(gap);
        if (room > needed) gaps_.emplace(offset + needed, room - needed);
        blocks_.emplace(offset + header, bytes);
        given_back_.erase(given_back_.lower_bound(offset), given_back_.lower_bound(offset + needed));
        return offset + header;
    }
    return none;
}

std::string HeapPlaces::give_back(std::size_t offset) {
    const auto block = blocks_.find(offset);
    if (block == blocks_.end()) {
        if (given_back_.count(offset) != 0) return "it was freed already";
        const Block around_it = around(offset);
        return around_it.bytes != 0 ? "it lies " + std::to_string(offset - around_it.offset) +
                                          " bytes within what malloc() gave; free() takes its first byte"
                                    : "malloc() did not give it";
    }
    given_back_.emplace(*block);
    std::size_t first = offset - header, bytes = rounded(block->second) + header;
    blocks_.erase(block);
    const auto next = gaps_.lower_bound(first);
    if (next != gaps_.end() && next->first == first + bytes) {
        bytes += next->second;
        gaps_.erase(next);
    }
    auto before = gaps_.lower_bound(first);
    if (before != gaps_.begin() && (--before)->first + before->second == first) {
        before->second += bytes;
    } else {
        gaps_.emplace(first, bytes);
    }
    return {};
}

HeapPlaces::Block HeapPlaces::around(std::size_t offset) const {
    auto block = blocks_.upper_bound(offset);
    if (block == blocks_.begin()) return {};
    --block;
    return offset - block->first < block->second ? Block{block->first, block->second} : Block{};
}

std::string HeapPlaces::described(std::size_t offset, std::uint64_t base) const {
    const auto name = [&](const std::pair<const std::size_t, std::size_t>& block) {
        char text[80];
        std::snprintf(text, sizeof text, "the %zu bytes that malloc() gave at %#llx", block.second,
                      static_cast<unsigned long long>(base + block.first));
        return std::string(text);
    };
    const auto freed = given_back_.upper_bound(offset);
    if (freed != given_back_.begin() && offset - std::prev(freed)->first < std::prev(freed)->second) {
        return "free() took back " + name(*std::prev(freed));
    }
    const auto block = blocks_.upper_bound(offset);
    if (block == blocks_.begin()) return "malloc() gave nothing there";
    const std::size_t end = std::prev(block)->first + std::prev(block)->second;
    return "it lies " + std::to_string(offset - end) + " bytes behind " + name(*std::prev(block));
}

KernelHeap* heap_of(Driver& d, const Context* context) {
    const auto found = d.heaps.find(context);
    return found == d.heaps.end() ? nullptr : &found->second;
}

KernelHeap* make_heap(Driver& d, const Context* context, int device) {
    if (KernelHeap* const known = heap_of(d, context)) return known;
    const auto limit = context->limits.find(heap_limit);
    const std::size_t bytes = limit != context->limits.end() ? limit->second : first_bytes;
    if (!has_room(d, device, bytes)) return nullptr;
    Region* const region = map_region(d, Kind::heap, device, const_cast<Context*>(context), bytes);
    if (!region) return nullptr;
    region->closed = true;
    d.protection.close(region->host, region->mapped_bytes, device, Why::device_memory);
    d.devices[static_cast<std::size_t>(device)].used_bytes += bytes;
    return &d.heaps.try_emplace(context, region->id, bytes).first->second;
}

void forget_heap(Driver& d, const Context* context) {
    d.heaps.erase(context);
}

Region* heap_region(Driver& d, const Context* context, Address address) {
    const KernelHeap* const heap = heap_of(d, context);
    Region* const region = heap ? d.regions.find_id(heap->region) : nullptr;
    return region && address >= region->base && address - region->base < region->bytes ? region : nullptr;
}

}  // namespace isthmus::sim
