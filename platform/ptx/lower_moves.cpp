// SPDX-License-Identifier: Apache-2.0
// Decodes moves: of registers, predicates and halves of wide ones; packing and unpacking.
#include "lowering.hpp"

#include <array>

namespace isthmus::ptx {
namespace {

Type unsigned_of(std::uint32_t bytes) {
    return bytes == 1 ? Type::b8 : bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
}

}  // namespace

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

}  // namespace isthmus::ptx
