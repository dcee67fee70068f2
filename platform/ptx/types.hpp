// SPDX-License-Identifier: Apache-2.0
// The types of PTX.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus::ptx {

enum class Type : std::uint8_t {
    none,
    pred,
    b8,
    b16,
    b32,
    b64,
    b128,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    f16x2,
    bf16,
    bf16x2,
    f32,
    f64
};

constexpr std::uint32_t size_bytes(Type type) noexcept {
    switch (type) {
        case Type::none: return 0;
        case Type::pred:
        case Type::b8:
        case Type::u8:
        case Type::s8: return 1;
        case Type::b16:
        case Type::u16:
        case Type::s16:
        case Type::f16:
        case Type::bf16: return 2;
        case Type::b32:
        case Type::u32:
        case Type::s32:
        case Type::f16x2:
        case Type::bf16x2:
        case Type::f32: return 4;
        case Type::b64:
        case Type::u64:
        case Type::s64:
        case Type::f64: return 8;
        case Type::b128: return 16;
    }
    return 0;
}
constexpr bool is_signed(Type type) noexcept {
    return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}
constexpr bool is_float(Type type) noexcept {
    return type >= Type::f16;
}
// All bits of a register of this size.
constexpr std::uint64_t mask_of(std::uint32_t bytes) noexcept {
    return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
}
// ".u32" and so on; nullopt: no type, or one that is not known here.
std::optional<Type> type_named(std::string_view dotted) noexcept;

enum class Space : std::uint8_t { generic, param, local, shared, constant, global };

}  // namespace isthmus::ptx
