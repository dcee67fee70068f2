// SPDX-License-Identifier: Apache-2.0
// Reads everything that the driver states about a device.
#include "cuda_device.hpp"

#include <isthmus/facts.hpp>
#include <platform/os.hpp>

#include <cstring>

namespace isthmus::platform::cuda {
namespace {

constexpr int last_attribute_asked = 255;
// Newer drivers may have attributes without a name here: queried by number until this many in a row are unknown to the
// driver.
constexpr int unknown_in_a_row = 8;

CUresult read_attribute(const Api& api, CUdevice device, int id, std::vector<AttributeFact>& facts) {
    int value = 0;
    const CUresult code = api.device_get_attribute(&value, id, device);
    if (code == result::success) {
        facts.push_back({id, value, 0});
    } else if (code != result::invalid_value) {
        facts.push_back({id, 0, code});
    }
    return code;
}

std::optional<HostAtomics> read_host_atomics(const Api& api, CUdevice device) {
    if (!api.device_get_host_atomic_capabilities) return std::nullopt;
    HostAtomics answers{};
    CUatomicOperation operations[isthmus::atomic_operation_count];
    for (int i = 0; i < isthmus::atomic_operation_count; ++i) operations[i] = i;  // in the driver's order
    const CUresult code =
        api.device_get_host_atomic_capabilities(answers.data(), operations, isthmus::atomic_operation_count, device);
    if (code != result::success) return std::nullopt;
    return answers;
}

// No attribute tells that a device is a MIG instance, and the older function answers with the whole GPU's UUID.
Uuid read_uuid(const Api& api, CUdevice device) {
    Uuid uuid;
    CUuuid answer{};
    if (api.device_get_uuid(&answer, device) != result::success) return uuid;
    std::memcpy(uuid.bytes.data(), answer.bytes, uuid.bytes.size());
    CUuuid whole{};
    if (api.device_get_whole_uuid && api.device_get_whole_uuid(&whole, device) == result::success) {
        uuid.mig = std::memcmp(whole.bytes, answer.bytes, sizeof(whole.bytes)) != 0;
    }
    return uuid;
}

}  // namespace

std::vector<AttributeFact> read_all_attributes(const Api& api, CUdevice device) {
    std::vector<AttributeFact> facts;
    int unknown = 0;
    for (int id = 1; id <= last_attribute_asked && unknown < unknown_in_a_row; ++id) {
        const CUresult code = read_attribute(api, device, id, facts);
        const bool named = !attribute_name(id).empty();
        unknown = named || code != result::invalid_value ? 0 : unknown + 1;
    }
    return facts;
}

DeviceFacts read_facts(const Api& api, int ordinal, CUdevice device, std::span<const int> attributes) {
    DeviceFacts facts;
    facts.ordinal = ordinal;
    char name[256] = {};
    if (api.device_get_name(name, sizeof(name) - 1, device) == result::success) facts.name = name;
    facts.uuid = read_uuid(api, device);
    std::size_t total = 0;
    if (api.device_total_mem(&total, device) == result::success) facts.total_memory_bytes = total;
    if (attributes.empty()) facts.attributes = read_all_attributes(api, device);
    for (const int id : attributes) (void)read_attribute(api, device, id, facts.attributes);
    facts.host_atomics = read_host_atomics(api, device);
    return facts;
}

std::optional<PciPlace> read_pci(const Library& library, const DeviceFacts& facts) {
    if (library.simulated_fact) return read_simulated_pci(library.simulated_fact, facts.ordinal);
    constexpr int pci_bus_id = 33, pci_device_id = 34, pci_domain_id = 50;  // CU_DEVICE_ATTRIBUTE_PCI_…
    const std::optional<int> bus = facts.attribute(pci_bus_id);
    const std::optional<int> device = facts.attribute(pci_device_id);
    if (!bus || !device) return std::nullopt;
    return os::pci_place(facts.attribute(pci_domain_id).value_or(0), *bus, *device);
}

}  // namespace isthmus::platform::cuda
