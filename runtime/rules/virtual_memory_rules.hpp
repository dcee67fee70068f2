// SPDX-License-Identifier: Apache-2.0
// Which virtual memory may be created, mapped, accessed and freed, and how a buffer grows in it. Pure.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/memory_place.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace isthmus::rules {

// Yes (Code::ok), or the reason for a refusal. Texts have static storage, or belong to the capabilities.
struct MappingAnswer {
    Code code = Code::ok;
    std::string_view reason;
    std::string_view remedy;
    explicit operator bool() const noexcept { return code == Code::ok; }
};

// nullopt: larger than an address space, or a granularity of 0.
std::optional<std::size_t> round_up(std::size_t bytes, std::size_t granularity) noexcept;

// Facts about a device that no Feature states.
struct CreationFacts {
    bool has_functions = false;  // the driver has all functions that virtual memory needs
    bool compression = false;    // attribute 107
    bool rdma = false;           // attribute 110: GPUDirect RDMA with virtual memory
    bool sparse_arrays = false;  // attribute 112
    bool decompression = false;  // attribute 136 is not 0: there is a decompression engine
};
struct CreationWish {
    MemoryPlace::Where where = MemoryPlace::Where::device;
    ExportKinds exports = ExportKinds::none;
    bool compressible = false;
    bool gpudirect_rdma = false;
    PhysicalUsage usage = PhysicalUsage::none;
};
// V1, V4, V5: checked before the driver is called.
MappingAnswer may_reserve(const Capabilities& device, const CreationFacts& facts);
MappingAnswer may_create(const Capabilities& device, const CreationFacts& facts, const CreationWish& wish);
// `fixed`: the kinds chosen at creation.
AccessAnswer may_export(ExportKinds fixed, ExportKinds asked) noexcept;

// [offset, offset + bytes) of a reservation.
struct MappedSpan {
    std::size_t offset = 0;
    std::size_t bytes = 0;
};
// `mapped`: the present mappings, in any order.
MappingAnswer may_map(std::size_t reserved_bytes, std::size_t granularity, std::span<const MappedSpan> mapped,
                      const MappedSpan& wanted) noexcept;
MappingAnswer may_free(std::size_t mappings) noexcept;
// Memory with this usage, at addresses: a tile pool has none.
MappingAnswer may_have_addresses(PhysicalUsage usage) noexcept;

// Pages in slots of a range, of which `mapped` says which have one.
MappingAnswer may_map_pages(const std::vector<bool>& mapped, std::size_t first, std::size_t count) noexcept;
MappingAnswer may_unmap_pages(const std::vector<bool>& mapped, std::size_t first, std::size_t count) noexcept;

// A device that is to get access to a mapping.
struct Grantee {
    bool same_runtime = true;
    bool is_cpu = false;
    bool has_virtual_memory = false;  // for a GPU
    bool reaches = false;             // for a GPU: the memory is its own, the host's, or of a device that it reaches
};
MappingAnswer may_let_in(const Grantee& who, bool memory_on_host, RangeAccess access) noexcept;

// Facts about a range, for one device.
struct RangeFacts {
    bool mapped = false;                     // all of it
    RangeAccess access = RangeAccess::none;  // the least access of its mappings
    static constexpr int on_host = -1;
    static constexpr int in_several = -2;
    static constexpr int multicast = -3;  // at least a part of it is a multicast object
    int lies = in_several;                // Device::index() of the memory's owner, or one of these constants
};
// V8, V9. `writes`: a kernel that only reads needs less.
AccessAnswer mapped_access(const RangeFacts& range, bool writes) noexcept;

// The memory that a growable buffer uses.
enum class GrowableBase : std::uint8_t { mapped, reserved_host, refused };
struct GrowableAnswer {
    GrowableBase base = GrowableBase::refused;
    std::string_view reason;
    std::string_view remedy;
};
GrowableAnswer growable_base(const Capabilities& device, const CreationFacts& facts, const CreationWish& wish);

// May handles of a growable buffer use memory of this device, in turn with others?
MappingAnswer may_stripe(const Capabilities& owner, const CreationFacts& facts, const CreationWish& wish);

enum class GrowthSteps : std::uint8_t { doubling, exact };
// Size in bytes of the next step, so that `needed` bytes are mapped: a multiple of the granularity that fits into the
// reservation. Doubling: at least as much as is mapped so far. Over several devices: the same amount for each, where
// that fits. 0: nothing is missing. nullopt: it does not fit.
std::optional<std::size_t> growth_step(GrowthSteps steps, std::size_t mapped, std::size_t needed, std::size_t reserved,
                                       std::size_t granularity, std::size_t devices = 1) noexcept;
// Sizes in bytes of the handles of one step: one per device, as equal as the granularity allows, the larger ones first;
// none is empty. `bytes` is a multiple of the granularity.
std::vector<std::size_t> handles_of_step(std::size_t bytes, std::size_t granularity, std::size_t devices);
// The number of handles, oldest first, that stay when `kept_bytes` are to stay.
std::size_t handles_kept(std::span<const std::size_t> handle_bytes, std::size_t kept_bytes) noexcept;

}  // namespace isthmus::rules
