// SPDX-License-Identifier: Apache-2.0
// Ways in which a program exits while it still holds objects of this library.
#pragma once

#include <cstddef>

namespace endings {

struct Scene {
    const char* name;
    // Prints "ready" on standard output when everything is open, and ends the process with exit code `ended`. A scene
    // that returns leaves the exit to its caller.
    void (*play)();
};
inline constexpr int ended = 7;

extern const Scene scenes[];
extern const std::size_t scene_count;

}  // namespace endings
