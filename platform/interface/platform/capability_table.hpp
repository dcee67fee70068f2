// SPDX-License-Identifier: Apache-2.0
// The capability table: the only place that states what a row means beyond its attributes, and which attribute decides
// each feature. Rows are found by axes; a row's name is for display only.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstddef>
#include <string_view>

namespace isthmus::platform {

// A value that no attribute states, with its source.
template <class T>
struct Sourced {
    T value{};
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

struct Row {
    Model model = Model::discrete;
    std::string_view meaning;   // one sentence
    std::string_view found_by;  // the axes that lead here
    std::string_view examples;
    Sourced<GpuCaching> pinned_caching;
    Sourced<GpuCaching> registered_caching;
    // The best memory for both sides to use in place. The policy uses it only if the capability bits allow it.
    Sourced<MemoryKind> shared_in_place;
    Sourced<MemoryKind> shared_for_latency;
    Sourced<bool> near_device;  // host memory gains by lying on the device's closest node
    Sourced<bool> copy_pays;    // the device gains by a copy in its own memory, if the buffer is long enough
    // Minimum size in bytes for that, by the device's use between two hand-overs, because a copy costs time. 0: never
    // pays.
    Sourced<std::size_t> reads_once_copied_from_bytes;
    Sourced<std::size_t> writes_once_copied_from_bytes;
    Sourced<std::size_t> reads_often_copied_from_bytes;
    Sourced<std::size_t> writes_often_copied_from_bytes;
    Sourced<bool> prefetch_pays;        // prefetching host-touched managed memory before a kernel pays
    Sourced<bool> write_combined_pays;  // write-combined memory is worth its restriction
    Sourced<bool> memory_info_counts;   // cuMemGetInfo states what can be allocated; otherwise /proc/meminfo does
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
