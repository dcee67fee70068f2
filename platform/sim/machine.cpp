// SPDX-License-Identifier: Apache-2.0
// Finds the record of the machine to simulate, and answers isthmus_sim_fact() from it.
#include "machine.hpp"

#include "types.hpp"
#include "visible_devices.hpp"

#include <driver_abi/sim_registration.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

namespace isthmus::sim {
namespace {

// Records have no serial numbers, but UUIDs must differ: this one is the FNV-1a hash of the machine's name, and the
// ordinal.
isthmus::Uuid made_up_uuid(std::string_view machine_name, int ordinal) {
    std::uint64_t hash = 14695981039346656037u;
    for (const char c : machine_name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    isthmus::Uuid uuid;
    std::memcpy(uuid.bytes.data(), &hash, sizeof(hash));
    uuid.bytes[14] = 0x80;
    uuid.bytes[15] = static_cast<std::uint8_t>(ordinal + 1);
    return uuid;
}

}  // namespace

Machine::Machine() {
    const char* wanted = ::secure_getenv("ISTHMUS_SIM");
    if (!wanted || !*wanted) {
        problem_ = "ISTHMUS_SIM names no machine to play; set it to one of:";
        for (const std::string_view name : platform::machines::known_machines()) {
            problem_ += ' ';
            problem_ += name;
        }
        problem_ += ", or to the path of a record";
        return;
    }
    auto record = platform::machines::find_record(wanted);
    if (!record) {
        problem_ = "ISTHMUS_SIM=" + std::string(wanted) + ": " + std::string(record.error().text());
        return;
    }
    record_ = std::move(record).value();
    for (platform::machines::DeviceRecord& device : record_.devices) {
        if (!device.facts.uuid) device.facts.uuid = made_up_uuid(record_.name, device.facts.ordinal);
    }
    const auto kept =
        visible_devices(record_.devices, ::secure_getenv("CUDA_VISIBLE_DEVICES"), ::secure_getenv("CUDA_DEVICE_ORDER"));
    if (!kept && record_.init_code == 0) record_.init_code = result::invalid_device;
    keep_devices(record_, kept.value_or(std::vector<int>()));
}

const platform::machines::PeerRecord* Machine::peer(int ordinal, int other) const {
    for (const auto& peer : record_.devices[ordinal].peers) {
        if (peer.ordinal == other) return &peer;
    }
    return nullptr;
}

const Machine& machine() {
    static const Machine* const instance = new Machine();  // never destroyed: used until the process ends
    return *instance;
}

namespace {

// The number after the prefix; nothing where the key does not begin with the prefix.
std::optional<int> number_behind(std::string_view prefix, std::string_view key) {
    if (key.substr(0, prefix.size()) != prefix) return std::nullopt;
    key.remove_prefix(prefix.size());
    int number = 0;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (problem != std::errc() || end != key.data() + key.size()) return std::nullopt;
    return number;
}

std::string cpus_of(const std::vector<NumaNode>& nodes, int id) {
    for (const NumaNode& node : nodes) {
        if (node.id == id) return node.cpus;
    }
    return {};
}

// "speed:lanes:most speed:most lanes:node:cpus"
std::string pci_of(const platform::machines::MachineRecord& record, int ordinal) {
    for (const platform::machines::DeviceRecord& device : record.devices) {
        if (device.facts.ordinal != ordinal || !device.facts.pci) continue;
        const PciPlace& pci = *device.facts.pci;
        std::string text;
        for (const int number : {pci.speed_mt_per_s, pci.lanes, pci.max_speed_mt_per_s, pci.max_lanes, pci.numa_node}) {
            text += std::to_string(number) + ':';
        }
        return text + pci.near_cpus;
    }
    return {};
}

bool fact(std::string_view key, const platform::machines::MachineRecord& record, std::string& value) {
    constexpr std::string_view params = "nvidia_params.";
    const MachineFacts& facts = record.facts;
    if (key == "machine") {
        value = record.name;
    } else if (const std::optional<int> node_id = number_behind("numa_cpus.", key)) {
        value = cpus_of(facts.numa_nodes, *node_id);
    } else if (const std::optional<int> ordinal = number_behind("pci.", key)) {
        value = pci_of(record, *ordinal);
    } else if (key.substr(0, params.size()) == params) {
        for (const auto& [name, text] : facts.nvidia_params) {
            if (name == key.substr(params.size())) {
                value = text;
                return true;
            }
        }
        return false;
    } else if (key == "imex_channels_major") {
        value = std::to_string(facts.imex_channels_major);
    } else if (key == "imex_channel_files") {
        value = std::to_string(facts.imex_channel_files);
    } else if (key == "addressing_mode") {
        value = facts.addressing_mode;
    } else if (key == "page_size_bytes") {
        value = std::to_string(facts.page_size_bytes);
    } else if (key == "kernel_release") {
        value = facts.kernel_release;
    } else if (key == "cpu_name") {
        value = facts.cpu_name;
    } else if (key == "numa_nodes") {
        for (const NumaNode& node : facts.numa_nodes) {
            if (!value.empty()) value += ',';
            value += std::to_string(node.id) + ':' + std::to_string(node.cpu_count) + ':' +
                     std::to_string(node.memory_bytes);
        }
    } else {
        return false;
    }
    return !value.empty() || key == "addressing_mode";
}

}  // namespace
}  // namespace isthmus::sim

extern "C" __attribute__((visibility("default"))) int isthmus_sim_fact(const char* key, char* value,
                                                                       size_t value_bytes) {
    const isthmus::sim::Machine& machine = isthmus::sim::machine();
    std::string text;
    if (!key || !machine.found() || !isthmus::sim::fact(key, machine.record(), text)) {
        return -1;
    }
    if (value && value_bytes > 0) std::snprintf(value, value_bytes, "%s", text.c_str());
    return static_cast<int>(text.size());
}
