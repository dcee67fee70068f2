// SPDX-License-Identifier: Apache-2.0
// The four axes, derived from features that are already decided.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>

#include <string_view>

namespace isthmus::platform {

Translation translation_of(const Capabilities& capabilities) noexcept;
// `coherent_mode` is CoherentGPUMemoryMode of /proc/driver/nvidia/params, one value for the whole machine.
MemoryModel memory_of(const Capabilities& capabilities, std::string_view coherent_mode) noexcept;
ManagedModel managed_of(const Capabilities& capabilities) noexcept;
LinkAtomics link_atomics_of(const Capabilities& capabilities) noexcept;

}  // namespace isthmus::platform
