// SPDX-License-Identifier: Apache-2.0
// The table's data. A model without a row, a row without a field or a feature without its attribute does not compile.
#include <platform/capability_table.hpp>

#include <array>

namespace isthmus::platform {

namespace {

constexpr std::string_view tegra = "documented: CUDA for Tegra";
constexpr std::string_view nowhere = "assumed: no measurement and no document";
constexpr std::string_view h200 =
    "observed: H200, kernels write pinned memory at 52.7 and read it at 51.4 of 55.5 GB/s";
constexpr std::string_view thor = "observed: Thor, plain or registered memory near the GPU is the best shared memory";
constexpr std::string_view grace = "documented: Grace guides, produce in CPU memory and let the GPU read it in place";

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::string_view no_copy = "by construction: no copy pays";
constexpr std::string_view as_discrete = "assumed: as discrete";

constexpr std::array<Row, model_count> rows = {
    Row{.model = Model::cpu,
        .meaning = "Kernels run on the host's own threads; all memory is host memory.",
        .found_by = "the CPU device: no attributes",
        .examples = "every machine",
        .pinned_caching = {GpuCaching::yes, "by construction: host memory in host caches"},
        .registered_caching = {GpuCaching::yes, "by construction: host memory in host caches"},
        .shared_in_place = {MemoryKind::host, "by construction"},
        .shared_for_latency = {MemoryKind::host, "by construction"},
        .near_device = {false, "by construction: the system's own policy serves host threads"},
        .copy_pays = {false, "by construction: a copy would lie in the same memory"},
        .reads_once_copied_from_bytes = {0, no_copy},
        .writes_once_copied_from_bytes = {0, no_copy},
        .reads_often_copied_from_bytes = {0, no_copy},
        .writes_often_copied_from_bytes = {0, no_copy},
        .prefetch_pays = {false, "by construction: nothing migrates"},
        .write_combined_pays = {false, "by construction"},
        .memory_info_counts = {false, "by construction: /proc/meminfo and the cgroup count"}},
    Row{.model = Model::discrete,
        .meaning = "The GPU has its own memory behind a link and reaches only host memory that was made for it.",
        .found_by = "no translation, not integrated",
        .examples = "H200 without HMM; an RTX in WSL2",
        .pinned_caching = {GpuCaching::unproven, nowhere},
        .registered_caching = {GpuCaching::unproven, nowhere},
        .shared_in_place = {MemoryKind::pinned, h200},
        .shared_for_latency = {MemoryKind::pinned,
                               "observed: H200, a CPU/GPU round trip over pinned memory takes 1.6 us"},
        .near_device = {true, "assumed: host memory on another socket crosses one link more"},
        .copy_pays = {true,
                      "observed: H200, one pass over the link costs what a copy costs; each further pass is extra"},
        .reads_once_copied_from_bytes =
            {16 * MiB,
             "observed: H200, 2026-11-22, in place is best to 2 MiB; a copy by 24 % at 16 MiB, 6 % at 256 MiB"},
        .writes_once_copied_from_bytes =
            {32 * MiB, "observed: H200, 2026-11-22, in place to 16 MiB; a copy by 7 % at 32 MiB, 8 % at 128 MiB"},
        .reads_often_copied_from_bytes =
            {16 * KiB,
             "observed: H200, 2026-11-22, 16 passes, even to 4 KiB; a copy by 6 % at 16 KiB, 2.4 times faster at "
             "256 KiB"},
        .writes_often_copied_from_bytes =
            {256 * KiB,
             "observed: H200, 2026-11-22, in place by 14 % to 32 KiB (16 passes), 19 % at 128 KiB (4 passes); a "
             "copy 1.6 times faster at 256 KiB (16 passes)"},
        .prefetch_pays = {true, "observed: H200, managed memory at first touch 7.8 GB/s, prefetched 51"},
        .write_combined_pays = {true, "documented: CUDA programming guide; not measured here"},
        .memory_info_counts = {true, "documented: CUDA driver API"}},
    Row{.model = Model::hmm,
        .meaning =
            "As discrete, and the kernel migrates ordinary host memory for the GPU (heterogeneous memory management).",
        .found_by = "HMM translation, not integrated",
        .examples = "RTX 5070 Ti on Linux with HMM; B300 beside EPYC",
        .pinned_caching = {GpuCaching::unproven, nowhere},
        .registered_caching = {GpuCaching::unproven, nowhere},
        .shared_in_place = {MemoryKind::pinned,
                            "observed: H200 (without HMM); pageable memory would migrate at every hand-over"},
        .shared_for_latency = {MemoryKind::pinned, "assumed: as discrete, no page fault on either side"},
        .near_device = {true, as_discrete},
        .copy_pays = {true, as_discrete},
        .reads_once_copied_from_bytes = {16 * MiB, as_discrete},
        .writes_once_copied_from_bytes = {32 * MiB, as_discrete},
        .reads_often_copied_from_bytes = {16 * KiB, as_discrete},
        .writes_often_copied_from_bytes = {256 * KiB, as_discrete},
        .prefetch_pays = {true, as_discrete},
        .write_combined_pays = {true, "documented: CUDA programming guide; not measured here"},
        .memory_info_counts = {true, "documented: CUDA driver API"}},
    Row{.model = Model::integrated,
        .meaning = "CPU and GPU share one DRAM but not their page tables; managed memory is for one side at a time.",
        .found_by = "shared DRAM, no host page tables",
        .examples = "Jetson Orin",
        .pinned_caching = {GpuCaching::no, tegra},
        .registered_caching = {GpuCaching::no, tegra},
        .shared_in_place = {MemoryKind::pinned,
                            "documented: CUDA for Tegra, the predictable choice; managed maintains caches"},
        .shared_for_latency = {MemoryKind::pinned, tegra},
        .near_device = {false, "by construction: one memory"},
        .copy_pays = {false, "assumed: a copy would lie in the same DRAM"},
        .reads_once_copied_from_bytes = {0, no_copy},
        .writes_once_copied_from_bytes = {0, no_copy},
        .reads_often_copied_from_bytes = {0, no_copy},
        .writes_often_copied_from_bytes = {0, no_copy},
        .prefetch_pays = {false, "observed: Orin, prefetch answers 101; attachment is the only relief"},
        .write_combined_pays = {false, nowhere},
        .memory_info_counts = {false, "documented: CUDA for Tegra, MemAvailable counts"}},
    Row{.model = Model::ats,
        .meaning = "CPU and GPU share one DRAM and the CPU's page tables: ordinary host memory is shared as it is.",
        .found_by = "shared DRAM, host page tables",
        .examples = "Jetson Thor; GB10 (DGX Spark)",
        .pinned_caching = {GpuCaching::unproven, "documented uncached for Tegra (Thor), unproven for GB10"},
        .registered_caching = {GpuCaching::by_node, "documented: CUDA for Tegra"},
        .shared_in_place = {MemoryKind::host, thor},
        .shared_for_latency = {MemoryKind::registered, thor},
        .near_device = {true, "documented: CUDA for Tegra, GPU caching depends on the node of the first page"},
        .copy_pays = {false, "assumed: a copy would lie in the same DRAM"},
        .reads_once_copied_from_bytes = {0, no_copy},
        .writes_once_copied_from_bytes = {0, no_copy},
        .reads_often_copied_from_bytes = {0, no_copy},
        .writes_often_copied_from_bytes = {0, no_copy},
        .prefetch_pays = {false, "assumed: one DRAM, nothing migrates"},
        .write_combined_pays = {false, nowhere},
        .memory_info_counts = {false, "observed: GB10, memory info is unreliable; MemAvailable counts"}},
    Row{.model = Model::c2c,
        .meaning = "The GPU has its own memory, coherent with the CPU's, and uses the CPU's page tables.",
        .found_by = "host page tables, not integrated",
        .examples = "GH200, GB200, GB300",
        .pinned_caching = {GpuCaching::unproven, nowhere},
        .registered_caching = {GpuCaching::unproven, nowhere},
        .shared_in_place = {MemoryKind::host, grace},
        .shared_for_latency = {MemoryKind::host,
                               "documented: reported elsewhere, malloc memory 1.2 us against pinned 5.4 us for records "
                               "that the host sees"},
        .near_device = {true, "documented: Grace guides; ordinary host memory is never placed on a GPU node unasked"},
        .copy_pays = {false, "documented: Grace guides, the link is coherent and wide"},
        .reads_once_copied_from_bytes = {0, no_copy},
        .writes_once_copied_from_bytes = {0, no_copy},
        .reads_often_copied_from_bytes = {0, no_copy},
        .writes_often_copied_from_bytes = {0, no_copy},
        .prefetch_pays = {false, "assumed: the link is coherent, and pages move by access counters"},
        .write_combined_pays = {false, "documented: Grace guides, write-combined memory halves the bandwidth"},
        .memory_info_counts = {true, "documented: CUDA driver API"}},
};

constexpr bool complete(const Row& row) {
    return !row.meaning.empty() && !row.found_by.empty() && !row.examples.empty() &&
           !row.pinned_caching.source.empty() && !row.registered_caching.source.empty() &&
           !row.shared_in_place.source.empty() && !row.shared_for_latency.source.empty() &&
           !row.near_device.source.empty() && !row.copy_pays.source.empty() &&
           !row.reads_once_copied_from_bytes.source.empty() && !row.writes_once_copied_from_bytes.source.empty() &&
           !row.reads_often_copied_from_bytes.source.empty() && !row.writes_often_copied_from_bytes.source.empty() &&
           !row.prefetch_pays.source.empty() && !row.write_combined_pays.source.empty() &&
           !row.memory_info_counts.source.empty();
}
// A side that accesses data often gains from a copy at the same or a smaller size than one that accesses it once.
constexpr bool borders_make_sense(const Row& row) {
    return row.reads_often_copied_from_bytes.value <= row.reads_once_copied_from_bytes.value &&
           row.writes_often_copied_from_bytes.value <= row.writes_once_copied_from_bytes.value;
}
constexpr bool every_model_has_its_row() {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (static_cast<std::size_t>(rows[i].model) != i || !complete(rows[i]) || !borders_make_sense(rows[i]))
            return false;
    }
    return true;
}
static_assert(every_model_has_its_row(), "each Model has one row, in the enumeration's order, with every field");

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
