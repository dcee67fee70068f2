// SPDX-License-Identifier: Apache-2.0
// The four axes, derived from features that are already decided.
#pragma once

#include <isthmus/capability.hpp>

namespace isthmus::platform {

Translation translation_of(const Capabilities& capabilities) noexcept;
MemoryModel memory_of(const Capabilities& capabilities) noexcept;
ManagedModel managed_of(const Capabilities& capabilities) noexcept;
LinkAtomics link_atomics_of(const Capabilities& capabilities) noexcept;

}  // namespace isthmus::platform
