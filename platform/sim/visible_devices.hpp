// SPDX-License-Identifier: Apache-2.0
// Which devices of a machine the process sees, and in which order: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER. Pure.
#pragma once

#include <machines/record.hpp>

#include <optional>
#include <vector>

namespace isthmus::sim {

// Positions in `devices`, in the order in which the driver numbers them. `visible` and `order`: the variables' values;
// nullptr: not set.
// Documented: numbers, or UUIDs or unambiguous beginnings of them behind "GPU-", with commas between; the list ends
// before the first entry that names no device. Observed (580, H100): an empty value names none; numbers are read as C
// reads them (0x0, +0, 00); a device that is there twice, or an order that is none: nothing, and cuInit answers 101.
// The order PCI_BUS_ID numbers by domain, bus and device; FASTEST_FIRST keeps the record's.
std::optional<std::vector<int>> visible_devices(const std::vector<platform::machines::DeviceRecord>& devices,
                                                const char* visible, const char* order);

// Keeps these devices of the record, numbered anew, and the ways between them.
void keep_devices(platform::machines::MachineRecord& record, const std::vector<int>& kept);

}  // namespace isthmus::sim
