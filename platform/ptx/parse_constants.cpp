// SPDX-License-Identifier: Apache-2.0
// Reads constant expressions and the offsets behind names.
#include "parser.hpp"

namespace isthmus::ptx {

Constant Parser::expression() {
    if (++nested_ > 64) {
        fail("a constant expression that is nested too deeply");
        return {};
    }
    Constant out = binary(1);
    if (take_if("?")) {
        const Constant yes = expression();
        if (!take_if(":")) fail("a constant expression without ':'");
        const Constant no = expression();
        if (out.kind != OperandKind::integer || yes.kind != no.kind) fail("a constant expression of two types");
        const bool is_unsigned = yes.is_unsigned || no.is_unsigned;
        out = out.bits != 0 ? yes : no;
        out.is_unsigned = is_unsigned;
    }
    --nested_;
    return out;
}

Constant Parser::binary(int least) {
    Constant left = unary();
    for (;;) {
        const auto [sign, strength] = binary_operator(next(), ahead(1));
        if (strength == 0 || strength < least) return left;
        for (std::size_t taken = 0; taken < sign.size(); ++taken) take();
        const CombinedConstant made = combined(sign, left, binary(strength + 1));
        if (!made.error.empty()) fail(std::string(made.error));
        left = made.value;
    }
}

Constant Parser::unary() {
    if (++nested_ > 64) fail("a constant expression that is nested too deeply");
    Constant out = signed_constant();
    --nested_;
    return out;
}

Constant Parser::signed_constant() {
    if (take_if("+")) return unary();
    for (const std::string_view sign : {"-", "~", "!"}) {
        if (!take_if(sign)) continue;
        if (next().kind == TokenKind::name && !next().is("WARP_SZ")) fail("a minus or another sign before a name");
        Constant out = unary();
        if (sign == "-" && out.kind != OperandKind::integer) {
            out.bits ^= std::uint64_t{1} << (out.kind == OperandKind::single_float ? 31 : 63);
        } else if (sign == "-") {
            out.bits = 0 - out.bits;
        } else if (out.kind != OperandKind::integer) {
            fail("an operator of integers before a float");
        } else {
            out = sign == "~" ? Constant{OperandKind::integer, ~out.bits, true}
                              : Constant{OperandKind::integer, std::uint64_t{out.bits == 0}, false};
        }
        return out;
    }
    if (take_if("(")) {
        const bool is_cast = next().is(".s64") || next().is(".u64");
        const bool to_unsigned = is_cast && take().is(".u64");
        Constant out;
        if (!is_cast) out = expression();
        expect(")");
        if (!is_cast) return out;
        out = unary();
        if (out.kind != OperandKind::integer) fail("a cast of a float");
        out.is_unsigned = to_unsigned;
        return out;
    }
    const Token token = take();
    switch (token.kind) {
        case TokenKind::integer:
            return {OperandKind::integer, token.value, token.value >> 63 != 0 || token.text.ends_with('U')};
        case TokenKind::single_float: return {OperandKind::single_float, token.value, false};
        case TokenKind::double_float: return {OperandKind::double_float, token.value, false};
        default: break;
    }
    if (token.is("WARP_SZ")) return {OperandKind::integer, 32, false};
    fail(token.line, "an operand is missing before '" + std::string(token.text) + "'");
    return {};
}

std::uint64_t Parser::constant() {
    const Constant out = expression();
    if (out.kind != OperandKind::integer) fail("a float where an integer is needed");
    return out.bits;
}

// +4*2 or -4 behind a name.
std::int64_t Parser::offset() {
    return next().is("+") || next().is("-") ? static_cast<std::int64_t>(constant()) : 0;
}

}  // namespace isthmus::ptx
