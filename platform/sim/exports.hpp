// SPDX-License-Identifier: Apache-2.0
// The driver's functions that the simulator defines, and an index for each, by which calls are counted.
#pragma once

#include "array_types.hpp"
#include "types.hpp"

namespace isthmus::sim {

enum class CallId : int {
#define ISTHMUS_SIM_EXPORT(symbol, parameters) symbol,
#include "exports.def"
#undef ISTHMUS_SIM_EXPORT
    count
};
inline constexpr int call_count = static_cast<int>(CallId::count);
const char* name(CallId id) noexcept;
const char* name_of_result(Result code) noexcept;  // CUDA_ERROR_…; "an unknown code" where it has none

extern "C" {
#define ISTHMUS_SIM_EXPORT(symbol, parameters) __attribute__((visibility("default"))) Result symbol parameters;
#include "exports.def"
#undef ISTHMUS_SIM_EXPORT
#define ISTHMUS_SIM_PER_THREAD(symbol, function, parameters, arguments) \
    __attribute__((visibility("default"))) Result symbol parameters;
#include "per_thread.def"
#undef ISTHMUS_SIM_PER_THREAD
}

}  // namespace isthmus::sim
