// SPDX-License-Identifier: Apache-2.0
// Decodes comparisons and selections.
#include "lowering.hpp"

#include <utility>

namespace isthmus::ptx {

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
        return test(run, words_->type());
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

}  // namespace isthmus::ptx
