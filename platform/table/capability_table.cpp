// SPDX-License-Identifier: Apache-2.0
// The table's data. Traits without a field or a source, and a feature without its attribute, do not compile.
#include <platform/capability_table.hpp>

#include <array>

namespace isthmus::platform {

namespace {

using O = ValueOrigin;
constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;

constexpr std::array<Row, model_count> rows = {
    Row{.model = Model::cpu,
        .meaning = "Kernels run on the host's own threads; all memory is host memory.",
        .found_by = "the CPU device: no attributes",
        .examples = "every machine"},
    Row{.model = Model::discrete,
        .meaning = "The GPU has its own memory behind a link and reaches only host memory that was made for it.",
        .found_by = "no translation, not integrated",
        .examples = "H200 without HMM; an RTX in WSL2"},
    Row{.model = Model::hmm,
        .meaning =
            "As discrete, and the kernel migrates ordinary host memory for the GPU (heterogeneous memory management).",
        .found_by = "HMM translation, not integrated",
        .examples = "RTX 5070 Ti on Linux with HMM; B300 beside EPYC"},
    Row{.model = Model::integrated,
        .meaning = "CPU and GPU share one DRAM but not their page tables; managed memory is for one side at a time.",
        .found_by = "shared DRAM, no host page tables",
        .examples = "Jetson Orin"},
    Row{.model = Model::ats,
        .meaning = "CPU and GPU share one DRAM and the CPU's page tables: ordinary host memory is shared as it is.",
        .found_by = "shared DRAM, host page tables",
        .examples = "Jetson Thor; GB10 (DGX Spark)"},
    Row{.model = Model::c2c,
        .meaning = "The GPU has its own memory, coherent with the CPU's, and uses the CPU's page tables.",
        .found_by = "host page tables, not integrated",
        .examples = "GH200, GB200, GB300"},
};

template <class T>
constexpr Sourced<T> by_construction(T value, std::string_view source) {
    return {value, O::construction, source};
}
template <class T>
constexpr Sourced<T> unknown(T value) {
    return {value, O::assumed, "no measurement and no document"};
}
template <class T>
constexpr Sourced<T> as_discrete(T value) {
    return {value, O::assumed, "as without HMM"};
}
constexpr CopyBorders no_copy = {};
constexpr Sourced<int> never_migrates = {0, O::construction, "no page moves to the GPU"};

// CUDA for Tegra, 4.1, on pinned memory: small buffers, and large ones that the GPU accesses once.
constexpr std::string_view tegra = "CUDA for Tegra, 4.1";
// The guide recommends cached memory for large buffers that the GPU accesses repeatedly, and names no size and no
// number.
constexpr std::string_view tegra_size =
    "CUDA for Tegra, 4.1, advises against pinned memory for large buffers with repeated access and names no size";
// A hand-over with a copy takes about 10 us more. Public measurement of a GH200: kernels read host memory at 335 to 375
// GB/s and GPU memory at 2.5 to 4.6 TB/s. n passes over b bytes save (n - 1) b / 350 GB/s - n b / 3 TB/s.
constexpr std::string_view grace_size =
    "from reported speeds: kernels read host memory at 335 to 375 GB/s and GPU memory at 2.5 to 4.6 TB/s (GH200); 10 "
    "us for a copy's hand-over";
constexpr CopyBorders grace_borders = {
    {{4, 2 * MiB, O::assumed, grace_size}, {many_passes, 256 * KiB, O::assumed, grace_size}}};
constexpr CopyBorders tegra_borders = {
    {{4, 1 * MiB, O::assumed, tegra_size}, {many_passes, 256 * KiB, O::assumed, tegra_size}}};
constexpr std::string_view grace_guide = "Grace guides, produce in CPU memory and let the GPU read it in place";
constexpr std::string_view thor = "Thor, plain or registered memory near the GPU is the best shared memory";

// H200, driver 580.159.04, 2026-11-22 (docs/performance.md).
constexpr CopyBorders h200_reads = {
    {{1, 16 * MiB, O::measured,
      "H200, 2026-11-22, in place is best to 2 MiB; a copy by 24 % at 16 MiB, 6 % at 256 MiB"},
     {2, 512 * KiB, O::assumed, "from the times of 1 and 16 passes on an H200"},
     {4, 32 * KiB, O::measured, "H200, 2026-11-22, in place by 6 % at 16 KiB (4 passes)"},
     {many_passes, 16 * KiB, O::measured,
      "H200, 2026-11-22, 16 passes, even to 4 KiB; a copy by 6 % at 16 KiB, 2.4 times faster at 256 KiB"}}};
constexpr CopyBorders h200_writes = {
    {{1, 32 * MiB, O::measured, "H200, 2026-11-22, in place to 16 MiB; a copy by 7 % at 32 MiB, 8 % at 128 MiB"},
     {2, 1 * MiB, O::assumed, "from the times of 1 and 16 passes on an H200"},
     {4, 256 * KiB, O::measured,
      "H200, 2026-11-22, in place by 14 % to 32 KiB (16 passes), 19 % at 128 KiB (4 passes); a copy 1.6 times faster "
      "at 256 KiB (16 passes)"}}};
constexpr CopyBorders assumed_of(CopyBorders borders) {
    for (CopyBorder& each : borders) {
        if (each.passes != 0) each.origin = O::assumed, each.source = "as measured on an H200, which has no HMM";
    }
    return borders;
}

enum Place : std::size_t { host, separate, separate_hmm, shared_dram, shared_tables, coherent_node, coherent_hidden };

constexpr std::array<Traits, traits_count> all_traits = {
    Traits{.axes = "the CPU device",
           .across = "nothing",
           .pinned_caching = by_construction(GpuCaching::yes, "host memory in host caches"),
           .registered_caching = by_construction(GpuCaching::yes, "host memory in host caches"),
           .shared_in_place = by_construction(MemoryKind::host, "all memory is host memory"),
           .shared_for_latency = by_construction(MemoryKind::host, "all memory is host memory"),
           .near_device = by_construction(false, "the system's own policy serves host threads"),
           .migrates_from_passes = never_migrates,
           .reads_copied = no_copy,
           .writes_copied = no_copy,
           .prefetching = by_construction(Prefetching::never, "nothing migrates"),
           .write_combined_pays = by_construction(false, "the CPU would read it uncached"),
           .memory_info_counts = by_construction(false, "/proc/meminfo and the cgroup count")},
    Traits{.axes = "separate memory, no translation",
           .across = "the link",
           .pinned_caching = unknown(GpuCaching::unproven),
           .registered_caching = unknown(GpuCaching::unproven),
           .shared_in_place = {MemoryKind::pinned, O::measured,
                               "H200, kernels write pinned memory at 52.7 and read it at 51.4 of 55.5 GB/s"},
           .shared_for_latency = {MemoryKind::pinned, O::measured,
                                  "H200, a CPU/GPU round trip over pinned memory takes 1.6 us"},
           .near_device = {true, O::assumed, "host memory on another socket crosses one link more"},
           .migrates_from_passes = never_migrates,
           .reads_copied = h200_reads,
           .writes_copied = h200_writes,
           .prefetching = {Prefetching::after_host, O::measured,
                           "H200, managed memory at first touch 7.8 GB/s, prefetched 51"},
           .write_combined_pays = {true, O::documented, "CUDA programming guide; not measured here"},
           .memory_info_counts = {true, O::documented, "CUDA driver API"}},
    Traits{.axes = "separate memory, HMM",
           .across = "the link",
           .pinned_caching = unknown(GpuCaching::unproven),
           .registered_caching = unknown(GpuCaching::unproven),
           .shared_in_place = {MemoryKind::pinned, O::assumed,
                               "as without HMM; ordinary memory would migrate at every hand-over"},
           .shared_for_latency = {MemoryKind::pinned, O::assumed, "as without HMM, no page fault on either side"},
           .near_device = as_discrete(true),
           .migrates_from_passes = {0, O::assumed, "pinned pages do not move"},
           .reads_copied = assumed_of(h200_reads),
           .writes_copied = assumed_of(h200_writes),
           .prefetching = as_discrete(Prefetching::after_host),
           .write_combined_pays = {true, O::documented, "CUDA programming guide; not measured here"},
           .memory_info_counts = {true, O::documented, "CUDA driver API"}},
    Traits{
        .axes = "shared DRAM, no host page tables",
        .across = "the GPU's uncached access",
        .pinned_caching = {GpuCaching::no, O::documented, tegra},
        .registered_caching = {GpuCaching::no, O::documented, tegra},
        .shared_in_place = {MemoryKind::pinned, O::documented, tegra},
        .shared_for_latency = {MemoryKind::pinned, O::documented, tegra},
        .near_device = by_construction(false, "one memory"),
        .migrates_from_passes = never_migrates,
        .reads_copied = tegra_borders,
        .writes_copied = tegra_borders,
        .prefetching = {Prefetching::never, O::reported, "Orin, prefetch answers 101; attachment is the only relief"},
        .write_combined_pays = unknown(false),
        .memory_info_counts = {false, O::documented, "CUDA for Tegra, MemAvailable counts"}},
    Traits{
        .axes = "shared DRAM, host page tables",
        .across = "nothing",
        .pinned_caching = {GpuCaching::unproven, O::documented, "CUDA for Tegra, uncached on Thor; unproven on GB10"},
        .registered_caching = {GpuCaching::by_node, O::documented, "CUDA for Tegra"},
        .shared_in_place = {MemoryKind::host, O::reported, thor},
        .shared_for_latency = {MemoryKind::registered, O::reported, thor},
        .near_device = {true, O::documented, "CUDA for Tegra, GPU caching depends on the node of the first page"},
        .migrates_from_passes = never_migrates,
        .reads_copied = no_copy,
        .writes_copied = no_copy,
        .prefetching = {Prefetching::first_use, O::documented,
                        "CUDA for Tegra, 4.3.2, a prefetch before the first use gives managed memory its pages"},
        .write_combined_pays = unknown(false),
        .memory_info_counts = {false, O::reported, "GB10, memory info is unreliable; MemAvailable counts"}},
    Traits{.axes = "coherent memory as a NUMA node",
           .across = "the coherent link",
           .pinned_caching = unknown(GpuCaching::unproven),
           .registered_caching = unknown(GpuCaching::unproven),
           .shared_in_place = {MemoryKind::host, O::documented, grace_guide},
           .shared_for_latency = {MemoryKind::host, O::reported,
                                  "malloc memory 1.2 us against pinned 5.4 us for records that the host sees"},
           .near_device = {true, O::documented,
                           "Grace guides; ordinary host memory is never placed on a GPU node unasked"},
           .migrates_from_passes = {4, O::assumed,
                                    "the driver leaves pages where a memory policy binds them; a migration pays after "
                                    "a few passes by reported speeds (GH200)"},
           .reads_copied = grace_borders,
           .writes_copied = grace_borders,
           .prefetching = {Prefetching::never, O::assumed, "the link is coherent, and pages move by access counters"},
           .write_combined_pays = {false, O::documented, "Grace guides, write-combined memory halves the bandwidth"},
           .memory_info_counts = {true, O::documented, "CUDA driver API"}},
    Traits{.axes = "coherent memory hidden from the system (CDMM)",
           .across = "the coherent link",
           .pinned_caching = unknown(GpuCaching::unproven),
           .registered_caching = unknown(GpuCaching::unproven),
           .shared_in_place = {MemoryKind::host, O::documented, grace_guide},
           .shared_for_latency = {MemoryKind::host, O::reported,
                                  "malloc memory 1.2 us against pinned 5.4 us for records that the host sees (GH200 in "
                                  "NUMA mode)"},
           .near_device = {true, O::documented, "Grace guides"},
           .migrates_from_passes = {0, O::documented, "CDMM, no page of the system migrates to the GPU"},
           .reads_copied = grace_borders,
           .writes_copied = grace_borders,
           .prefetching = {Prefetching::never, O::assumed, "no page of the system migrates to the GPU"},
           .write_combined_pays = {false, O::documented, "Grace guides, write-combined memory halves the bandwidth"},
           .memory_info_counts = {true, O::documented, "CUDA driver API"}},
};

// Ascending by passes, without a gap. More passes never need more bytes.
constexpr bool well_formed(const CopyBorders& borders) {
    for (std::size_t i = 0; i < borders.size(); ++i) {
        const CopyBorder& each = borders[i];
        if (each.passes == 0) continue;
        if (each.source.empty() || each.from_bytes == 0) return false;
        if (i > 0 && (borders[i - 1].passes == 0 || borders[i - 1].passes >= each.passes ||
                      borders[i - 1].from_bytes < each.from_bytes)) {
            return false;
        }
    }
    return true;
}
constexpr bool complete(const Traits& traits) {
    return !traits.axes.empty() && !traits.across.empty() && !traits.pinned_caching.source.empty() &&
           !traits.registered_caching.source.empty() && !traits.shared_in_place.source.empty() &&
           !traits.shared_for_latency.source.empty() && !traits.near_device.source.empty() &&
           !traits.migrates_from_passes.source.empty() && !traits.prefetching.source.empty() &&
           !traits.write_combined_pays.source.empty() && !traits.memory_info_counts.source.empty() &&
           well_formed(traits.reads_copied) && well_formed(traits.writes_copied);
}
constexpr bool every_place_has_its_traits() {
    for (const Traits& each : all_traits) {
        if (!complete(each)) return false;
    }
    return true;
}
static_assert(every_place_has_its_traits(), "traits have every field, each with its source");
constexpr bool every_model_has_its_row() {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row& each = rows[i];
        if (static_cast<std::size_t>(each.model) != i || each.meaning.empty() || each.found_by.empty()) return false;
    }
    return true;
}
static_assert(every_model_has_its_row(), "each Model has one row, in the enumeration's order");

using F = Feature;
constexpr std::array<FeatureRow, feature_count> features = {{
    {F::pageable_access, 88, "the GPU reads and writes ordinary host memory", "the GPU faults on ordinary host memory"},
    {F::host_page_tables, 100, "the GPU translates host addresses through the CPU's page tables",
     "the GPU does not use the CPU's page tables"},
    {F::managed, 83, "managed memory can be allocated", "managed memory cannot be allocated"},
    {F::concurrent_managed, 89, "CPU and GPU may touch managed memory at the same time",
     "the CPU may not touch managed memory while any kernel runs"},
    {F::direct_managed, 101, "the CPU uses managed memory in place while it resides on the GPU",
     "the CPU does not use GPU-resident managed memory in place"},
    {F::unified_addressing, 41, "host and device share one address space",
     "host and device have separate address spaces"},
    {F::integrated, 18, "CPU and GPU share one DRAM", "the GPU has memory of its own"},
    {F::native_atomics, 86, "the link carries every CPU/GPU atomic operation natively",
     "the link does not carry every CPU/GPU atomic operation"},
    {F::partial_atomics, 147, "the link carries only some atomic operations; each is asked for",
     "the driver reports no partial set of link atomics"},
    {F::host_register, 99, "existing host memory can be registered", "existing host memory cannot be registered"},
    {F::host_register_read_only, 113, "read-only host memory can be registered",
     "read-only host memory cannot be registered"},
    {F::registered_same_pointer, 91, "registered memory has one address for host and device",
     "registered memory has another address on the device"},
    {F::pools, 115, "stream-ordered pools work", "there are no stream-ordered pools"},
    {F::host_pools, 144, "pools of host memory work", "there are no pools of host memory"},
    {F::host_numa_pools, 142, "pools on a host NUMA node work", "there are no pools on a host NUMA node"},
    {F::virtual_memory, 102, "virtual memory management works", "there is no virtual memory management"},
    {F::host_virtual_memory, 145, "host memory can be created and mapped by handle",
     "host memory cannot be created by handle"},
    {F::host_numa_virtual_memory, 141, "memory of a host NUMA node can be created and mapped by handle",
     "memory of a host NUMA node cannot be created by handle"},
    {F::export_posix_fd, 103, "memory can be exported as a file descriptor",
     "memory cannot be exported as a file descriptor"},
    {F::export_fabric, 128, "fabric handles exist here; only a try shows whether they work",
     "memory cannot be exported as a fabric handle"},
    {F::ipc_events, 125, "events can be shared between processes", "events cannot be shared between processes"},
    {F::gpudirect_rdma, 116, "other PCIe devices can reach GPU memory directly",
     "other PCIe devices cannot reach GPU memory directly"},
    {F::dma_buf, 124, "GPU memory can be exported as a dma-buf", "GPU memory cannot be exported as a dma-buf"},
    {F::multicast, 132, "multicast objects work", "there are no multicast objects"},
    {F::concurrent_kernels, 31, "kernels of several streams may run at once", "one kernel runs at a time"},
    {F::kernel_timeout, 17, "a watchdog ends long kernels", "no watchdog ends long kernels"},
    {F::cooperative_launch, 95, "cooperative launches work", "there are no cooperative launches"},
    {F::host_dma_buf, 146, "pinned host memory can be exported as a dma-buf",
     "pinned host memory cannot be exported as a dma-buf"},
}};

constexpr bool every_feature_has_its_attribute() {
    for (std::size_t i = 0; i < features.size(); ++i) {
        const FeatureRow& row = features[i];
        if (static_cast<std::size_t>(row.feature) != i || row.attribute < 1) return false;
        if (row.yes.empty() || row.no.empty()) return false;
        for (std::size_t j = 0; j < i; ++j) {
            if (features[j].attribute == row.attribute) return false;  // no two features share a deciding attribute
        }
    }
    return true;
}
static_assert(every_feature_has_its_attribute(), "each Feature has one row, in order, with an attribute of its own");

}  // namespace

std::string_view name(GpuCaching caching) noexcept {
    switch (caching) {
        case GpuCaching::no: return "no";
        case GpuCaching::yes: return "yes";
        case GpuCaching::by_node: return "by_node";
        case GpuCaching::unproven: return "unproven";
    }
    return "unknown";
}

std::string_view name(ValueOrigin origin) noexcept {
    switch (origin) {
        case ValueOrigin::construction: return "by construction";
        case ValueOrigin::measured: return "measured on a machine of this class";
        case ValueOrigin::documented: return "documented";
        case ValueOrigin::reported: return "reported by others";
        case ValueOrigin::assumed: return "assumed";
    }
    return "unknown";
}

std::string_view name(Prefetching prefetching) noexcept {
    switch (prefetching) {
        case Prefetching::never: return "never";
        case Prefetching::first_use: return "before the first use";
        case Prefetching::after_host: return "after each use by the host";
    }
    return "unknown";
}

const CopyBorder* border_for(const CopyBorders& borders, int passes) noexcept {
    const CopyBorder* found = nullptr;
    for (const CopyBorder& each : borders) {
        if (each.passes != 0 && each.passes <= passes) found = &each;
    }
    return found;
}

const Traits& traits_at(std::size_t index) noexcept {
    return all_traits[index % all_traits.size()];
}

std::size_t index_of(const Traits& traits) noexcept {
    return static_cast<std::size_t>(&traits - all_traits.data());
}

const Traits& traits_of(Translation translation, MemoryModel memory) noexcept {
    if (memory == MemoryModel::host) return all_traits[host];
    const bool tables = translation == Translation::host_page_tables;
    // HMM on shared DRAM was never seen: ordinary memory is not promised there.
    if (memory == MemoryModel::shared_dram) return all_traits[tables ? shared_tables : shared_dram];
    // Without the CPU's page tables no memory is coherent, whatever the nodes say.
    if (tables) return all_traits[memory == MemoryModel::coherent_node ? coherent_node : coherent_hidden];
    return all_traits[translation == Translation::hmm ? separate_hmm : separate];
}

const Row& row(Model model) noexcept {
    return rows[static_cast<std::size_t>(model) % rows.size()];
}

const Row& row_of(Translation translation, MemoryModel memory) noexcept {
    if (memory == MemoryModel::host) return row(Model::cpu);
    const bool shared = memory == MemoryModel::shared_dram;
    if (translation == Translation::host_page_tables) return row(shared ? Model::ats : Model::c2c);
    // HMM on shared DRAM was never observed: the integrated row promises less than the hmm row.
    if (shared) return row(Model::integrated);
    return row(translation == Translation::hmm ? Model::hmm : Model::discrete);
}

const FeatureRow& feature_row(Feature feature) noexcept {
    return features[static_cast<std::size_t>(feature) % features.size()];
}

}  // namespace isthmus::platform
