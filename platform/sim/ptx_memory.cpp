// SPDX-License-Identifier: Apache-2.0
// What a kernel from PTX may access, by provenance and the machine's facts.
#include "blocks.hpp"
#include "ptx_kernels.hpp"
#include "textures.hpp"
#include "updates.hpp"
#include "written_bytes.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

namespace isthmus::sim {
namespace {

constexpr std::uint64_t page_bytes = 4096;

std::string in_hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(value));
    return text;
}

// For messages: the allocation with the smallest distance to the address.
std::string nearest_allocation(const Driver& d, std::uint64_t address) {
    const Region* best = nullptr;
    std::uint64_t best_distance = ~std::uint64_t{0};
    for (const Region* const region : d.regions.all()) {
        const std::uint64_t end = region->base + region->bytes;
        const std::uint64_t distance = address < region->base ? region->base - address
                                       : address >= end       ? address - end
                                                              : 0;
        if (distance >= best_distance) continue;
        best = region;
        best_distance = distance;
    }
    if (best == nullptr) return "there is no allocation";
    const std::string place = address < best->base                 ? std::to_string(best_distance) + " bytes before "
                              : address < best->base + best->bytes ? "in "
                                                                   : std::to_string(best_distance) + " bytes behind ";
    return "it lies " + place + "the nearest allocation (" + std::string(name(best->kind)) + ", " +
           std::to_string(best->bytes) + " bytes at " + in_hex(best->base) + ")";
}

// Of system memory: nullptr, or why an access to it is illegal.
const char* what_is_wrong_with(const Driver& d, std::uint64_t address) {
    for (const Region* const region : d.regions.all()) {
        const auto host = reinterpret_cast<std::uint64_t>(region->host);
        if (region->kind != Kind::mapping && address - host < region->mapped_bytes && address - host >= region->bytes) {
            return "it leaves its allocation";
        }
    }
    char byte = 0;
    const iovec to = {&byte, 1}, from = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), 1};
    return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == 1 ? nullptr : "nothing is mapped there";
}

}  // namespace

ptx::MemoryWindow PtxMemory::window(std::uint64_t address, std::uint32_t bytes, bool writes) {
    ptx::MemoryWindow out;
    const std::lock_guard lock(d_.mutex);
    if (heap_region(d_, agent_.context, address)) return heap_window(address, bytes);
    const GpuAccess access = check_gpu_access(d_, agent_, address, bytes, writes);
    if (!access.allowed) {
        out.refusal = access.reason + "; " + nearest_allocation(d_, address);
        return out;
    }
    const Found found = d_.regions.find(address);
    const bool as_system_memory = !found || (found.by_host_name && d_.fact(agent_.device, attribute::pageable) != 0);
    if (as_system_memory) {
        const char* const why = what_is_wrong_with(d_, address);
        if (why != nullptr) {
            out.refusal = std::string(why) + "; " + nearest_allocation(d_, address);
            return out;
        }
        // Only this page is known; a fault in it is the kernel's.
        out.begin = address & ~(page_bytes - 1);
        out.size_bytes = page_bytes;
        out.host = reinterpret_cast<std::byte*>(out.begin);
        return out;
    }
    const Region& region = *found.region;
    const std::size_t usable = region.usable_bytes(found.offset_bytes);
    if (usable < bytes) {  // it continues in the next mapping
        out.begin = address;
        out.size_bytes = bytes;
        out.host = static_cast<std::byte*>(access.pointer);
        return out;
    }
    const std::size_t before = found.offset_bytes - region.first_byte(found.offset_bytes);
    out.begin = address - before;
    out.size_bytes = before + usable;
    if (const std::optional<BlockInUse> block = block_in_use(d_, address)) {  // no more of the mapping than that
        const std::uint64_t end = std::min<std::uint64_t>(out.begin + out.size_bytes, block->first + block->bytes);
        out.begin = std::max<std::uint64_t>(out.begin, block->first);
        out.size_bytes = static_cast<std::size_t>(end - out.begin);
    }
    out.host = static_cast<std::byte*>(access.pointer) - (address - out.begin);
    out.whole_updates = updates_are_whole(d_, agent_.device, region);
    out.written = written_bytes::of(out.host);
    return out;
}

// What malloc() gave, and no more. Requires the driver's mutex.
ptx::MemoryWindow PtxMemory::heap_window(std::uint64_t address, std::uint32_t bytes) {
    ptx::MemoryWindow out;
    const Region& region = *heap_region(d_, agent_.context, address);
    const HeapPlaces& places = heap_of(d_, agent_.context)->places;
    const HeapPlaces::Block block = places.around(address - region.base);
    const std::uint64_t behind = address - region.base - block.offset + bytes;
    if (block.bytes == 0) {
        out.refusal = "it is in the heap of kernels: " + places.described(address - region.base, region.base);
    } else if (behind > block.bytes) {
        out.refusal = "it leaves the " + std::to_string(block.bytes) + " bytes that malloc() gave at " +
                      in_hex(region.base + block.offset);
    }
    if (!out.refusal.empty()) return out;
    out.begin = region.base + block.offset;
    out.size_bytes = block.bytes;
    out.host = static_cast<std::byte*>(region.host) + block.offset;
    out.written = written_bytes::of(out.host);
    return out;
}

std::uint64_t PtxMemory::allocate(std::uint64_t bytes) {
    const std::lock_guard lock(d_.mutex);
    KernelHeap* const heap = make_heap(d_, agent_.context, agent_.device);
    const std::size_t offset = heap ? heap->places.take(bytes) : HeapPlaces::none;
    if (offset == HeapPlaces::none) return 0;
    const Region& region = *d_.regions.find_id(heap->region);
    written_bytes::unwritten(static_cast<std::byte*>(region.host) + offset, bytes);
    return region.base + offset;
}

std::string PtxMemory::release(std::uint64_t address) {
    const std::lock_guard lock(d_.mutex);
    const Region* const region = heap_region(d_, agent_.context, address);
    if (!region) return "it is no memory of the heap of kernels";
    return heap_of(d_, agent_.context)->places.give_back(address - region->base);
}

ptx::SurfaceBytes PtxMemory::surface(std::uint64_t handle) {
    ptx::SurfaceBytes out;
    const std::lock_guard lock(d_.mutex);
    const auto* const surface = reinterpret_cast<const Surface*>(static_cast<std::uintptr_t>(handle));
    if (!d_.surfaces.alive(surface)) {
        out.refusal = "it is no surface object, or it was destroyed";
        return out;
    }
    const Array* const array = surface->resource.from.array;
    const Region* const region = d_.arrays.alive(array) ? d_.regions.find_id(array->region) : nullptr;
    if (region == nullptr) out.refusal = "its array was destroyed";
    if (region != nullptr && region->device != agent_.device) out.refusal = "its array belongs to another device";
    if (!out.refusal.empty()) return out;
    const ArrayDescription3D& a = array->description;
    if (element_bytes_of(a.format, a.channels) == 0) {
        out.is_modelled = false;
        out.refusal = "surfaces of whole NV12 arrays are not modelled";
        return out;
    }
    out.host = static_cast<std::byte*>(region->host) + array->offset_bytes;
    out.written = written_bytes::of(out.host);
    out.row_bytes = a.width * element_bytes_of(a.format, a.channels);
    out.rows = rows_of(a);
    out.layers = layers_of(a);
    out.format = format_of(a.format, a.channels);
    out.layered = (a.flags & array_flag::layered) != 0;
    out.dimensions = dimensions_of(a);
    return out;
}

std::uint64_t PtxMemory::update(void* word, std::uint32_t bytes, ptx::Update& update) {
    return play_update(d_, agent_.device, word, bytes, update);
}

void PtxMemory::print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void PtxMemory::uninitialised(std::string_view text, std::uint64_t address) {
    std::string where;
    {
        const std::lock_guard lock(d_.mutex);
        where = d_.regions.find(address) ? "; " + nearest_allocation(d_, address) : "";
    }
    say("%.*s%s", static_cast<int>(text.size()), text.data(), where.c_str());
}

void PtxMemory::pause() {
    sched_yield();
}

bool PtxMemory::set_condition(std::uint64_t handle, std::uint32_t value) {
    const std::lock_guard lock(d_.mutex);
    if (handle == 0 || handle > d_.conditions.size()) return false;
    d_.conditions[handle - 1]->store(value, std::memory_order_relaxed);
    return true;
}

}  // namespace isthmus::sim
