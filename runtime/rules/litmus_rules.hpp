// SPDX-License-Identifier: Apache-2.0
// capabilities × finding → capabilities. Pure. Trials only narrow: no rule's answer changes from no to yes.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/litmus.hpp>

#include <string_view>

namespace isthmus::rules {

// Was the finding made on this device, by this driver, and not in a simulation of another machine? A no states the
// reason.
AccessAnswer finding_applies(const LitmusFinding& finding, const MachineFacts& machine, const DeviceFacts& device);
// finding_applies() for a trial of any kind, which was made on device `on`, with this driver, simulated or not.
AccessAnswer made_here(const Uuid& on, int driver_version, bool simulated, const MachineFacts& machine,
                       const DeviceFacts& device, std::string_view remedy);
// The device's capabilities with the finding applied. Results without a forbidden outcome change nothing.
Capabilities narrowed(Capabilities device, const LitmusFinding& finding);

// Why a kind is narrower than its attributes allow; "yes" with an empty reason: no trial contradicts them.
AccessAnswer update_trials(const Capabilities& device, MemoryKind kind);
AccessAnswer load_store_trials(const Capabilities& device, MemoryKind kind, int width_bytes);

}  // namespace isthmus::rules
