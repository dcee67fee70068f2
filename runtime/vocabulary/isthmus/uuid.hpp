// Uuid: the name of one GPU, or of one MIG instance, that no other has and that stays from process to process.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus::inline v0 {

// As cuDeviceGetUuid_v2 answers. All bytes 0: none (the CPU device).
struct ISTHMUS_API Uuid {
    std::array<std::uint8_t, 16> bytes{};
    bool mig = false;  // of a MIG instance: the driver has another one for the GPU that it is a part of

    // "GPU-01234567-89ab-cdef-0123-456789abcdef" or "MIG-…": what nvidia-smi -L prints and CUDA_VISIBLE_DEVICES takes.
    std::string text() const;
    // Either form, or the five groups alone; digits of either case. Errors: invalid_argument.
    static Result<Uuid> parse(std::string_view text);

    explicit operator bool() const noexcept { return bytes != decltype(bytes){}; }
    // The bytes say it all.
    friend bool operator==(const Uuid& a, const Uuid& b) noexcept { return a.bytes == b.bytes; }
};

}  // namespace isthmus::inline v0
