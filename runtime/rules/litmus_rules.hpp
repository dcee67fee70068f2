// capabilities × finding → capabilities. Pure. Trials only ever take away: no answer of any rule goes from no to yes.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/litmus.hpp>

#include <string_view>

namespace isthmus::rules {

// Was the finding made on this very device, by this driver, and not in a simulation of another machine? Yes, or no with
// the reason.
AccessAnswer finding_applies(const LitmusFinding& finding, const MachineFacts& machine, const DeviceFacts& device);
// The same of whatever was tried on a device: `on` which, with which driver, played by the simulator or not.
AccessAnswer made_here(const Uuid& on, int driver_version, bool simulated, const MachineFacts& machine,
                       const DeviceFacts& device, std::string_view remedy);
// What the device may do once the finding counts. Results without a forbidden outcome change nothing.
Capabilities narrowed(Capabilities device, const LitmusFinding& finding);

// Why a kind is not what the rules make of its attributes; an empty reason and "yes": no trial speaks against it.
AccessAnswer update_trials(const Capabilities& device, MemoryKind kind);
AccessAnswer load_store_trials(const Capabilities& device, MemoryKind kind, int width_bytes);

}  // namespace isthmus::rules
