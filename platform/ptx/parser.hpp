// SPDX-License-Identifier: Apache-2.0
// Reads PTX text into a tree. An error moves the cursor to the end, so that every loop ends. Then the statement that
// was not understood is passed over, and what it belongs to is refused; the whole text where its end is not found.
#pragma once

#include "constants.hpp"
#include "syntax.hpp"
#include "tokens.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus::ptx {

inline constexpr std::uint64_t most_registers = 1u << 16;  // of one declaration

std::optional<Space> space_named(std::string_view text);

class Parser {
public:
    explicit Parser(std::string_view text) : list_(read_tokens(text)) {
        if (!list_.error.empty()) give_up({list_.error, list_.error_line});
    }
    ModuleSyntax parse();

private:
    // parse_cursor.cpp
    const Token& next() const { return list_.tokens[at_]; }
    const Token& ahead(std::size_t count) const { return list_.tokens[std::min(at_ + count, list_.tokens.size() - 1)]; }
    bool at_end() const { return next().kind == TokenKind::end; }
    Token take() {
        const Token token = next();
        if (!at_end()) ++at_;
        return token;
    }
    bool take_if(std::string_view text) {
        if (at_end() || !next().is(text)) return false;
        ++at_;
        return true;
    }
    void expect(std::string_view text);
    void fail(std::string why) { fail(next().line, std::move(why)); }
    void fail(std::uint32_t line, std::string why);
    void give_up(Refusal why);
    std::string_view name();
    std::uint64_t integer();
    bool at_bracket() const { return next().is("{") || next().is("(") || next().is("["); }
    void pass_over_brackets();
    void pass_over_statement(std::size_t start, Refusal& refusal);
    void pass_over_definition(std::size_t start);

    // parse_constants.cpp
    Constant expression();
    Constant binary(int least);
    Constant unary();
    Constant signed_constant();
    std::uint64_t constant();
    std::int64_t offset();

    // parser.cpp
    void read_version();
    void top_level();
    bool passed_over(FunctionSyntax* function);

    // parse_variables.cpp
    Variable declared(Space space);
    void name_and_size(Variable& out);
    Initial initial_value();
    void symbol_value(Initial& out);
    void initialisers(Variable& out, std::size_t depth);
    std::string_view made_name(std::string name);
    void variable(bool is_extern, std::vector<Variable>& into);
    std::vector<Variable> parameters();

    // parse_functions.cpp
    void function(bool is_entry);
    void attribute(FunctionSyntax& made);
    void body(FunctionSyntax& made);
    void statement(FunctionSyntax& made, int& depth);
    template <class Add>
    void labelled(FunctionSyntax& made, const Add& add);
    void registers(FunctionSyntax& made);
    void vector_register(FunctionSyntax& made, Register one, std::size_t elements);

    // parse_instructions.cpp
    Instruction instruction();
    Operand operand(int depth);
    std::vector<Operand> elements(std::string_view end, int depth);
    Operand simple_operand(int depth);
    bool vector_operand(std::string_view name, Operand& out);

    TokenList list_;
    std::size_t at_ = 0;
    bool row_is_short_ = false;                                          // of the initialisers that are read
    bool gives_way_ = false;                                             // what is declared has .weak or .common
    bool in_call_ = false;                                               // whose lists stand in round brackets
    int nested_ = 0;                                                     // of the constant expression that is read
    Refusal failure_;                                                    // of the statement that is read
    std::map<std::string_view, std::vector<std::string_view>> vectors_;  // of the function: elements by name
    SourceLine source_;
    ModuleSyntax out_;
};

}  // namespace isthmus::ptx
