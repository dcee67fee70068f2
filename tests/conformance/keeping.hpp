// SPDX-License-Identifier: Apache-2.0
// Runtimes that keep a stated amount of released memory.
#pragma once

#include "scenario.hpp"

#include <cstdint>
#include <type_traits>

namespace conformance {

inline RuntimeOptions options_with(std::uint64_t cache_bytes) {
    RuntimeOptions options;
    options.cache_bytes = cache_bytes;
    return options;
}

// body(device) or body(device, runtime), for every device of a runtime of its own, which keeps so much. Other scenarios
// use the shared runtime.
template <class Body>
void on_each_device_that_keeps(std::uint64_t bytes, Body body) {
    Runtime own = Runtime::open(options_with(bytes)).value();
    for (std::size_t at = 0; at < own.device_count(); ++at) {
        Device& device = *own.device(at).value();
        SCOPED_TRACE(device.name());
        if constexpr (std::is_invocable_v<Body&, Device&, Runtime&>) {
            body(device, own);
        } else {
            body(device);
        }
    }
}

}  // namespace conformance
