// Reading a device's facts and making its Driver; used by open_devices().
#pragma once

#include "library.hpp"

#include <memory>
#include <span>
#include <vector>

namespace isthmus::platform::cuda {

// Asks the driver who a device is, and for these attributes (none are named: for all); makes no context. Attributes
// that the driver does not know (it answers 1) are absent, those it refuses otherwise are kept with their code.
DeviceFacts read_facts(const Api& api, int ordinal, CUdevice device, std::span<const int> attributes);
// One call for each attribute, about 150.
std::vector<AttributeFact> read_all_attributes(const Api& api, CUdevice device);

// What the simulated machine states in the operating system's place; what its record does not say stays as it is.
void read_simulated_machine(isthmus_sim_fact_fn fact, MachineFacts& machine);
// Nothing where the played record does not say.
std::optional<PciPlace> read_simulated_pci(isthmus_sim_fact_fn fact, int ordinal);
// Where the device is attached: from the PCI attributes among `facts` and the system's files, or from the played
// record.
std::optional<PciPlace> read_pci(const Library& library, const DeviceFacts& facts);

// `context` is the library's.
std::unique_ptr<Driver> make_device(std::shared_ptr<const Library> library, DeviceFacts facts, DeviceContext& context);

}  // namespace isthmus::platform::cuda
