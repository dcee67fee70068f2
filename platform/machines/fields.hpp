// SPDX-License-Identifier: Apache-2.0
// The spelling of a record's fields and enumerations, once for the reader and the writer.
#pragma once

#include <machines/record.hpp>

#include <array>
#include <string_view>

namespace isthmus::platform::machines {

using Name = std::string_view;
inline constexpr std::array<Name, 5> record_fields = {"format", "name", "title", "machine", "devices"};
inline constexpr std::array<Name, 13> machine_fields = {"init_code",       "driver_version",      "kernel_release",
                                                        "cpu_name",        "page_size_bytes",     "numa_nodes",
                                                        "nvidia_params",   "imex_channels_major", "imex_channel_files",
                                                        "addressing_mode", "memory_limit_bytes",  "memlock_limit_bytes",
                                                        "evidence"};
inline constexpr std::array<Name, 18> device_fields = {"ordinal",
                                                       "name",
                                                       "uuid",
                                                       "total_memory_bytes",
                                                       "row",
                                                       "fabric_usable",
                                                       "legacy_ipc_usable",
                                                       "prefetch_code",
                                                       "host_reads_device_memory",
                                                       "pinned_gpu_cached",
                                                       "large_cluster_multiprocessors",
                                                       "imports_dma_bufs",
                                                       "peers",
                                                       "host_atomic_capabilities",
                                                       "pci",
                                                       "litmus",
                                                       "attributes",
                                                       "evidence"};
inline constexpr std::array<Name, 4> node_fields = {"id", "cpus", "memory_bytes", "cpu_list"};
inline constexpr std::array<Name, 6> pci_fields = {"speed_mt_per_s", "lanes",     "max_speed_mt_per_s",
                                                   "max_lanes",      "numa_node", "near_cpus"};
inline constexpr std::array<Name, 4> peer_fields = {"ordinal", "access", "native_atomics", "performance_rank"};
inline constexpr std::array<Name, 3> litmus_fields = {"driver_version", "simulated", "results"};
inline constexpr std::array<Name, 6> litmus_result_fields = {
    "kind", "shape", "instances", "forbidden", "control_instances", "control_weak"};
inline constexpr std::array<Name, 3> evidence_fields = {"is", "from", "of"};
inline constexpr std::array<Name, 1> refusal_fields = {"refused"};

inline bool evidence_from(std::string_view text, Evidence& out) noexcept {
    for (const Evidence each : {Evidence::observed, Evidence::reported, Evidence::documented, Evidence::assumed}) {
        if (text == name(each)) return out = each, true;
    }
    return false;
}
inline std::optional<Model> model_from(std::string_view text) noexcept {
    for (int model = 0; model < model_count; ++model) {
        const auto each = static_cast<Model>(model);
        if (each != Model::cpu && text == name(each)) return each;
    }
    return std::nullopt;
}
inline std::optional<MemoryKind> kind_from(std::string_view text) noexcept {
    for (int code = 1; code < memory_kind_count; ++code) {
        if (text == name(static_cast<MemoryKind>(code))) return static_cast<MemoryKind>(code);
    }
    return std::nullopt;
}
inline std::optional<LitmusShape> shape_from(std::string_view text) noexcept {
    for (int code = 0; code < litmus_shape_count; ++code) {
        if (text == name(static_cast<LitmusShape>(code))) return static_cast<LitmusShape>(code);
    }
    return std::nullopt;
}

}  // namespace isthmus::platform::machines
