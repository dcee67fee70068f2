// SPDX-License-Identifier: Apache-2.0
// Decisions about virtual memory.
#include "virtual_memory_rules.hpp"

#include <algorithm>
#include <limits>

namespace isthmus::rules {
namespace {

using Text = std::string_view;
using Where = MemoryPlace::Where;

constexpr MappingAnswer fine{};

MappingAnswer no(Code code, Text reason, Text remedy) noexcept {
    return {code, reason, remedy};
}

bool is_cpu(const Capabilities& device) noexcept {
    return device.memory == MemoryModel::host;
}

// The reason of the capability names the attribute that forbids it.
MappingAnswer lacks(const Capabilities& device, Feature feature, Text remedy) {
    return no(Code::unsupported, device.feature(feature).reason, remedy);
}

// The slots exist, and all of them have a page, or none.
MappingAnswer may_change_pages(const std::vector<bool>& mapped, std::size_t first, std::size_t count, bool have,
                               const MappingAnswer& otherwise) noexcept {
    if (first > mapped.size() || count > mapped.size() - first) {
        return no(Code::invalid_argument, "the range has fewer slots", "reserve a range with as many as it will need");
    }
    const auto begin = mapped.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    return std::find(begin, end, !have) == end ? fine : otherwise;
}

MappingAnswer may_use_for(const CreationFacts& facts, const CreationWish& wish) {
    const bool of_device = wish.where == Where::device;
    if (includes(wish.usage, PhysicalUsage::tile_pool) && (!of_device || !facts.sparse_arrays)) {
        return no(Code::unsupported,
                  of_device ? Text("this device has no sparse CUDA arrays (SPARSE_CUDA_ARRAY_SUPPORTED, attribute 112, "
                                   "is not 1)")
                            : Text("a tile pool is a device's own memory"),
                  "create it without PhysicalUsage::tile_pool");
    }
    if (includes(wish.usage, PhysicalUsage::hardware_decompress) && (!of_device || !facts.decompression)) {
        return no(Code::unsupported,
                  of_device ? Text("this device has no decompression engine (MEM_DECOMPRESS_ALGORITHM_MASK, attribute "
                                   "136, is 0)")
                            : Text("the decompression engine uses a device's own memory"),
                  "create it without PhysicalUsage::hardware_decompress, and decompress in a kernel");
    }
    return fine;
}

}  // namespace

std::optional<std::size_t> round_up(std::size_t bytes, std::size_t granularity) noexcept {
    if (granularity == 0 || bytes > std::numeric_limits<std::size_t>::max() - (granularity - 1)) return std::nullopt;
    return (bytes + granularity - 1) / granularity * granularity;
}

MappingAnswer may_reserve(const Capabilities& device, const CreationFacts& facts) {
    if (is_cpu(device)) {
        return no(Code::unsupported, "the CPU device has no virtual memory of its own: its memory is the system's",
                  "use GrowableBuffer or MirroredBuffer, which stand on reserved host addresses there");
    }
    if (!device.has(Feature::virtual_memory)) {
        return lacks(device, Feature::virtual_memory, "allocate buffers; they do not grow in place");
    }
    if (!facts.has_functions) {
        return no(Code::unsupported, "this driver lacks functions that virtual memory needs", "update the driver");
    }
    return fine;
}

MappingAnswer may_create(const Capabilities& device, const CreationFacts& facts, const CreationWish& wish) {
    if (MappingAnswer answer = may_reserve(device, facts); !answer) return answer;
    if (wish.where == Where::host && !device.has(Feature::host_virtual_memory)) {
        return lacks(device, Feature::host_virtual_memory, "create it on the device, or use pinned memory");
    }
    if (wish.where == Where::host_node && !device.has(Feature::host_numa_virtual_memory)) {
        return lacks(device, Feature::host_numa_virtual_memory,
                     "create it on the device, or use allocate_host with a node");
    }
    if (wish.where == Where::host && wish.exports != ExportKinds::none) {
        return no(Code::unsupported, "memory that lies anywhere on the host is not exported",
                  "name a node: MemoryPlace::Where::host_node");
    }
    if (includes(wish.exports, ExportKinds::posix_fd) && !device.has(Feature::export_posix_fd)) {
        return lacks(device, Feature::export_posix_fd, "create it without ExportKinds::posix_fd");
    }
    if (includes(wish.exports, ExportKinds::fabric) && !device.has(Feature::export_fabric)) {
        return lacks(device, Feature::export_fabric, "create it without ExportKinds::fabric");
    }
    if (wish.compressible && (wish.where != Where::device || !facts.compression)) {
        return no(
            Code::unsupported,
            wish.where == Where::device
                ? Text("this device compresses no memory (GENERIC_COMPRESSION_SUPPORTED, attribute 107, is not 1)")
                : Text("only a device's own memory is compressed"),
            "create it without compression");
    }
    if (wish.gpudirect_rdma && (wish.where != Where::device || !facts.rdma)) {
        return no(Code::unsupported,
                  wish.where == Where::device
                      ? Text("network cards cannot reach virtual memory of this device "
                             "(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, attribute 110, is not 1)")
                      : Text("GPUDirect RDMA is about a device's own memory"),
                  "create it without gpudirect_rdma, and let the network card use host memory");
    }
    return may_use_for(facts, wish);
}

MappingAnswer may_have_addresses(PhysicalUsage usage) noexcept {
    if (!includes(usage, PhysicalUsage::tile_pool)) return fine;
    return no(Code::unsupported, "a tile pool backs sparse CUDA arrays, and has no addresses of its own",
              "give its native_handle() to cuMemMapArrayAsync, or create memory without PhysicalUsage::tile_pool");
}

AccessAnswer may_export(ExportKinds fixed, ExportKinds asked) noexcept {
    if (asked == ExportKinds::none) {
        return {Verdict::no, "no kind of handle was named", "name ExportKinds::posix_fd or ExportKinds::fabric"};
    }
    if (includes(fixed, asked)) return {Verdict::yes, "the memory was created exportable like that", {}};
    return {Verdict::no, "what memory can be exported as is fixed at its creation, and it was created without this",
            "create it with PhysicalOptions::exports"};
}

MappingAnswer may_map(std::size_t reserved_bytes, std::size_t granularity, std::span<const MappedSpan> mapped,
                      const MappedSpan& wanted) noexcept {
    if (granularity == 0 || wanted.bytes == 0 || wanted.offset % granularity != 0 || wanted.bytes % granularity != 0) {
        return no(Code::invalid_argument, "the offset is not a multiple of the granularity",
                  "round it: memory_granularity() tells the granularity");
    }
    if (wanted.offset > reserved_bytes || wanted.bytes > reserved_bytes - wanted.offset) {
        return no(Code::invalid_argument, "the memory would reach beyond the end of the reservation",
                  "reserve more addresses; they cost nothing until memory is mapped");
    }
    const bool taken = std::any_of(mapped.begin(), mapped.end(), [&](const MappedSpan& other) {
        return other.offset < wanted.offset + wanted.bytes && wanted.offset < other.offset + other.bytes;
    });
    if (!taken) return fine;
    return no(Code::in_use, "something is mapped there already", "unmap it first, or take another offset");
}

MappingAnswer may_map_pages(const std::vector<bool>& mapped, std::size_t first, std::size_t count) noexcept {
    return may_change_pages(mapped, first, count, false,
                            no(Code::in_use, "a page is mapped in one of the slots", "unmap it first"));
}

MappingAnswer may_unmap_pages(const std::vector<bool>& mapped, std::size_t first, std::size_t count) noexcept {
    return may_change_pages(mapped, first, count, true,
                            no(Code::invalid_argument, "no page is mapped in one of the slots",
                               "PagedRange::page() tells which slots have one"));
}

MappingAnswer may_free(std::size_t mappings) noexcept {
    if (mappings == 0) return fine;
    return no(Code::in_use, "memory is still mapped in the reservation",
              "unmap every Mapping first, or let them go out of scope: the last one frees the addresses");
}

MappingAnswer may_let_in(const Grantee& who, bool memory_on_host, RangeAccess access) noexcept {
    if (!who.same_runtime) {
        return no(Code::wrong_device, "a device of another runtime was to be let into a mapping",
                  "name a device of the runtime that the reservation belongs to");
    }
    if (who.is_cpu) {
        if (!memory_on_host) {
            return no(Code::unsupported, "the CPU is let into memory that lies on the host only",
                      "create the memory with MemoryPlace::Where::host, or copy");
        }
        if (access == RangeAccess::read) {
            return no(Code::unsupported, "the host is let in for reading and writing, or not at all",
                      "let it in with RangeAccess::read_write");
        }
        return fine;
    }
    if (!who.has_virtual_memory) {
        return no(Code::unsupported, "this device has no virtual memory, so that nothing can be mapped for it",
                  "copy into memory of that device");
    }
    if (!who.reaches && access != RangeAccess::none) {
        return no(Code::unsupported, "no link lets this device reach the memory of the other one",
                  "copy between them; the driver stages where there is no direct way");
    }
    return fine;
}

AccessAnswer mapped_access(const RangeFacts& range, bool writes) noexcept {
    if (!range.mapped) {
        return {Verdict::no, "no memory is mapped at part of this range", "map memory there, or name a smaller range"};
    }
    if (range.lies == RangeFacts::multicast) {
        return {Verdict::no, "a multicast object is mapped there, which only multimem instructions may touch",
                "pass Mapping::address() as a number to a kernel that uses them"};
    }
    switch (range.access) {
        case RangeAccess::none: break;
        case RangeAccess::read:
            if (!writes) return {Verdict::yes, "the device was let into this range for reading", {}};
            return {Verdict::no, "the device was let into this range for reading only",
                    "let it in with RangeAccess::read_write, or let the kernel take a const view"};
        case RangeAccess::read_write: return {Verdict::yes, "the device was let into this range", {}};
    }
    return {Verdict::no, "memory is mapped there, but this device was not let in",
            "let it in with Mapping::set_access, or, for a growable buffer, with GrowableOptions::also"};
}

GrowableAnswer growable_base(const Capabilities& device, const CreationFacts& facts, const CreationWish& wish) {
    const bool plain = wish.exports == ExportKinds::none && !wish.compressible && !wish.gpudirect_rdma;
    if (is_cpu(device)) {
        if (wish.where == Where::host_node) {
            return {GrowableBase::refused, "growable memory of the CPU device is not bound to a node",
                    "use allocate_host with a HostPlacement, which does not grow"};
        }
        if (!plain) {
            return {GrowableBase::refused, "growable memory of the CPU device is neither compressed nor exported",
                    "make it without these options"};
        }
        return {GrowableBase::reserved_host,
                "host addresses are reserved, and memory is put there as the buffer grows",
                {}};
    }
    const MappingAnswer created = may_create(device, facts, wish);
    if (created) {
        return {GrowableBase::mapped, "addresses are reserved, and memory is mapped there as the buffer grows", {}};
    }
    // Ordinary host memory is used instead where the device's memory is host memory, or host memory was requested.
    const bool uses_host = device.memory == MemoryModel::shared_dram || wish.where == Where::host;
    if (plain && wish.where != Where::host_node && uses_host && device.has(Feature::pageable_access)) {
        return {GrowableBase::reserved_host,
                "the device uses ordinary host memory, which is put at reserved addresses as the buffer grows",
                {}};
    }
    return {GrowableBase::refused, created.reason, created.remedy};
}

MappingAnswer may_stripe(const Capabilities& owner, const CreationFacts& facts, const CreationWish& wish) {
    if (wish.where != Where::device) {
        return no(Code::invalid_argument, "memory on the host is not laid over devices",
                  "leave GrowableOptions::stripe empty, or let the memory lie on devices");
    }
    if (is_cpu(owner)) {
        return no(Code::unsupported, "the CPU device has no memory of its own to map: its memory is the system's",
                  "name GPUs only, or leave GrowableOptions::stripe empty");
    }
    return may_create(owner, facts, wish);
}

std::optional<std::size_t> growth_step(GrowthSteps steps, std::size_t mapped, std::size_t needed, std::size_t reserved,
                                       std::size_t granularity, std::size_t devices) noexcept {
    if (needed <= mapped) return 0;
    std::optional<std::size_t> least = round_up(needed - mapped, granularity);
    if (!least || mapped > reserved || *least > reserved - mapped) return std::nullopt;
    if (steps == GrowthSteps::doubling) least = std::min(std::max(*least, mapped), reserved - mapped);
    return std::min(round_up(*least, devices * granularity).value_or(reserved), reserved - mapped);
}

std::vector<std::size_t> handles_of_step(std::size_t bytes, std::size_t granularity, std::size_t devices) {
    const std::size_t granules = bytes / granularity;
    std::vector<std::size_t> handles(std::min(devices, granules), granules / devices * granularity);
    for (std::size_t at = 0; at < granules % devices; ++at) handles[at] += granularity;
    return handles;
}

std::size_t handles_kept(std::span<const std::size_t> handle_bytes, std::size_t kept_bytes) noexcept {
    std::size_t kept = 0;
    std::size_t bytes = 0;
    while (kept < handle_bytes.size() && bytes < kept_bytes) bytes += handle_bytes[kept++];
    return kept;
}

}  // namespace isthmus::rules
