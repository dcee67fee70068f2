// SPDX-License-Identifier: Apache-2.0
// Capabilities for the tests of the rules: those of known machines, and those of any combination of attributes.
#pragma once

#include <gtest/gtest.h>

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>
#include <machines/record.hpp>
#include <platform/detect.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace some_devices {

using namespace isthmus;

inline Capabilities of_machine(const std::string& name, std::size_t device = 0) {
    const auto record = platform::machines::find_record(name).value();
    return platform::detect(record.facts, record.devices.at(device).facts);
}

inline Capabilities cpu() {
    return platform::detect(MachineFacts{}, DeviceFacts{});
}

// The attributes that the rules depend on, as bits of a number.
inline constexpr std::array<int, 9> deciding = {18, 41, 83, 86, 88, 89, 99, 100, 147};

// `gpu_is_node`: the GPU's memory is a NUMA node of the system (130, 131).
inline Capabilities of_bits(unsigned bits, const HostAtomics& atomics = {}, bool gpu_is_node = false) {
    MachineFacts machine;
    machine.driver_version = 13000;
    DeviceFacts device;
    device.ordinal = 0;
    device.host_atomics = atomics;
    for (std::size_t i = 0; i < deciding.size(); ++i) {
        device.attributes.push_back({deciding[i], static_cast<int>(bits >> i & 1u), 0});
    }
    if (gpu_is_node) device.attributes.insert(device.attributes.end(), {{130, 1, 0}, {131, 7, 0}});
    return platform::detect(machine, device);
}
inline bool bit(unsigned bits, int attribute) {
    for (std::size_t i = 0; i < deciding.size(); ++i) {
        if (deciding[i] == attribute) return (bits >> i & 1u) != 0;
    }
    ADD_FAILURE() << attribute;
    return false;
}
inline constexpr unsigned combinations = 1u << deciding.size();

inline constexpr std::array<const char*, 12> gpu_machines = {"h200",       "rtx-hmm", "rtx-wsl2", "igx",
                                                             "orin",       "thor",    "gb10",     "gh200-numa",
                                                             "gh200-cdmm", "gb200",   "b300-hmm", "station"};

template <class Each>
void for_every_kind(Each each) {
    for (int kind = 0; kind < memory_kind_count; ++kind) each(static_cast<MemoryKind>(kind));
}

// Whether the GPU of these bits may access memory of this kind, by the documented promises.
inline Verdict promised_to_device(unsigned bits, MemoryKind kind) {
    switch (kind) {
        case MemoryKind::host:
        case MemoryKind::host_numa: return bit(bits, 88) ? Verdict::yes : Verdict::no;  // A3
        case MemoryKind::pinned:
        case MemoryKind::write_combined: return bit(bits, 41) ? Verdict::yes : Verdict::no;  // A2
        case MemoryKind::registered: return bit(bits, 41) && bit(bits, 99) ? Verdict::yes : Verdict::no;
        case MemoryKind::managed:
        case MemoryKind::managed_pool: return bit(bits, 83) ? Verdict::yes : Verdict::no;  // A7
        case MemoryKind::device:
        case MemoryKind::pool:
        case MemoryKind::graph:
        case MemoryKind::imported: return Verdict::yes;  // A1
        case MemoryKind::unknown:
        case MemoryKind::vmm: break;  // A9, A16
    }
    return Verdict::not_verified;
}

}  // namespace some_devices
