// SPDX-License-Identifier: Apache-2.0
// capabilities with a profile × declared use × size → the measured choice. Pure. Whether the choice is allowed is the
// allocation policy's question.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/profile.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace isthmus::rules {

// Was it measured on this device, with this driver and this kernel, under the same memory model, and not on a simulated
// machine that this is not? A no states the reason.
AccessAnswer profile_applies(const DeviceProfile& profile, const MachineFacts& machine, const DeviceFacts& device,
                             const Capabilities& capabilities);

// What is wrong with the choices, as one clause; empty: nothing. measured_choice() needs their order.
std::string_view fault_of(const std::vector<ProfileChoice>& choices);

// The profile's choice for this use and size: of the most passes that the use reaches, and of the largest size that
// `bytes` reaches. nullptr: there is none, or the use is none that profiles measure (one side never uses the memory, or
// both sides update it at the same time).
const ProfileChoice* measured_choice(const Capabilities& device, const SharedUse& use, std::size_t bytes);

// The sentence of explain() for a measured choice of this kind; static storage.
std::string_view measured_reason(MemoryKind kind);

}  // namespace isthmus::rules
