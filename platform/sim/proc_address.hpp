// SPDX-License-Identifier: Apache-2.0
// Which function a name and a version mean (cuGetProcAddress).
#pragma once

namespace isthmus::sim {

struct FoundProcedure {
    bool known = false;        // some version of the driver has this name
    void* function = nullptr;  // the newest variant that is not newer than the version asked for
};
FoundProcedure find_procedure(const char* base, int version, bool per_thread) noexcept;

}  // namespace isthmus::sim
