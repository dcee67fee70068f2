// SPDX-License-Identifier: Apache-2.0
// Work of other code as a launch sees a kernel: judged, claimed, copied and opened by the same code.
#pragma once

#include <isthmus/detail/native_request.hpp>
#include <isthmus/kernel_info.hpp>

#include "staged_launch.hpp"

#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Without a symbol, which tells it from a kernel (is_native()). Lives on the stack: what outlives the call has the
// name.
inline KernelInfo described(const NativeRequest& request) noexcept {
    return {request.name,
            nullptr,
            "",
            request.parameters,
            request.count,
            static_cast<std::uint32_t>(request.count * sizeof(NativeView)),
            1,
            0,
            nullptr,
            nullptr};
}

// Opens all buffers as host views, for work on the CPU device.
inline Result<void> open_all(LaunchScopes& scopes, const NativeRequest& request) {
    for (std::uint32_t at = 0; at < request.count; ++at) {
        if (Result<void> opened = scopes.open(at); !opened) return opened;
    }
    return {};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
