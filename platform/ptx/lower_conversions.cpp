// SPDX-License-Identifier: Apache-2.0
// Decodes conversions, and the names of rounding modes.
#include "lowering.hpp"

#include <utility>
#include <vector>

namespace isthmus::ptx {

Rounding rounding_named(std::string_view name) {
    if (name == "rz" || name == "rzi") return Rounding::zero;
    if (name == "rm" || name == "rmi") return Rounding::down;
    if (name == "rp" || name == "rpi") return Rounding::up;
    return Rounding::nearest;
}

// Pairs of 8-bit floats: the first operand becomes the high half.
bool Lowering::convert_small() {
    Qualifiers& words = *words_;
    const bool e4m3 = words.take(".e4m3x2"), e5m2 = !e4m3 && words.take(".e5m2x2");
    if (!e4m3 && !e5m2) return false;
    const Type other = words.types.size() == 1 ? words.type() : Type::none;
    // Which type stands first is the result's.
    const bool narrows =
        now_->qualifiers.size() > 1 && now_->qualifiers.back() != ".e4m3x2" && now_->qualifiers.back() != ".e5m2x2";
    const bool nearest = words.take(".rn"), saturates = words.take(".satfinite");
    const bool relu = words.take(".relu");
    const bool lawful = nearest && (narrows ? saturates && (other == Type::f32 || other == Type::f16x2)
                                            : !saturates && other == Type::f16x2);
    const Run run = lawful ? small_conversion_run(e4m3, narrows ? other : Type::b16) : nullptr;
    if (run == nullptr) return refuse_this("is not modelled"), true;
    const bool done = !narrows               ? simple(run, Type::b32, {Type::b16})
                      : other == Type::f16x2 ? simple(run, Type::b16, {Type::b32})
                                             : simple(run, Type::b16, {Type::f32, Type::f32});
    if (done) out_.ops.back().flag = relu;
    return true;
}

// cvt.pack.sat.TYPE.s32 d, a, b: a lies above b; fewer than 16 bits each have the low bits of c above them.
void Lowering::convert_and_pack() {
    constexpr std::pair<std::string_view, std::uint32_t> small[] = {{".u2", 2}, {".s2", 2}, {".u4", 4}, {".s4", 4}};
    PackedIntegers packed;
    std::vector<Type> types = words_->types;
    for (const auto& [name, bits] : small) {
        if (packed.bits == 0 && words_->take(name)) packed = {bits, name[1] == 's'};
    }
    if (packed.bits == 0 && !types.empty()) {
        packed = {8 * size_bytes(types[0]), is_signed(types[0])};
        const bool is_integer =
            types[0] == Type::u8 || types[0] == Type::s8 || types[0] == Type::u16 || types[0] == Type::s16;
        if (!is_integer) return refuse_this("is not modelled");
        types.erase(types.begin());
    }
    const bool has_rest = packed.bits < 16;
    const bool right = packed.bits != 0 && words_->take(".sat") && !types.empty() && types[0] == Type::s32 &&
                       types.size() == (has_rest ? 2u : 1u) && (!has_rest || types[1] == Type::b32);
    if (!right) return refuse_this("is not modelled");
    const Run run = pack_integers_run();
    const bool done = has_rest ? simple(run, Type::u32, {Type::s32, Type::s32, Type::b32})
                               : simple(run, Type::u32, {Type::s32, Type::s32});
    if (!done) return;
    out_.ops.back().value = packed.bits;
    out_.ops.back().flag = packed.is_signed;
}

bool Lowering::convert() {
    if (now_->opcode != "cvt") return false;
    if (words_->take(".pack")) return convert_and_pack(), true;
    if (words_->types.size() == 1 && words_->type() == Type::f32 && words_->take(".tf32")) {
        if (!words_->take(".rna")) return refuse_this("is not modelled"), true;
        return simple(tensor_float_run(), Type::b32, {Type::f32}), true;
    }
    if (convert_small()) return true;
    constexpr std::string_view modes[] = {".rn", ".rz", ".rm", ".rp", ".rni", ".rzi", ".rmi", ".rpi"};
    if (words_->types.size() != 2) return refuse_this("is not modelled"), true;
    Conversion conversion;
    conversion.to = words_->type(0);
    conversion.from = words_->type(1);
    const std::string_view mode = words_->take_one_of(modes);
    conversion.rounding = rounding_named(mode);
    conversion.to_integral = mode.ends_with('i');
    conversion.ftz = words_->take(".ftz");
    conversion.saturate = words_->take(".sat");
    conversion.relu = words_->take(".relu");
    const bool to_float = is_float(conversion.to), from_float = is_float(conversion.from);
    const std::uint64_t options =
        (conversion.ftz ? 1u : 0u) | (conversion.saturate ? 2u : 0u) | (conversion.relu ? 4u : 0u);
    if (conversion.to == Type::f16x2 || conversion.to == Type::bf16x2) {
        if (conversion.from != Type::f32 || (mode != "rn" && mode != "rz")) return refuse_this("is not modelled"), true;
        if (!simple(pair_conversion_run(conversion.to), Type::b32, {Type::f32, Type::f32})) return true;
        out_.ops.back().mode = static_cast<std::uint8_t>(conversion.rounding);
        out_.ops.back().value2 = options;
        return true;
    }
    const Run run = conversion_run(conversion);
    const bool narrows = to_float && from_float && size_bytes(conversion.to) < size_bytes(conversion.from);
    const bool same_size = to_float && from_float && size_bytes(conversion.to) == size_bytes(conversion.from);
    const bool mixed_halves = same_size && conversion.to != conversion.from;
    const bool needs_rounding = (to_float && !from_float) || narrows || mixed_halves;
    // PTX ISA: what must have a rounding mode, and which. An integer result needs one for integers.
    const bool wrong = (from_float && !to_float && !conversion.to_integral) ||
                       (needs_rounding && (mode.empty() || conversion.to_integral)) ||
                       (!from_float && !to_float && !mode.empty()) ||
                       (conversion.relu && !(to_float && size_bytes(conversion.to) == 2));
    if (mode.empty() && ((from_float && !to_float) || needs_rounding))
        fault("Rounding modifier required for instruction 'cvt'");
    if (run == nullptr || wrong) return refuse_this("is not modelled"), true;
    if (!simple(run, conversion.to, {conversion.from})) return true;
    Op& op = out_.ops.back();
    op.mode = static_cast<std::uint8_t>(conversion.rounding);
    op.flag = conversion.to_integral;
    op.value2 = options;
    const auto binding = find(now_->operands[0].name);
    op.value = binding ? mask_of(size_bytes(binding->type)) : mask_of(size_bytes(conversion.to));
    return true;
}

}  // namespace isthmus::ptx
