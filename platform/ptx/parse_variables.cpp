// SPDX-License-Identifier: Apache-2.0
// Reads variables, their initialisers, and parameters.
#include "parser.hpp"

#include <bit>

namespace isthmus::ptx {
namespace {

constexpr std::uint64_t most_elements = std::uint64_t{1} << 32;

}  // namespace

std::optional<Space> space_named(std::string_view text) {
    if (text == ".global") return Space::global;
    if (text == ".const") return Space::constant;
    if (text == ".shared" || text == ".shared::cta") return Space::shared;
    if (text == ".local") return Space::local;
    if (text == ".param") return Space::param;
    return std::nullopt;
}

// After the space: .align 4 .v2 .u32 .ptr .global .align 4 name[2][3].
Variable Parser::declared(Space space) {
    Variable out;
    out.space = space;
    out.line = next().line;
    bool pointer = false;
    while (next().kind == TokenKind::dotted && !at_end()) {
        const Token token = take();
        if (token.is(".attribute")) {
            expect("(");
            for (int depth = 1; depth > 0 && !at_end();) {
                const Token word = take();
                depth += word.is("(") ? 1 : word.is(")") ? -1 : 0;
                out.is_managed = out.is_managed || word.is(".managed");
            }
        } else if (token.is(".align")) {
            const auto alignment = static_cast<std::uint32_t>(integer());
            if (alignment == 0 || (alignment & (alignment - 1)) != 0) fail("an alignment that is not a power of 2");
            if (!pointer) out.alignment = alignment;
        } else if (token.is(".v2") || token.is(".v4") || token.is(".v8")) {
            out.vector = static_cast<std::uint32_t>(token.text[2] - '0');
        } else if (token.is(".ptr")) {
            pointer = true;
        } else if (const auto type = type_named(token.text); type && *type != Type::pred) {
            out.type = *type;
        } else if (!(pointer && space_named(token.text))) {
            fail("a variable of type " + std::string(token.text));
        }
    }
    if (out.type == Type::none) fail("a variable without a type");
    if (out.is_managed && space != Space::global) fail("a managed variable that is not in .global");
    if (out.alignment == 0) out.alignment = size_bytes(out.type) * out.vector;
    name_and_size(out);
    return out;
}

void Parser::name_and_size(Variable& out) {
    if (next().kind == TokenKind::name) out.name = take().text;
    while (take_if("[")) {
        if (take_if("]")) {
            out.unsized = true;
            out.dimensions.push_back(0);
            continue;
        }
        const std::uint64_t count = constant();
        if (count != 0 && out.count > most_elements / count) fail("a variable that is too large");
        out.count *= count;
        out.dimensions.push_back(count);
        expect("]");
    }
}

Initial Parser::initial_value() {
    Initial out;
    if (next().kind == TokenKind::integer && ahead(1).is("(")) {  // 0xff00(name)
        out.mask = take().value;
        const int place = out.mask == 0 ? 1 : std::countr_zero(out.mask);
        if (place % 8 != 0 || out.mask >> place != 0xff) fail("a mask of an initialiser that is not one byte");
        expect("(");
        symbol_value(out);
        expect(")");
    } else if (next().kind == TokenKind::name && !next().is("WARP_SZ")) {
        symbol_value(out);
    } else {
        const Constant value = expression();
        out.value = value.bits;
        out.kind = value.kind == OperandKind::single_float   ? Initial::Kind::single_float
                   : value.kind == OperandKind::double_float ? Initial::Kind::double_float
                                                             : Initial::Kind::integer;
    }
    return out;
}

void Parser::symbol_value(Initial& out) {
    out.kind = Initial::Kind::symbol;
    out.symbol = name();
    if (out.symbol == "generic" && take_if("(")) {
        out.symbol = name();
        expect(")");
    } else if (next().is("(")) {
        fail("an initialiser " + std::string(out.symbol) + "()");
    }
    out.offset = offset();
}

// Values are kept one after the other, so that only the last row may have too few.
void Parser::initialisers(Variable& out, std::size_t depth) {
    if (depth > 16) return fail("initialisers that are nested too deeply");
    if (row_is_short_) return fail("values behind a row that has too few");
    if (!take_if("{")) {
        out.initial.push_back(initial_value());
        return;
    }
    const std::size_t before = out.initial.size();
    if (!take_if("}")) {
        do initialisers(out, depth + 1);
        while (take_if(","));
        expect("}");
    }
    if (depth == 0) return;
    std::uint64_t most = depth <= out.dimensions.size() ? out.vector : 1;
    for (std::size_t at = depth; at < out.dimensions.size(); ++at) most *= out.dimensions[at];
    if (out.initial.size() - before > most) return fail("a row with more values than it has elements");
    row_is_short_ = row_is_short_ || out.initial.size() - before < most;
}

// A name that the text does not have.
std::string_view Parser::made_name(std::string name) {
    return out_.made_names.emplace_back(std::move(name));
}

void Parser::variable(bool is_extern, std::vector<Variable>& into) {
    const Space space = *space_named(take().text);
    const Variable first = declared(space);
    Variable made = first;
    std::vector<Variable> all;
    for (;;) {
        made.is_extern = is_extern;
        made.gives_way = gives_way_;
        if (made.name.empty()) return fail("a variable without a name");
        row_is_short_ = false;
        if (take_if("=")) initialisers(made, 0);
        if (made.unsized && !made.initial.empty()) {
            made.count = made.initial.size();
            made.unsized = false;
        }
        if (take_if("<")) {
            const std::uint64_t count = integer();
            if (count == 0 || count > most_registers || !made.dimensions.empty() || !made.initial.empty())
                return fail("a range of variables that are arrays, have values, or are too many");
            expect(">");
            const std::string prefix(made.name);
            for (std::uint64_t at = 0; at < count; ++at) {
                made.name = made_name(prefix + std::to_string(at));
                all.push_back(made);
            }
        } else {
            all.push_back(made);
        }
        if (!take_if(",")) break;
        made = first;
        made.name = {};
        made.count = 1;
        made.unsized = false;
        made.dimensions.clear();
        name_and_size(made);
    }
    expect(";");
    if (!failure_.refused()) into.insert(into.end(), all.begin(), all.end());
}

std::vector<Variable> Parser::parameters() {
    std::vector<Variable> out;
    if (!take_if("(")) return out;
    if (take_if(")")) return out;
    do {
        const bool in_register = take_if(".reg");
        if (!in_register) expect(".param");
        out.push_back(declared(Space::param));
        out.back().in_register = in_register;
        const bool is_simple = out.back().dimensions.empty() && out.back().vector == 1 && out.back().type != Type::b128;
        if (in_register && !is_simple) fail("a parameter in a register that is a vector or has 128 bits");
    } while (take_if(","));
    expect(")");
    return out;
}

}  // namespace isthmus::ptx
