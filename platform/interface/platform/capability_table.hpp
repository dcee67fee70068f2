// The capability table: the one place that says what a row means where no attribute says it, and which attribute
// decides each feature. Rows are found by axes; the name of a row is for people.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

#include <cstddef>
#include <string_view>

namespace isthmus::platform {

// A value that no attribute states, and where it comes from.
template <class T>
struct Sourced {
    T value{};
    std::string_view source;
};

// Does the GPU keep such memory in its caches between accesses?
enum class GpuCaching : std::uint8_t {
    no,
    yes,
    by_node,   // where the NUMA node of the first physical page is the device's closest one (attribute 134)
    unproven,  // it differs by machine or was never seen; a machine's record may know more
};
std::string_view name(GpuCaching caching) noexcept;

struct Row {
    Model model = Model::discrete;
    std::string_view meaning;   // one sentence
    std::string_view found_by;  // the axes that lead here
    std::string_view examples;
    Sourced<GpuCaching> pinned_caching;
    Sourced<GpuCaching> registered_caching;
    // The best memory for both sides to use in place. The policy takes it only where the bits allow it.
    Sourced<MemoryKind> shared_in_place;
    Sourced<MemoryKind> shared_for_latency;
    Sourced<bool> near_device;  // host memory gains by lying on the device's closest node
    Sourced<bool> copy_pays;    // a device gains by a copy in its own memory, where the buffer is long enough
    // So long, by what the device does between two hand-overs: a copy has a price of its own. 0 where none pays.
    Sourced<std::size_t> reads_once_copied_from_bytes;
    Sourced<std::size_t> writes_once_copied_from_bytes;
    Sourced<std::size_t> reads_often_copied_from_bytes;
    Sourced<std::size_t> writes_often_copied_from_bytes;
    Sourced<bool> prefetch_pays;        // managed memory that the host touched is worth a prefetch before a kernel
    Sourced<bool> write_combined_pays;  // write-combined memory is worth its restriction
    Sourced<bool> memory_info_counts;   // cuMemGetInfo tells what can be allocated; else /proc/meminfo does
};

const Row& row(Model model) noexcept;
// The row that these axes lead to; the weakest one that fits where no row was made for them.
const Row& row_of(Translation translation, MemoryModel memory) noexcept;
inline const Row& row_of(const Capabilities& capabilities) noexcept {
    return row_of(capabilities.translation, capabilities.memory);
}

// What decides a feature, and what its answers mean. Sentences without their first subject: "the GPU reads …".
struct FeatureRow {
    Feature feature{};
    int attribute = 0;  // CUdevice_attribute
    std::string_view yes;
    std::string_view no;
};
const FeatureRow& feature_row(Feature feature) noexcept;

}  // namespace isthmus::platform
