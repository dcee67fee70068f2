// SPDX-License-Identifier: Apache-2.0
// Reads functions: their directives, the statements of their bodies, and registers.
#include "parser.hpp"

#include <algorithm>

namespace isthmus::ptx {

void Parser::function(bool is_entry) {
    FunctionSyntax made;
    made.is_entry = is_entry;
    made.gives_way = gives_way_;
    made.line = next().line;
    if (!is_entry) made.returns = parameters();
    made.name = name();
    made.parameters = parameters();
    while (next().kind == TokenKind::dotted) attribute(made);
    source_ = {};
    vectors_.clear();
    const auto in_register = [](const Variable& one) { return one.in_register; };
    if (is_entry && std::any_of(made.parameters.begin(), made.parameters.end(), in_register))
        fail("a parameter of an entry in a register");
    if (failure_.refused()) return;
    if (take_if("{")) {
        made.has_body = true;
        body(made);
    } else {
        take_if(";");
    }
    out_.functions.push_back(std::move(made));
}

void Parser::attribute(FunctionSyntax& made) {
    const Token token = take();
    const bool ignored = token.is(".maxntid") || token.is(".minnctapersm") || token.is(".maxnreg") ||
                         token.is(".reqntid") || token.is(".noreturn") || token.is(".maxnctapersm") ||
                         token.is(".maxclusterrank") || token.is(".explicitcluster") ||
                         token.is(".reqnctapercluster") || token.is(".abi_preserve") ||
                         token.is(".abi_preserve_control");
    if (token.is(".pragma")) {
        while (!at_end() && !take_if(";")) take();
        return;
    }
    if (token.is(".attribute")) {
        expect("(");
        while (!at_end() && !take_if(")")) take();
        return;
    }
    if (!ignored && made.refused_directive.empty()) made.refused_directive = std::string(token.text);
    std::array<std::uint64_t, 3> numbers = {};
    for (std::size_t at = 0; next().kind == TokenKind::integer; ++at) {
        const std::uint64_t number = take().value;
        if (at < numbers.size()) numbers[at] = number;
        if (!take_if(",")) break;
    }
    if (token.is(".explicitcluster")) made.explicit_cluster = true;
    if (token.is(".maxclusterrank")) made.most_cluster_blocks = numbers[0];
    if (token.is(".maxnreg")) made.most_registers = numbers[0];
    if (token.is(".minnctapersm")) made.least_blocks = numbers[0];
    const bool of_cluster = token.is(".reqnctapercluster");
    if (!token.is(".maxntid") && !token.is(".reqntid") && !of_cluster) return;
    for (std::uint64_t& number : numbers) {
        if (&number != &numbers[0] && number == 0) number = 1;  // PTX ISA: a size that is not stated is 1
        if (number == 0 || number > 1 << 16) return fail(std::string(token.text) + " with a size out of range");
    }
    (of_cluster ? made.required_cluster : token.is(".maxntid") ? made.most_threads : made.required_threads) = numbers;
}

void Parser::body(FunctionSyntax& made) {
    int depth = 0;
    while (!at_end()) {
        const std::size_t start = at_;
        statement(made, depth);
        if (depth < 0) return;
        if (failure_.refused()) pass_over_statement(start, made.refusal);
    }
    give_up({"the function " + std::string(made.name) + " has no end", next().line});
}

// `depth`: of the scopes; -1: the body has ended.
void Parser::statement(FunctionSyntax& made, int& depth) {
    const std::uint32_t line = next().line;
    const auto add = [&](StatementKind kind, std::size_t at, std::string_view label = {}) {
        made.statements.push_back({kind, static_cast<std::uint32_t>(at), label, line});
    };
    if (take_if("}")) {
        if (depth-- > 0) add(StatementKind::close_scope, 0);
    } else if (next().is("{")) {
        if (depth >= 64) return fail("scopes that are nested too deeply");
        take();
        ++depth;
        add(StatementKind::open_scope, 0);
    } else if (take_if(".reg")) {
        const std::size_t before = made.registers.size();
        registers(made);
        for (std::size_t at = before; at < made.registers.size(); ++at) add(StatementKind::registers, at);
    } else if (space_named(next().text) && next().kind == TokenKind::dotted) {
        const std::size_t before = made.variables.size();
        variable(false, made.variables);
        for (std::size_t at = before; at < made.variables.size(); ++at) add(StatementKind::variable, at);
    } else if (next().kind == TokenKind::name && ahead(1).is(":")) {
        labelled(made, add);
    } else if (next().kind == TokenKind::dotted || next().is(";")) {
        if (!passed_over(&made)) fail("'" + std::string(next().text) + "' is not known in a function");
    } else {
        Instruction read = instruction();
        if (failure_.refused()) return;
        add(StatementKind::instruction, made.instructions.size());
        made.instructions.push_back(std::move(read));
    }
}

template <class Add>
void Parser::labelled(FunctionSyntax& made, const Add& add) {
    const std::string_view label = name();
    expect(":");
    if (take_if(".callprototype")) {
        Prototype prototype;
        prototype.returns = parameters();
        if (next().is("_") || next().kind == TokenKind::name) take();
        prototype.parameters = parameters();
        while (!at_end() && !take_if(";")) take();  // .noreturn
        add(StatementKind::prototype, made.prototypes.size(), label);
        made.prototypes.push_back(std::move(prototype));
    } else if (take_if(".branchtargets")) {
        std::vector<std::string_view> labels = {name()};
        while (take_if(",")) labels.push_back(name());
        expect(";");
        add(StatementKind::targets, made.targets.size(), label);
        made.targets.push_back(std::move(labels));
    } else if (take_if(".calltargets")) {
        while (!at_end() && !take_if(";")) take();
    } else {
        add(StatementKind::label, 0, label);
    }
}

void Parser::registers(FunctionSyntax& made) {
    std::size_t elements = 1;
    if (next().is(".v2") || next().is(".v4")) elements = static_cast<std::size_t>(take().text[2] - '0');
    const std::optional<Type> type = type_named(take().text);
    if (!type) return fail("registers of a type that is not known");
    do {
        const std::uint32_t line = next().line;
        Register one{name(), *type, 0, line};
        if (elements > 1 || vectors_.count(one.name) != 0) {
            vector_register(made, one, elements);
            continue;
        }
        if (take_if("<")) {
            const std::uint64_t count = integer();
            if (count == 0 || count > most_registers) return fail("a declaration of 0 or more than 65536 registers");
            one.count = static_cast<std::uint32_t>(count);
            expect(">");
        }
        made.registers.push_back(one);
    } while (take_if(","));
    expect(";");
}

// A vector is a register for each element; operands are given the elements' names.
void Parser::vector_register(FunctionSyntax& made, Register one, std::size_t elements) {
    const auto same = [&](const Register& other) { return other.name == one.name; };
    const bool again = vectors_.count(one.name) != 0 || std::any_of(made.registers.begin(), made.registers.end(), same);
    if (again || next().is("<")) return fail("a vector of registers in a range, or of a name that is there");
    std::vector<std::string_view>& names = vectors_[one.name];
    for (std::size_t at = 0; at < elements; ++at) {
        names.push_back(made_name(std::string(one.name) + "." + "xyzw"[at]));
        made.registers.push_back({names.back(), one.type, 0, one.line});
    }
}

}  // namespace isthmus::ptx
