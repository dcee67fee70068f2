// SPDX-License-Identifier: Apache-2.0
// Decodes arithmetic, bits, comparisons, selections, moves and conversions.
#include "lowering.hpp"

#include <algorithm>
#include <array>

namespace isthmus::ptx {
namespace {

constexpr std::string_view roundings[] = {".rn", ".rz", ".rm", ".rp"};
Rounding rounding_named(std::string_view name) {
    if (name == "rz" || name == "rzi") return Rounding::zero;
    if (name == "rm" || name == "rmi") return Rounding::down;
    if (name == "rp" || name == "rpi") return Rounding::up;
    return Rounding::nearest;
}

Type unsigned_of(std::uint32_t bytes) {
    return bytes == 1 ? Type::b8 : bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
}
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

// One operation for an instruction with a result and up to three operands; false: refused.
bool Lowering::simple(Run run, Type to, std::initializer_list<Type> from) {
    if (run == nullptr) {
        refuse_this("is not modelled");
        return false;
    }
    if (!want(1 + from.size(), 1 + from.size())) return false;
    Place places[3] = {};
    std::size_t at = 0;
    for (const Type type : from) {
        places[at] = value(now_->operands[1 + at], type);
        ++at;
    }
    const Place d = destination(now_->operands[0], to);
    Op& op = emit(run);
    op.d = d;
    op.a = places[0];
    op.b = places[1];
    op.c = places[2];
    return true;
}

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
    const Type wider = wide ? doubled(type) : type;
    const Run run = integer_run(name, type);
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
    return false;
}

bool Lowering::compare_parts(Comparison& comparison, Combine& combine) {
    static constexpr std::string_view names[] = {".eq",  ".ne",  ".lt",  ".le",  ".gt",  ".ge", ".equ", ".neu", ".ltu",
                                                 ".leu", ".gtu", ".geu", ".num", ".nan", ".lo", ".ls",  ".hi",  ".hs"};
    static constexpr Comparison values[] = {
        Comparison::eq,  Comparison::ne,  Comparison::lt,  Comparison::le,  Comparison::gt,  Comparison::ge,
        Comparison::equ, Comparison::neu, Comparison::ltu, Comparison::leu, Comparison::gtu, Comparison::geu,
        Comparison::num, Comparison::nan, Comparison::lt,  Comparison::le,  Comparison::gt,  Comparison::ge};
    const Type type = words_->types.empty() ? Type::none : words_->types.back();
    for (std::size_t at = 0; at < std::size(names); ++at) {
        if (!words_->take(names[at])) continue;
        comparison = values[at];
        const bool unordered = at >= 6 && at <= 13, unsigned_name = at > 13;
        if (unordered && !is_float(type)) return refuse_this("compares integers as floats"), false;
        if (unsigned_name && (is_float(type) || is_signed(type)))
            return refuse_this("compares as unsigned numbers"), false;
        combine = words_->take(".and")   ? Combine::and_
                  : words_->take(".or")  ? Combine::or_
                  : words_->take(".xor") ? Combine::xor_
                                         : Combine::none;
        return true;
    }
    refuse_this("needs a comparison");
    return false;
}

// The predicate that is combined with the comparison's result.
void Lowering::end_parts(Op& op, Combine combine, std::size_t at) {
    op.value = static_cast<std::uint64_t>(combine);
    if (combine == Combine::none) return;
    op.c = predicate(now_->operands[at]);
    op.flag = predicate_negated_;
}

bool Lowering::comparison() {
    const bool to_predicate = now_->opcode == "setp";
    if (!to_predicate && now_->opcode != "set") return false;
    const Type type = words_->types.empty() ? Type::none : words_->types.back();
    if (words_->types.size() != (to_predicate ? 1 : 2)) return refuse_this("needs its types"), true;
    Comparison comparison{};
    Combine combine{};
    if (!compare_parts(comparison, combine)) return true;
    const bool ftz = words_->take(".ftz");
    const std::size_t count = combine == Combine::none ? 3 : 4;
    if (!want(count, count)) return true;
    const Run run = to_predicate ? compare_run(type, ftz) : set_run(type, ftz);
    if (run == nullptr) return refuse_this("is not modelled"), true;
    const Place a = value(now_->operands[1], type), b = value(now_->operands[2], type);
    Op op;
    op.a = a;
    op.b = b;
    op.mode = static_cast<std::uint8_t>(comparison);
    end_parts(op, combine, 3);
    const Operand& result = now_->operands[0];
    if (to_predicate) {
        const bool pair = result.kind == OperandKind::pair;
        op.p = predicate(pair ? result.elements[0] : result, true);
        op.q = pair ? predicate(result.elements[1], true) : -1;
    } else {
        const Type to = words_->type(0);
        const bool pairs = type == Type::f16x2 || type == Type::bf16x2;
        if (pairs ? size_bytes(to) != 4 : (size_bytes(to) != 4 && size_bytes(to) != 2))
            return refuse_this("is not modelled"), true;
        op.bytes = static_cast<std::uint8_t>(size_bytes(to));
        op.value2 = to == Type::f32                          ? 1
                    : to == Type::f16 || to == Type::f16x2   ? 2
                    : to == Type::bf16 || to == Type::bf16x2 ? 3
                                                             : 0;
        if (pairs && op.value2 == 1) return refuse_this("is not modelled"), true;
        op.d = destination(result, to);
    }
    emit(run, op.kind, op);
    return true;
}

bool Lowering::select() {
    if (now_->opcode == "testp") {
        constexpr std::string_view properties[] = {".finite",     ".infinite", ".number",
                                                   ".notanumber", ".normal",   ".subnormal"};
        const std::string name = "testp." + std::string(words_->take_one_of(properties));
        const Run run = float_run(name, words_->type(), false, false);
        if (run == nullptr) return refuse_this("is not modelled"), true;
        if (!want(2, 2)) return true;
        const Place a = value(now_->operands[1], words_->type());
        const std::int32_t p = predicate(now_->operands[0]);
        if (p < 0) return refuse_this("needs a predicate"), true;
        Op& op = emit(run);
        op.a = a;
        op.p = p;
        return true;
    }
    if (now_->opcode == "slct") {
        if (words_->types.size() != 2) return refuse_this("needs its types"), true;
        const Type type = words_->type(0), deciding = words_->type(1);
        const bool of_bytes = size_bytes(type) == 1 || type == Type::pred || type == Type::b128;
        const Run run = of_bytes ? nullptr : select_by_sign_run(deciding, words_->take(".ftz"));
        return simple(run, type, {type, type, deciding}), true;
    }
    if (now_->opcode != "selp") return false;
    if (!want(4, 4)) return true;
    const Type type = words_->type();
    if (type == Type::none || type == Type::pred) return refuse_this("is not modelled"), true;
    Place a = value(now_->operands[1], type), b = value(now_->operands[2], type);
    const std::int32_t p = predicate(now_->operands[3]);
    if (predicate_negated_) std::swap(a, b);
    const Place d = destination(now_->operands[0], type);
    Op& op = emit(select_run());
    op.d = d;
    op.a = a;
    op.b = b;
    op.p = p;
    return true;
}

// Places of a vector's elements, or of one operand. Sinks are -1.
void Lowering::element_places(const Operand& operand, Type type, bool written, Op& op) {
    op.count = static_cast<std::uint8_t>(operand.elements.size());
    op.extra = static_cast<std::uint32_t>(out_.extra.size());
    std::vector<std::int32_t> places;
    for (const Operand& element : operand.elements) {
        if (written) {
            places.push_back(element.kind == OperandKind::sink ? -1 : destination(element, type));
        } else {
            places.push_back(value(element, type));
        }
    }
    out_.extra.insert(out_.extra.end(), places.begin(), places.end());
}

// Both halves: a register, or a vector of two of 64 bits.
void Lowering::move_wide(const Operand& to, const Operand& from) {
    const auto halves = [this](const Operand& operand, bool written) -> std::array<Place, 2> {
        if (operand.kind != OperandKind::vector) {
            const Place low = destination(operand, Type::b128);
            return {low, low + 1};
        }
        if (operand.elements.size() != 2) return refuse_this("is not modelled"), std::array<Place, 2>{};
        const Operand &low = operand.elements[0], &high = operand.elements[1];
        if (written) return {destination(low, Type::b64), destination(high, Type::b64)};
        return {value(low, Type::b64), value(high, Type::b64)};
    };
    const std::array<Place, 2> source = halves(from, false), target = halves(to, true);
    for (std::size_t half = 0; half < 2; ++half) {
        Op& op = emit(move_run());
        op.d = target[half];
        op.a = source[half];
    }
}

// mov.v4.u32 {a, b, c, d}, %tid: the fourth element is 0.
void Lowering::move_special_vector(const Operand& to, const Operand& from, Type type) {
    constexpr std::string_view parts[] = {".x", ".y", ".z"};
    const bool is_known = special_run(from.name, ".x") != nullptr && from.kind == OperandKind::name &&
                          from.part.empty() && to.kind == OperandKind::vector && to.elements.size() == 4 &&
                          size_bytes(type) == 4;
    if (!is_known) return refuse_this("is not modelled");
    for (std::size_t at = 0; at < 4; ++at) {
        Op made;
        made.a = at < 3 ? emit_special(special_run(from.name, parts[at])) : constant(0);
        made.d = destination(to.elements[at], type);
        emit(move_run(), OpKind::plain, made);
    }
}

bool Lowering::move() {
    if (now_->opcode != "mov") return false;
    if (!want(2, 2)) return true;
    const Type type = words_->type();
    const Operand &to = now_->operands[0], &from = now_->operands[1];
    if (words_->take(".v4")) return move_special_vector(to, from, type), true;
    if (type == Type::pred && from.kind == OperandKind::name && from.name == "%is_explicit_cluster") {
        const std::int32_t p = predicate(to);
        if (p < 0) return refuse_this("needs a predicate"), true;
        Op made;
        made.a = value(from, Type::u32);
        made.b = constant(0);
        made.mode = static_cast<std::uint8_t>(Comparison::ne);
        made.value = static_cast<std::uint64_t>(Combine::none);
        made.p = p;
        emit(compare_run(Type::u32, false), OpKind::plain, made);
        return true;
    }
    if (type == Type::pred) {
        const std::int32_t source = predicate(from), p = predicate(to, true);
        const bool negated = predicate_negated_;
        if (negated || p < 0) return refuse_this("has operands that are not known"), true;
        Op& op = emit(predicate_run("mov"));
        op.a = source;
        op.p = p;
        op.flag = from.negated;
        return true;
    }
    const bool packs = from.kind == OperandKind::vector, unpacks = to.kind == OperandKind::vector;
    if (type == Type::none) return refuse_this("is not modelled"), true;
    if (type == Type::b128) return move_wide(to, from), true;
    if (!packs && !unpacks) return simple(move_run(), type, {type}), true;
    exact_types_ = false;
    const std::size_t count = (packs ? from : to).elements.size();
    if ((packs && unpacks) || (count != 2 && count != 4 && count != 8) || size_bytes(type) % count != 0) {
        return refuse_this("is not modelled"), true;
    }
    const auto bytes = static_cast<std::uint32_t>(size_bytes(type) / count);
    Op parts;
    const Place whole = packs ? destination(to, type) : value(from, type);
    element_places(packs ? from : to, unsigned_of(bytes), unpacks, parts);
    Op& op = emit(packs ? pack_run() : unpack_run());
    op.count = parts.count;
    op.extra = parts.extra;
    op.bytes = static_cast<std::uint8_t>(bytes);
    (packs ? op.d : op.a) = whole;
    return true;
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
