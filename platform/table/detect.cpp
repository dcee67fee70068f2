// SPDX-License-Identifier: Apache-2.0
// Facts → capabilities: first each feature from its own attribute, then the axes, then the row's name.
#include <platform/detect.hpp>

#include "axes.hpp"
#include "composed.hpp"
#include "version_text.hpp"

#include <platform/capability_table.hpp>

#include <algorithm>
#include <utility>

namespace isthmus::platform {

namespace {

constexpr int attribute_compute_major = 75;
constexpr int attribute_compute_minor = 76;
constexpr int attribute_numa_config = 130;
constexpr int attribute_numa_id = 131;
constexpr int attribute_host_numa_id = 134;
constexpr int attribute_compression = 107;     // CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED: physical memory
constexpr int attribute_rdma_of_mapped = 110;  // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED: the same
constexpr int attribute_sparse_arrays = 112;   // CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED: a usage of it
constexpr int attribute_decompression = 136;   // CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK: another one
constexpr int numa_config_node = 1;            // CU_DEVICE_NUMA_CONFIG_NUMA_NODE
constexpr int code_invalid_value = 1;          // CUDA_ERROR_INVALID_VALUE: the driver's answer to an unknown id

std::string attribute_text(int id) {
    return composed("{} (attribute {})", attribute_name(id), id);
}

const AttributeFact* find(const DeviceFacts& device, int id) {
    const auto found = std::find_if(device.attributes.begin(), device.attributes.end(),
                                    [id](const AttributeFact& fact) { return fact.id == id; });
    return found == device.attributes.end() ? nullptr : &*found;
}

Capability absent(const MachineFacts& machine, int id) {
    if (machine.driver_version == 0) return {State::no, Origin::absent, "There is no CUDA driver to ask."};
    return {State::no, Origin::absent,
            composed("The driver (CUDA {}) does not know {}, so the answer counts as no.",
                     version_text(machine.driver_version), attribute_text(id))};
}

Capability answer(const MachineFacts& machine, const DeviceFacts& device, const FeatureRow& row) {
    const AttributeFact* fact = find(device, row.attribute);
    if (fact == nullptr || fact->refused_code == code_invalid_value) return absent(machine, row.attribute);
    if (fact->refused_code != 0) {
        return {State::no, Origin::refused,
                composed("The driver answered {} with error {}, so the answer counts as no.",
                         attribute_text(row.attribute), fact->refused_code)};
    }
    const bool yes = fact->value > 0;
    return {yes ? State::yes : State::no, Origin::attribute,
            composed("{} is {}: {}.", attribute_text(row.attribute), fact->value, yes ? row.yes : row.no)};
}

Capabilities cpu_device() {
    Capabilities capabilities;
    capabilities.memory = MemoryModel::host;
    capabilities.model = Model::cpu;
    for (Capability& each : capabilities.features) {
        each = {State::no, Origin::absent, "This is the CPU device, which has no GPU properties."};
    }
    return capabilities;
}

void name_row(Capabilities& capabilities) {
    capabilities.model = row_of(capabilities).model;
}

}  // namespace

std::vector<int> deciding_attributes() {
    std::vector<int> ids = {attribute_compute_major,  attribute_compute_minor, attribute_compression,
                            attribute_rdma_of_mapped, attribute_sparse_arrays, attribute_decompression,
                            attribute_numa_config,    attribute_numa_id,       attribute_host_numa_id};
    for (int i = 0; i < feature_count; ++i) ids.push_back(feature_row(static_cast<Feature>(i)).attribute);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
}

Capabilities detect(const MachineFacts& machine, const DeviceFacts& device) {
    if (device.is_cpu()) return cpu_device();
    Capabilities capabilities;
    for (int i = 0; i < feature_count; ++i) {
        const FeatureRow& row = feature_row(static_cast<Feature>(i));
        capabilities.features[static_cast<std::size_t>(i)] = answer(machine, device, row);
    }
    if (device.host_atomics) capabilities.host_atomics = *device.host_atomics;
    capabilities.compute_major = device.attribute(attribute_compute_major).value_or(0);
    capabilities.compute_minor = device.attribute(attribute_compute_minor).value_or(0);
    capabilities.host_numa_node = std::max(-1, device.attribute(attribute_host_numa_id).value_or(-1));
    if (device.attribute(attribute_numa_config) == numa_config_node) {
        capabilities.gpu_numa_node = std::max(-1, device.attribute(attribute_numa_id).value_or(-1));
    }

    capabilities.translation = translation_of(capabilities);
    capabilities.memory = memory_of(capabilities);
    capabilities.managed = managed_of(capabilities);
    capabilities.link_atomics = link_atomics_of(capabilities);
    name_row(capabilities);
    return capabilities;
}

void apply_probe(Capabilities& capabilities, const Probe& probe) {
    Capability& capability = capabilities.features[static_cast<std::size_t>(probe.feature)];
    if (capability.state == State::no) return;  // a probe never widens
    capability.state = probe.works ? State::probed : State::no;
    capability.origin = Origin::probe;
    capability.reason = probe.finding;
    if (probe.works) return;
    if (probe.driver_code != 0) capability.reason += composed(" (error {})", probe.driver_code);
    if (capability.reason.empty() || capability.reason.back() != '.') capability.reason += '.';

    // The axes may only go down with their features: losing "only some atomics" must not read as "all of them".
    capabilities.translation = std::min(capabilities.translation, translation_of(capabilities));
    capabilities.managed = std::min(capabilities.managed, managed_of(capabilities));
    capabilities.link_atomics = std::min(capabilities.link_atomics, link_atomics_of(capabilities));
    const bool host_tables = capabilities.translation == Translation::host_page_tables;
    if (capabilities.memory == MemoryModel::coherent_hidden && !host_tables) {
        capabilities.memory = MemoryModel::separate;
    }
    name_row(capabilities);
}

}  // namespace isthmus::platform
