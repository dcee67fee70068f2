// SPDX-License-Identifier: Apache-2.0
// Decodes arithmetic and operations on bits.
#include "lowering.hpp"

#include <algorithm>

namespace isthmus::ptx {
namespace {

constexpr std::string_view roundings[] = {".rn", ".rz", ".rm", ".rp"};

Type doubled(Type type) {
    switch (type) {
        case Type::u16: return Type::u32;
        case Type::s16: return Type::s32;
        case Type::u32: return Type::u64;
        case Type::s32: return Type::s64;
        default: return Type::none;
    }
}
bool is_half(Type type) {
    return type == Type::f16 || type == Type::f16x2 || type == Type::bf16 || type == Type::bf16x2;
}
std::string_view name_of(Type type) {
    return type == Type::u32 ? ".u32" : type == Type::s32 ? ".s32" : type == Type::b32 ? ".b32" : ".?";
}

}  // namespace

bool Lowering::integer_arithmetic(std::string_view opcode, Type type) {
    std::string name(opcode);
    const bool is_24 = opcode == "mul24" || opcode == "mad24";
    const bool product = opcode == "mul" || opcode == "mad" || opcode == "madc" || is_24;
    bool wide = false;
    if (product) {
        constexpr std::string_view parts[] = {".lo", ".hi", ".wide"};
        const std::string_view part = words_->take_one_of(parts);
        if (part.empty()) return refuse_this("needs .lo, .hi or .wide"), false;
        wide = part == "wide";
        name += "." + std::string(part);
    }
    if (words_->take(".sat")) name += ".sat";
    if (words_->take(".cc")) name += ".cc";
    const bool relu = type == Type::s32 && (opcode == "min" || opcode == "max") && words_->take(".relu");
    if (relu) name += ".relu";
    const Type wider = wide ? doubled(type) : type;
    const Run run = integer_run(name, relu ? Type::b32 : type);
    const bool three = opcode == "mad" || opcode == "madc" || opcode == "mad24" || opcode == "sad";
    const bool one = opcode == "abs" || opcode == "neg";
    if (one) return simple(run, type, {type});
    return three ? simple(run, wider, {type, type, wider}) : simple(run, wider, {type, type});
}

bool Lowering::float_arithmetic(std::string_view opcode, Type type) {
    std::string name(opcode == "mad" ? "fma" : opcode);
    const bool ftz = words_->take(".ftz"), saturate = words_->take(".sat");
    const bool approximate = words_->take(".approx");
    const bool full = words_->take(".full");
    const std::string_view rounding = words_->take_one_of(roundings);
    if (approximate) name += ".approx";
    if (full) name += ".full";
    if (words_->take(".NaN")) name += ".NaN";
    if (words_->take(".xorsign")) name += words_->take(".abs") ? ".xorsign.abs" : ".xorsign";
    const bool rounded = opcode == "add" || opcode == "sub" || opcode == "mul" || name == "fma" || name == "div" ||
                         name == "rcp" || name == "sqrt";
    if (!rounding.empty() && !rounded) return refuse_this("is not modelled"), false;
    const bool needs_rounding =
        opcode == "div" || opcode == "rcp" || opcode == "sqrt" || opcode == "fma" || opcode == "mad";
    if (needs_rounding && !is_half(type) && rounding.empty() && !approximate && !full)
        fault("Rounding modifier required for instruction '" + std::string(opcode) + "'");
    const bool three = name == "fma";
    const bool two = opcode == "add" || opcode == "sub" || opcode == "mul" || opcode == "div" || opcode == "min" ||
                     opcode == "max" || opcode == "copysign";
    if (is_half(type)) {
        const bool relu = words_->take(".relu");
        if (!rounding.empty() && rounding != "rn") return refuse_this("is not modelled"), false;
        const Run run = half_run(name, type);
        const bool emitted = three ? simple(run, type, {type, type, type})
                             : two ? simple(run, type, {type, type})
                                   : simple(run, type, {type});
        if (!emitted) return false;
        out_.ops.back().flag = ftz;
        out_.ops.back().value2 = (saturate ? 1u : 0u) | (relu ? 2u : 0u);
        return true;
    }
    const Run run = float_run(name, type, ftz, saturate);
    const bool emitted = three ? simple(run, type, {type, type, type})
                         : two ? simple(run, type, {type, type})
                               : simple(run, type, {type});
    if (emitted) out_.ops.back().mode = static_cast<std::uint8_t>(rounding_named(rounding));
    return emitted;
}

bool Lowering::arithmetic() {
    constexpr std::string_view both[] = {"add", "sub", "mul", "mad", "div", "min", "max", "abs", "neg"};
    constexpr std::string_view integers[] = {"addc", "subc", "madc", "rem", "sad", "mul24", "mad24"};
    constexpr std::string_view floats[] = {"fma", "rcp", "sqrt", "rsqrt", "sin",
                                           "cos", "lg2", "ex2",  "tanh",  "copysign"};
    const auto in = [&](const auto& list) {
        return std::find(std::begin(list), std::end(list), now_->opcode) != std::end(list);
    };
    if (!in(both) && !in(integers) && !in(floats)) return false;
    if (words_->types.empty() && (now_->opcode == "add" || now_->opcode == "min" || now_->opcode == "max")) {
        constexpr std::string_view pairs[] = {".u16x2", ".s16x2"};
        std::string name = std::string(now_->opcode) + "." + std::string(words_->take_one_of(pairs));
        if (words_->take(".relu")) name += ".relu";
        simple(integer_run(name, Type::b32), Type::b32, {Type::b32, Type::b32});
        return true;
    }
    if (words_->types.size() != 1) {
        refuse_this("is not modelled");
        return true;
    }
    const Type type = words_->type();
    if (is_float(type) ? in(integers) : in(floats)) {
        refuse_this("is not modelled");
    } else if (is_float(type)) {
        float_arithmetic(now_->opcode, type);
    } else {
        integer_arithmetic(now_->opcode, type);
    }
    return true;
}

bool Lowering::bits() {
    const std::string_view opcode = now_->opcode;
    const Type type = words_->type();
    const auto run = [&](std::string_view name) { return integer_run(name, type); };
    if (opcode == "and" || opcode == "or" || opcode == "xor" || opcode == "not") {
        if (type != Type::pred) {
            opcode == "not" ? simple(run(opcode), type, {type}) : simple(run(opcode), type, {type, type});
            return true;
        }
        const bool one = opcode == "not";
        if (!want(one ? 2 : 3, one ? 2 : 3)) return true;
        const std::int32_t a = predicate(now_->operands[1]);
        const bool negated = predicate_negated_;
        const std::int32_t b = one ? 0 : predicate(now_->operands[2]);
        const bool b_negated = !one && predicate_negated_;
        const std::int32_t p = predicate(now_->operands[0], true);
        if (p < 0) return true;
        Op& op = emit(predicate_run(opcode));
        op.a = a;
        op.b = b;
        op.p = p;
        op.flag = negated;
        op.value2 = b_negated ? 1 : 0;
        return true;
    }
    if (opcode == "cnot") return simple(run(opcode), type, {type}), true;
    if (opcode == "shl" || opcode == "shr") return simple(run(opcode), type, {type, Type::u32}), true;
    if (opcode == "popc" || opcode == "clz") return simple(run(opcode), Type::u32, {type}), true;
    if (opcode == "brev") return simple(run(opcode), type, {type}), true;
    if (opcode == "bfind") {
        return simple(run(words_->take(".shiftamt") ? "bfind.shiftamt" : "bfind"), Type::u32, {type}), true;
    }
    if (opcode == "fns") return simple(run(opcode), type, {type, Type::u32, Type::s32}), true;
    if (opcode == "bfe") return simple(run(opcode), type, {type, Type::u32, Type::u32}), true;
    if (opcode == "bfi") {
        const Run insert = run(opcode);
        if (insert == nullptr) return refuse_this("is not modelled"), true;
        if (!want(5, 5)) return true;
        const Place a = value(now_->operands[1], type), b = value(now_->operands[2], type);
        const Place c = value(now_->operands[3], Type::u32), e = value(now_->operands[4], Type::u32);
        const Place d = destination(now_->operands[0], type);
        Op& op = emit(insert);
        op.d = d;
        op.a = a;
        op.b = b;
        op.c = c;
        op.extra = static_cast<std::uint32_t>(e);
        return true;
    }
    if (opcode == "lop3") {
        const Run logic = run(opcode);
        if (logic == nullptr) return refuse_this("is not modelled"), true;
        const bool with_or = words_->take(".or"), combines = with_or || words_->take(".and");
        if (!want(combines ? 6 : 5, combines ? 6 : 5)) return true;
        const Operand& result = now_->operands[0];
        if (combines != (result.kind == OperandKind::pair)) return refuse_this("needs a predicate as its result"), true;
        const Operand& table = now_->operands[4];
        if (table.kind != OperandKind::integer || table.value > 255)
            return refuse_this("needs a table of 8 bits"), true;
        const Place a = value(now_->operands[1], type), b = value(now_->operands[2], type),
                    c = value(now_->operands[3], type);
        const Place d = destination(combines ? result.elements[0] : result, type);
        Op made;
        made.d = d;
        made.a = a;
        made.b = b;
        made.c = c;
        made.value = table.value;
        emit(logic, OpKind::plain, made);
        if (!combines) return true;
        // p = (d != 0) or/and q
        Op test;
        test.a = d;
        test.b = constant(0);
        test.mode = static_cast<std::uint8_t>(Comparison::ne);
        end_parts(test, with_or ? Combine::or_ : Combine::and_, 5);
        test.p = predicate(result.elements[1], true);
        emit(compare_run(Type::b32, false), OpKind::plain, test);
        return true;
    }
    constexpr std::string_view ways[] = {".l", ".r"}, ends[] = {".wrap", ".clamp"};
    constexpr std::string_view modes[] = {".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"}, halves[] = {".lo", ".hi"};
    if (opcode == "shf") {
        std::string name = "shf.";
        name += words_->take_one_of(ways);
        name += ".";
        name += words_->take_one_of(ends);
        return simple(run(name), type, {type, type, Type::u32}), true;
    }
    if (opcode == "bmsk" || opcode == "szext") {
        const std::string name = std::string(opcode) + "." + std::string(words_->take_one_of(ends));
        return simple(run(name), type, {type, Type::u32}), true;
    }
    if (opcode == "prmt") {
        std::string name = "prmt";
        const std::string_view mode = words_->take_one_of(modes);
        if (!mode.empty()) name += "." + std::string(mode);
        return simple(run(name), type, {type, type, type}), true;
    }
    if (opcode == "dp4a" || opcode == "dp2a") {
        if (words_->types.size() != 2) return refuse_this("needs two types"), true;
        std::string name(opcode);
        if (opcode == "dp2a") name += "." + std::string(words_->take_one_of(halves));
        name += std::string(name_of(words_->type(0))) + std::string(name_of(words_->type(1)));
        return simple(integer_run(name, Type::b32), Type::b32, {Type::b32, Type::b32, Type::b32}), true;
    }
    // What the SIMD functions of nvcc make: whole words, without masks.
    if (opcode == "vabsdiff2" || opcode == "vabsdiff4") {
        if (words_->types.size() != 3) return refuse_this("needs three types"), true;
        std::string name(opcode);
        name += std::string(name_of(words_->type(1))) + std::string(name_of(words_->type(2)));
        if (words_->take(".add")) name += ".add";
        return simple(integer_run(name, Type::b32), Type::b32, {Type::b32, Type::b32, Type::b32}), true;
    }
    return false;
}

}  // namespace isthmus::ptx
