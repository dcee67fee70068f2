// SPDX-License-Identifier: Apache-2.0
// Finds the function for a name and a version (cuGetProcAddress).
#pragma once

namespace isthmus::sim {

struct FoundProcedure {
    bool known = false;        // some version of the driver has this name
    void* function = nullptr;  // the newest variant that is not newer than the requested version
};
FoundProcedure find_procedure(const char* base, int version, bool per_thread) noexcept;

}  // namespace isthmus::sim
