// SPDX-License-Identifier: Apache-2.0
// Reads instructions and their operands.
#include "parser.hpp"

namespace isthmus::ptx {

Instruction Parser::instruction() {
    Instruction out;
    out.source = source_;
    if (take_if("@")) {
        out.guard_negated = take_if("!");
        out.guard = name();
    }
    out.line = next().line;
    out.opcode = name();
    while (next().kind == TokenKind::dotted) out.qualifiers.push_back(take().text);
    if (take_if(";")) return out;
    in_call_ = out.opcode == "call";
    nested_ = 0;
    do out.operands.push_back(operand(0));
    while (take_if(","));
    expect(";");
    return out;
}

Operand Parser::operand(int depth) {
    Operand out = simple_operand(depth);
    if (next().is("|") && out.kind != OperandKind::pair) {
        take();
        Operand pair;
        pair.kind = OperandKind::pair;
        pair.elements.push_back(std::move(out));
        pair.elements.push_back(simple_operand(depth + 1));
        return pair;
    }
    return out;
}

std::vector<Operand> Parser::elements(std::string_view end, int depth) {
    std::vector<Operand> out;
    if (take_if(end)) return out;
    do out.push_back(operand(depth + 1));
    while (take_if(","));
    expect(end);
    return out;
}

Operand Parser::simple_operand(int depth) {
    Operand out;
    if (depth > 4) {
        fail("operands that are nested too deeply");
        return out;
    }
    if (take_if("[")) {
        out.kind = OperandKind::address;
        if (next().kind == TokenKind::name && !next().is("WARP_SZ")) {
            out.name = take().text;
            if (Operand element; next().kind == TokenKind::dotted && vector_operand(out.name, element))
                out.name = element.name;
            out.offset = offset();
        } else {
            out.offset = static_cast<std::int64_t>(constant());
        }
        if (next().is(",")) {  // of textures, surfaces and tensors
            take();
            out.kind = OperandKind::list;
            out.elements = elements("]", depth);
            return out;
        }
        expect("]");
        return out;
    }
    if (take_if("{")) {
        out.kind = OperandKind::vector;
        out.elements = elements("}", depth);
        return out;
    }
    if (in_call_ && take_if("(")) {
        out.kind = OperandKind::list;
        out.elements = elements(")", depth);
        return out;
    }
    const bool negates = next().is("!") && ahead(1).kind == TokenKind::name && !ahead(1).is("WARP_SZ");
    if (negates) take();
    out.negated = negates;
    if (next().kind != TokenKind::name || next().is("WARP_SZ")) {
        const Constant value = expression();
        out.kind = value.kind;
        out.value = value.bits;
        return out;
    }
    const Token token = take();
    if (token.is("_") || vector_operand(token.text, out)) return out;
    out.kind = OperandKind::name;
    out.name = token.text;
    if (next().kind == TokenKind::dotted) out.part = take().text;
    out.offset = offset();
    return out;
}

// false: the name is no vector.
bool Parser::vector_operand(std::string_view name, Operand& out) {
    const auto known = vectors_.find(name);
    if (known == vectors_.end()) return false;
    if (next().kind == TokenKind::dotted) {
        const std::string_view part = take().text;
        const std::string_view places = part.size() == 2 ? "xyzwrgba" : "";
        const std::size_t at = places.empty() ? places.npos : places.find(part[1]) % 4;
        if (at >= known->second.size()) {
            fail("'" + std::string(part) + "' of a vector of registers");
            return true;
        }
        out.kind = OperandKind::name;
        out.name = known->second[at];
        return true;
    }
    out.kind = OperandKind::vector;
    for (const std::string_view element : known->second) {
        Operand& one = out.elements.emplace_back();
        one.kind = OperandKind::name;
        one.name = element;
    }
    return true;
}

}  // namespace isthmus::ptx
