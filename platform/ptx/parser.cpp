// SPDX-License-Identifier: Apache-2.0
// Reads PTX text into a tree: what stands outside of functions, and the directives without meaning.
#include "parser.hpp"

namespace isthmus::ptx {

ModuleSyntax Parser::parse() {
    if (!next().is(".version")) give_up({"the text does not begin with .version", next().line});
    read_version();
    while (!at_end()) {
        const std::size_t start = at_;
        top_level();
        if (failure_.refused()) pass_over_definition(start);
    }
    return std::move(out_);
}

void Parser::read_version() {
    expect(".version");
    const Token token = take();  // "9.0" is a decimal
    const std::size_t dot = token.text.find('.');
    for (const char c : token.text.substr(0, dot)) out_.version = out_.version * 10 + static_cast<unsigned>(c - '0');
    out_.version *= 10;
    if (dot != std::string_view::npos && dot + 1 < token.text.size()) {
        out_.version += static_cast<unsigned>(token.text[dot + 1] - '0');
    }
}

void Parser::top_level() {
    bool is_extern = false;
    gives_way_ = false;
    while (next().is(".visible") || next().is(".extern") || next().is(".weak") || next().is(".common")) {
        gives_way_ = gives_way_ || next().is(".weak") || next().is(".common");
        is_extern = take().is(".extern") || is_extern;
    }
    if (next().is(".version")) return read_version();
    if (take_if(".target")) {
        out_.target = name();
        while (take_if(",")) name();
        return;
    }
    if (take_if(".address_size")) {
        if (integer() != 64) give_up({".address_size other than 64", next().line});
        return;
    }
    if (take_if(".alias")) {
        const std::string_view alias = name();
        expect(",");
        out_.aliases.emplace_back(alias, name());
        return expect(";");
    }
    if (take_if(".entry")) return function(true);
    if (take_if(".func")) return function(false);
    if (next().is(".global") || next().is(".const") || next().is(".shared")) {
        return variable(is_extern, out_.variables);
    }
    if (!passed_over(nullptr)) fail("'" + std::string(next().text) + "' is not known outside of a function");
}

// Directives without meaning for the execution.
bool Parser::passed_over(FunctionSyntax* function) {
    if (take_if(".file")) {
        const auto number = static_cast<std::uint32_t>(integer());
        const Token file = take();
        if (file.kind == TokenKind::string) out_.files[number] = std::string(file.text);
        while (take_if(",")) integer();
        return true;
    }
    if (take_if(".loc")) {
        source_.file = static_cast<std::uint32_t>(integer());
        source_.line = static_cast<std::uint32_t>(integer());
        integer();
        while (next().is(",") && (ahead(1).is("function_name") || ahead(1).is("inlined_at"))) {
            take();
            if (take().is("function_name")) {
                name();
                if (take_if("+")) integer();
            } else {
                integer(), integer(), integer();
            }
        }
        return true;
    }
    if (take_if(".pragma")) {
        while (!at_end() && !take_if(";")) take();
        return true;
    }
    if (take_if(".section")) {
        while (!at_end() && !take_if("{")) take();
        for (int depth = 1; depth > 0 && !at_end();) {
            const Token token = take();
            if (token.is("{")) ++depth;
            if (token.is("}")) --depth;
        }
        return true;
    }
    if (next().kind == TokenKind::dotted && next().text.starts_with(".b") && function == nullptr) {
        fail("data outside of a section");
        return true;
    }
    return take_if(";");
}

ModuleSyntax parse_module(std::string_view text) {
    return Parser(text).parse();
}

}  // namespace isthmus::ptx
