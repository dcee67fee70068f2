// SPDX-License-Identifier: Apache-2.0
// Uuid: identifies one GPU or one MIG instance, uniquely and the same in every process.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus {
inline namespace v0 {

// As cuDeviceGetUuid_v2 returns it. All bytes 0: none (the CPU device).
struct ISTHMUS_API Uuid {
    std::array<std::uint8_t, 16> bytes{};
    bool mig = false;  // of a MIG instance; its GPU has another UUID

    // "GPU-01234567-89ab-cdef-0123-456789abcdef" or "MIG-…": printed by nvidia-smi -L, and accepted by
    // CUDA_VISIBLE_DEVICES.
    std::string text() const;
    // Accepts either form, or the five groups alone; digits of either case. Errors: invalid_argument.
    static Result<Uuid> parse(std::string_view text);

    explicit operator bool() const noexcept { return bytes != decltype(bytes){}; }
    // The bytes alone identify the device.
    friend bool operator==(const Uuid& a, const Uuid& b) noexcept { return a.bytes == b.bytes; }
};

}  // namespace v0
}  // namespace isthmus
