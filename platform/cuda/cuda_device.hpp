// SPDX-License-Identifier: Apache-2.0
// Reads a device's facts and makes its Driver; used by open_devices().
#pragma once

#include "library.hpp"

#include <memory>
#include <span>
#include <vector>

namespace isthmus::platform::cuda {

// Queries a device's identity and these attributes (none listed: all); creates no context. Attributes unknown to the
// driver (it answers 1) are absent; those it refuses otherwise are kept with their code.
DeviceFacts read_facts(const Api& api, int ordinal, CUdevice device, std::span<const int> attributes);
// One driver call per attribute, about 150.
std::vector<AttributeFact> read_all_attributes(const Api& api, CUdevice device);

// Sets the facts that the simulated machine states in place of the system; facts missing in its record stay unchanged.
void read_simulated_machine(isthmus_sim_fact_fn fact, MachineFacts& machine);
// Nothing if the simulated record does not say.
std::optional<PciPlace> read_simulated_pci(isthmus_sim_fact_fn fact, int ordinal);
// Where the device is attached: from PCI attributes in `facts` and the system's files, or the simulated record.
std::optional<PciPlace> read_pci(const Library& library, const DeviceFacts& facts);

// `context` is owned by the library.
std::unique_ptr<Driver> make_device(std::shared_ptr<const Library> library, DeviceFacts facts, DeviceContext& context);

}  // namespace isthmus::platform::cuda
