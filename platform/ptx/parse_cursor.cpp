// SPDX-License-Identifier: Apache-2.0
// The cursor over the words of PTX text, and what it passes over behind an error.
#include "parser.hpp"

#include <utility>

namespace isthmus::ptx {

void Parser::fail(std::uint32_t line, std::string why) {
    if (!failure_.refused()) failure_ = {std::move(why), line};
    at_ = list_.tokens.size() - 1;
}

void Parser::give_up(Refusal why) {
    if (out_.error.empty()) {
        out_.error = std::move(why.what);
        out_.error_line = why.line;
    }
    failure_ = {};
    at_ = list_.tokens.size() - 1;
}

void Parser::expect(std::string_view text) {
    if (!take_if(text)) fail("'" + std::string(text) + "' is missing before '" + std::string(next().text) + "'");
}

std::string_view Parser::name() {
    if (next().kind != TokenKind::name) {
        fail("a name is missing before '" + std::string(next().text) + "'");
        return {};
    }
    return take().text;
}

std::uint64_t Parser::integer() {
    if (next().kind != TokenKind::integer) {
        fail("a number is missing before '" + std::string(next().text) + "'");
        return 0;
    }
    return take().value;
}

// From an opening bracket to behind its partner.
void Parser::pass_over_brackets() {
    int depth = 0;
    do {
        const Token token = take();
        if (token.is("{") || token.is("(") || token.is("[")) ++depth;
        if (token.is("}") || token.is(")") || token.is("]")) --depth;
    } while (depth > 0 && !at_end());
}

// A statement of a body that was not understood. It ends with its semicolon, or before the end of its scope.
void Parser::pass_over_statement(std::size_t start, Refusal& refusal) {
    if (!refusal.refused()) refusal = std::move(failure_);
    failure_ = {};
    nested_ = 0;
    at_ = start;
    if (next().is("{")) return pass_over_brackets();
    while (!at_end() && !next().is("}") && !take_if(";")) at_bracket() ? pass_over_brackets() : void(take());
}

// The same outside of functions: what names the variable or function is refused.
void Parser::pass_over_definition(std::size_t start) {
    const Refusal why = std::exchange(failure_, {});
    nested_ = 0;
    at_ = start;
    FunctionSyntax function;
    function.line = next().line;
    if (next().kind != TokenKind::dotted) return give_up(why);
    bool is_function = false;
    while (!at_end() && !next().is(";") && !next().is("{") && !next().is("=")) {
        if (at_bracket()) {
            pass_over_brackets();
            continue;
        }
        const Token token = take();
        is_function = is_function || token.is(".func") || token.is(".entry");
        function.is_entry = function.is_entry || token.is(".entry");
        if (token.kind == TokenKind::name && function.name.empty()) function.name = token.text;
    }
    while (!is_function && !at_end() && !next().is(";")) {
        // The end of a directive that is not known is not that of a function behind it.
        if (next().is(".entry") || next().is(".func")) return give_up(why);
        at_bracket() ? pass_over_brackets() : void(take());
    }
    if (is_function && next().is("{")) {
        function.has_body = true;
        pass_over_brackets();
    } else if (!take_if(";")) {
        return give_up(why);
    }
    if (function.name.empty()) return;
    if (function.is_entry) {
        function.refusal = why;
        out_.functions.push_back(std::move(function));
    } else {
        out_.refused_names.emplace(function.name, why);
    }
}

}  // namespace isthmus::ptx
