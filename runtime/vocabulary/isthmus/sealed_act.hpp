// SPDX-License-Identifier: Apache-2.0
// What a call would do that a loop with a deadline cannot afford. seal.hpp refuses it.
#pragma once

#include <cstdint>
#include <string_view>

namespace isthmus {
inline namespace v0 {

enum class SealedAct : std::uint8_t {
    use_heap,         // operator new in this process
    allocate_memory,  // memory of a device or a host, from the driver or the system
    register_memory,  // page-lock memory of the host (cuMemHostRegister)
    map_memory,       // reserve addresses, map memory there, change who has access
    load_code,        // a kernel's image or a module
    make_object,      // an object of the driver: a stream, an event, a graph, a pool
    enter_system,     // another call that reaches the driver's kernel module or the system
};
inline constexpr int sealed_act_count = 7;

// What the counter counted: `call` made `times` times what `act` says, or was refused before it did.
struct SealedPlace {
    std::string_view call;  // static storage: "creating a stream", "cuEventCreate"
    SealedAct act = SealedAct::use_heap;
    std::uint64_t times = 0;

    bool operator==(const SealedPlace&) const = default;
};

}  // namespace v0
}  // namespace isthmus
