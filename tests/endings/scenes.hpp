// SPDX-License-Identifier: Apache-2.0
// Ways in which a program ends that holds what this library made.
#pragma once

#include <cstddef>

namespace endings {

struct Scene {
    const char* name;
    // Says "ready" on standard output when everything is open, and ends the process with exit code `ended`. One that
    // returns lets its caller do that.
    void (*play)();
};
inline constexpr int ended = 7;

extern const Scene scenes[];
extern const std::size_t scene_count;

}  // namespace endings
