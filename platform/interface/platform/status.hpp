// SPDX-License-Identifier: Apache-2.0
// The result of a driver call, and the opaque handles that facets exchange.
#pragma once

#include <isthmus/result.hpp>

#include <cstdint>

namespace isthmus::platform {

// driver_code is the CUresult or errno; call is the function's name (static storage).
struct [[nodiscard]] Status {
    Code code = Code::ok;
    int driver_code = 0;
    const char* call = "";
    bool ok() const noexcept { return code == Code::ok; }
};

// Values of the implementation; 0 is never a valid handle.
enum class StreamHandle : std::uintptr_t { none = 0 };
enum class EventHandle : std::uintptr_t { none = 0 };
enum class FunctionHandle : std::uintptr_t { none = 0 };
enum class PoolHandle : std::uintptr_t { none = 0 };
enum class GraphHandle : std::uintptr_t { none = 0 };
enum class GraphInstanceHandle : std::uintptr_t { none = 0 };
enum class NodeHandle : std::uintptr_t { none = 0 };  // node of a graph; valid as long as the graph

}  // namespace isthmus::platform
