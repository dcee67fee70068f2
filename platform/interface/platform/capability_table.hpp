// SPDX-License-Identifier: Apache-2.0
// The capability table: the only place that states what the axes mean beyond the attributes, and which attribute
// decides each feature. Traits and rows are found by axes; a row is for display only.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/sharing_use.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace isthmus::platform {

// Where a value comes from that no attribute states.
enum class ValueOrigin : std::uint8_t {
    construction,  // it cannot be otherwise
    measured,      // on a machine of this class, which the source names
    documented,    // by the vendor
    reported,      // by others who measured it
    assumed,       // nothing is known: the source says what it was taken from
};
std::string_view name(ValueOrigin origin) noexcept;  // "assumed"

template <class T>
struct Sourced {
    T value{};
    ValueOrigin origin = ValueOrigin::assumed;
    std::string_view source;
};

// Whether the GPU caches such memory between accesses.
enum class GpuCaching : std::uint8_t {
    no,
    yes,
    by_node,   // if the NUMA node of the first physical page is the device's closest one (attribute 134)
    unproven,  // differs by machine or was never observed; a machine's record may say more
};
std::string_view name(GpuCaching caching) noexcept;

// When a launch prefetches managed memory.
enum class Prefetching : std::uint8_t {
    never,
    first_use,   // once: it gives the memory its pages
    after_host,  // before each first use after one by the host: it moves the pages back
};
std::string_view name(Prefetching prefetching) noexcept;

// From how many bytes on device memory with a copy at each hand-over is faster than access in place, for a device that
// makes this many passes or more, up to the next border of the list.
struct CopyBorder {
    int passes = 0;  // 0: an unused place in a list
    std::size_t from_bytes = 0;
    ValueOrigin origin = ValueOrigin::assumed;
    std::string_view source;
};
inline constexpr std::size_t most_borders = 4;
using CopyBorders = std::array<CopyBorder, most_borders>;  // ascending by passes; the first is unused: no copy pays
// The border for this many passes; nullptr: no copy pays at any size.
const CopyBorder* border_for(const CopyBorders& borders, int passes) noexcept;

// What is best for memory where the axes have these values. The policy uses it only if the capability bits allow it.
struct Traits {
    std::string_view axes;    // for people: which values
    std::string_view across;  // what a copy avoids: "the link"
    Sourced<GpuCaching> pinned_caching;
    Sourced<GpuCaching> registered_caching;
    Sourced<MemoryKind> shared_in_place;     // the best memory for both sides to use in place
    Sourced<MemoryKind> shared_for_latency;  // the same where latency matters
    Sourced<bool> near_device;               // host memory gains by lying on the device's closest node
    // From this many passes of the device on, host memory is not bound to a node, because bound pages do not migrate
    // to the GPU. 0: binding costs nothing.
    Sourced<int> migrates_from_passes;
    CopyBorders reads_copied;           // by the device's use
    CopyBorders writes_copied;          // both: the larger size of the two
    Sourced<Prefetching> prefetching;   // of managed memory, before a kernel
    Sourced<bool> write_combined_pays;  // write-combined memory is worth its restriction
    Sourced<bool> memory_info_counts;   // cuMemGetInfo states what can be allocated; otherwise /proc/meminfo does
};
inline constexpr std::size_t traits_count = 7;
const Traits& traits_at(std::size_t index) noexcept;  // index < traits_count
std::size_t index_of(const Traits& traits) noexcept;
// The traits for these axes; without ones made for them, those that promise the least.
const Traits& traits_of(Translation translation, MemoryModel memory) noexcept;
inline const Traits& traits_of(const Capabilities& capabilities) noexcept {
    return traits_of(capabilities.translation, capabilities.memory);
}

// A class of machines, for people: no decision reads it.
struct Row {
    Model model = Model::discrete;
    std::string_view meaning;   // one sentence
    std::string_view found_by;  // the axes that lead here
    std::string_view examples;
};
const Row& row(Model model) noexcept;
// The row for these axes; without one made for them, the weakest that fits.
const Row& row_of(Translation translation, MemoryModel memory) noexcept;
inline const Row& row_of(const Capabilities& capabilities) noexcept {
    return row_of(capabilities.translation, capabilities.memory);
}

// The attribute that decides a feature, and the meaning of its values. Sentences without their first subject: "the GPU
// reads …".
struct FeatureRow {
    Feature feature{};
    int attribute = 0;  // CUdevice_attribute
    std::string_view yes;
    std::string_view no;
};
const FeatureRow& feature_row(Feature feature) noexcept;

}  // namespace isthmus::platform
