// SPDX-License-Identifier: Apache-2.0
// MachineRecord → its canonical JSON text: fields in one order, attributes by number.
#include <machines/record.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>

namespace isthmus::platform::machines {

std::string_view name(Evidence evidence) noexcept {
    switch (evidence) {
        case Evidence::observed: return "observed";
        case Evidence::reported: return "reported";
        case Evidence::documented: return "documented";
        case Evidence::assumed: return "assumed";
    }
    return "unknown";
}

namespace {

using Json = nlohmann::ordered_json;

Json evidence_json(const std::vector<Source>& evidence) {
    Json list = Json::array();
    for (const Source& source : evidence) {
        Json item = {{"is", name(source.is)}, {"from", source.from}};
        if (!source.of.empty()) item["of"] = source.of;
        list.push_back(std::move(item));
    }
    return list;
}

Json machine_json(const MachineRecord& record) {
    const MachineFacts& facts = record.facts;
    Json nodes = Json::array();
    for (const NumaNode& node : facts.numa_nodes) {
        nodes.push_back({{"id", node.id}, {"cpus", node.cpu_count}, {"memory_bytes", node.memory_bytes}});
        if (!node.cpus.empty()) nodes.back()["cpu_list"] = node.cpus;
    }
    nlohmann::json params = nlohmann::json::object();  // sorted, as in the reader
    for (const auto& [key, value] : facts.nvidia_params) params[key] = value;

    Json out = {{"init_code", record.init_code},
                {"driver_version", facts.driver_version},
                {"kernel_release", facts.kernel_release},
                {"cpu_name", facts.cpu_name},
                {"page_size_bytes", facts.page_size_bytes},
                {"numa_nodes", std::move(nodes)},
                {"nvidia_params", std::move(params)},
                {"imex_channels_major", facts.imex_channels_major},
                {"imex_channel_files", facts.imex_channel_files},
                {"addressing_mode", facts.addressing_mode}};
    if (facts.memory_limit_bytes != 0) out["memory_limit_bytes"] = facts.memory_limit_bytes;
    if (facts.memlock_limit_bytes == std::numeric_limits<std::uint64_t>::max()) {
        out["memlock_limit_bytes"] = "unlimited";
    } else if (facts.memlock_limit_bytes != 0) {
        out["memlock_limit_bytes"] = facts.memlock_limit_bytes;
    }
    out["evidence"] = evidence_json(record.evidence);
    return out;
}

Json attributes_json(const std::vector<AttributeFact>& attributes) {
    Json out = Json::object();
    for (const AttributeFact& fact : attributes) {
        std::string key(attribute_name(fact.id));
        if (key.empty()) key = "ATTRIBUTE_" + std::to_string(fact.id);
        out[key] = fact.refused_code == 0 ? Json(fact.value) : Json{{"refused", fact.refused_code}};
    }
    return out;
}

std::string hexadecimal(const std::array<std::uint8_t, 16>& bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

Json peers_json(const std::vector<PeerRecord>& peers) {
    Json list = Json::array();
    for (const PeerRecord& peer : peers) {
        list.push_back({{"ordinal", peer.ordinal},
                        {"access", peer.access},
                        {"native_atomics", peer.native_atomics},
                        {"performance_rank", peer.performance_rank}});
    }
    return list;
}

// Facts that the system did not state are left out.
Json pci_json(const PciPlace& pci) {
    Json out = Json::object();
    if (pci.speed_mt_per_s != 0) out["speed_mt_per_s"] = pci.speed_mt_per_s;
    if (pci.lanes != 0) out["lanes"] = pci.lanes;
    if (pci.max_speed_mt_per_s != 0) out["max_speed_mt_per_s"] = pci.max_speed_mt_per_s;
    if (pci.max_lanes != 0) out["max_lanes"] = pci.max_lanes;
    if (pci.numa_node >= 0) out["numa_node"] = pci.numa_node;
    if (!pci.near_cpus.empty()) out["near_cpus"] = pci.near_cpus;
    return out;
}

Json litmus_json(const LitmusFinding& finding) {
    Json results = Json::array();
    for (const LitmusResult& result : finding.results) {
        results.push_back({{"kind", name(result.kind)},
                           {"shape", name(result.shape)},
                           {"instances", result.instances},
                           {"forbidden", result.forbidden},
                           {"control_instances", result.control_instances},
                           {"control_weak", result.control_weak}});
    }
    return {
        {"driver_version", finding.driver_version}, {"simulated", finding.simulated}, {"results", std::move(results)}};
}

Json device_json(const DeviceRecord& device) {
    const DeviceFacts& facts = device.facts;
    Json out = {{"ordinal", facts.ordinal}, {"name", facts.name}};
    if (facts.uuid) out["uuid"] = hexadecimal(facts.uuid.bytes);
    out["total_memory_bytes"] = facts.total_memory_bytes;
    if (device.row) out["row"] = name(*device.row);
    out["fabric_usable"] = device.fabric_usable;
    out["legacy_ipc_usable"] = device.legacy_ipc_usable;
    out["prefetch_code"] = device.prefetch_code;
    out["host_reads_device_memory"] = device.host_reads_device_memory;
    if (device.pinned_gpu_cached) out["pinned_gpu_cached"] = *device.pinned_gpu_cached;
    if (device.large_cluster_multiprocessors != 0) {
        out["large_cluster_multiprocessors"] = device.large_cluster_multiprocessors;
    }
    if (device.imports_dma_bufs) out["imports_dma_bufs"] = true;
    if (!device.peers.empty()) out["peers"] = peers_json(device.peers);
    if (facts.host_atomics) out["host_atomic_capabilities"] = *facts.host_atomics;
    if (facts.pci) out["pci"] = pci_json(*facts.pci);
    if (device.litmus) out["litmus"] = litmus_json(*device.litmus);
    out["attributes"] = attributes_json(facts.attributes);
    out["evidence"] = evidence_json(device.evidence);
    return out;
}

}  // namespace

std::string write_record(const MachineRecord& record) {
    Json devices = Json::array();
    for (const DeviceRecord& device : record.devices) devices.push_back(device_json(device));
    const Json out = {{"format", 1},
                      {"name", record.name},
                      {"title", record.title},
                      {"machine", machine_json(record)},
                      {"devices", std::move(devices)}};
    // Names come from drivers and files: bytes that are not UTF-8 are replaced and raise no exception.
    return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace isthmus::platform::machines
