// SPDX-License-Identifier: Apache-2.0
// Reads PTX text into a tree. The first error moves the cursor to the end, so that every loop ends.
#include "syntax.hpp"
#include "tokens.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace isthmus::ptx {
namespace {

constexpr std::uint64_t most_elements = std::uint64_t{1} << 32;
constexpr std::uint64_t most_registers = 1u << 16;  // of one declaration

class Parser {
public:
    explicit Parser(std::string_view text) : list_(read_tokens(text)) {
        if (!list_.error.empty()) fail(list_.error_line, list_.error);
    }

    ModuleSyntax parse() {
        if (!next().is(".version")) fail("the text does not begin with .version");
        read_version();
        while (!at_end()) top_level();
        return std::move(out_);
    }

private:
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
    void expect(std::string_view text) {
        if (!take_if(text)) fail("'" + std::string(text) + "' is missing before '" + std::string(next().text) + "'");
    }
    void fail(std::string why) { fail(next().line, std::move(why)); }
    void fail(std::uint32_t line, std::string why) {
        if (out_.error.empty()) {
            out_.error = std::move(why);
            out_.error_line = line;
        }
        at_ = list_.tokens.size() - 1;
    }
    std::string_view name() {
        if (next().kind != TokenKind::name) {
            fail("a name is missing before '" + std::string(next().text) + "'");
            return {};
        }
        return take().text;
    }
    std::uint64_t integer() {
        if (next().kind != TokenKind::integer) {
            fail("a number is missing before '" + std::string(next().text) + "'");
            return 0;
        }
        return take().value;
    }
    std::int64_t signed_integer() {
        const bool minus = take_if("-");
        const std::uint64_t value = integer();
        return static_cast<std::int64_t>(minus ? 0 - value : value);
    }

    void read_version() {
        expect(".version");
        const Token token = take();  // "9.0" is a decimal
        const std::size_t dot = token.text.find('.');
        for (const char c : token.text.substr(0, dot))
            out_.version = out_.version * 10 + static_cast<unsigned>(c - '0');
        out_.version *= 10;
        if (dot != std::string_view::npos && dot + 1 < token.text.size()) {
            out_.version += static_cast<unsigned>(token.text[dot + 1] - '0');
        }
    }

    void top_level() {
        bool is_extern = false;
        while (next().is(".visible") || next().is(".extern") || next().is(".weak") || next().is(".common")) {
            is_extern = take().is(".extern") || is_extern;
        }
        if (next().is(".version")) return read_version();
        if (take_if(".target")) {
            out_.target = name();
            while (take_if(",")) name();
            return;
        }
        if (take_if(".address_size")) {
            if (integer() != 64) fail(".address_size other than 64");
            return;
        }
        if (take_if(".entry")) return function(true);
        if (take_if(".func")) return function(false);
        if (next().is(".global") || next().is(".const") || next().is(".shared")) {
            return variable(is_extern, out_.variables);
        }
        if (!passed_over(nullptr)) fail("'" + std::string(next().text) + "' is not known outside of a function");
    }

    // Directives without meaning for the execution.
    bool passed_over(FunctionSyntax* function) {
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

    static std::optional<Space> space_named(std::string_view text) {
        if (text == ".global") return Space::global;
        if (text == ".const") return Space::constant;
        if (text == ".shared" || text == ".shared::cta") return Space::shared;
        if (text == ".local") return Space::local;
        if (text == ".param") return Space::param;
        return std::nullopt;
    }

    // After the space: .align 4 .v2 .u32 .ptr .global .align 4 name[2][3].
    Variable declared(Space space) {
        Variable out;
        out.space = space;
        out.line = next().line;
        bool pointer = false;
        while (next().kind == TokenKind::dotted && !at_end()) {
            const Token token = take();
            if (token.is(".align")) {
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
        if (next().kind == TokenKind::name) out.name = take().text;
        while (take_if("[")) {
            if (take_if("]")) {
                out.unsized = true;
                out.dimensions.push_back(0);
                continue;
            }
            const std::uint64_t count = integer();
            if (count != 0 && out.count > most_elements / count) fail("a variable that is too large");
            out.count *= count;
            out.dimensions.push_back(count);
            expect("]");
        }
        if (out.alignment == 0) out.alignment = size_bytes(out.type) * out.vector;
        return out;
    }

    Initial initial_value() {
        Initial out;
        const bool minus = take_if("-");
        const Token token = take();
        out.value = token.value;
        switch (token.kind) {
            case TokenKind::integer: out.value = minus ? 0 - token.value : token.value; break;
            case TokenKind::single_float:
                out.kind = Initial::Kind::single_float;
                if (minus) out.value ^= std::uint64_t{1} << 31;
                break;
            case TokenKind::double_float:
                out.kind = Initial::Kind::double_float;
                if (minus) out.value ^= std::uint64_t{1} << 63;
                break;
            case TokenKind::name:
                if (minus) fail("a minus before a name");
                out.kind = Initial::Kind::symbol;
                out.symbol = token.text;
                if (token.is("generic") && take_if("(")) {
                    out.symbol = name();
                    expect(")");
                } else if (next().is("(")) {
                    fail("an initialiser " + std::string(token.text) + "()");
                }
                if (next().is("+") || next().is("-")) {
                    if (next().is("+")) take();
                    out.offset = signed_integer();
                }
                break;
            default: fail("an initialiser that is not known");
        }
        return out;
    }

    // Values are kept one after the other, so that only the last row may have too few.
    void initialisers(Variable& out, std::size_t depth) {
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

    void variable(bool is_extern, std::vector<Variable>& into) {
        const Space space = *space_named(take().text);
        Variable made = declared(space);
        made.is_extern = is_extern;
        if (made.name.empty()) return fail("a variable without a name");
        row_is_short_ = false;
        if (take_if("=")) initialisers(made, 0);
        if (made.unsized && !made.initial.empty()) {
            made.count = made.initial.size();
            made.unsized = false;
        }
        if (next().is("<")) return fail("a range of variables");
        expect(";");
        into.push_back(std::move(made));
    }

    std::vector<Variable> parameters() {
        std::vector<Variable> out;
        if (!take_if("(")) return out;
        if (take_if(")")) return out;
        do {
            if (take_if(".reg")) {
                fail("a parameter in a register");
                break;
            }
            expect(".param");
            out.push_back(declared(Space::param));
        } while (take_if(","));
        expect(")");
        return out;
    }

    void function(bool is_entry) {
        FunctionSyntax made;
        made.is_entry = is_entry;
        made.line = next().line;
        if (!is_entry) made.returns = parameters();
        made.name = name();
        made.parameters = parameters();
        while (next().kind == TokenKind::dotted) attribute(made);
        source_ = {};
        if (take_if("{")) {
            made.has_body = true;
            body(made);
        } else {
            take_if(";");
        }
        out_.functions.push_back(std::move(made));
    }

    void attribute(FunctionSyntax& made) {
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
        (of_cluster             ? made.required_cluster
         : token.is(".maxntid") ? made.most_threads
                                : made.required_threads) = numbers;
    }

    void body(FunctionSyntax& made) {
        int depth = 0;
        const auto add = [&](StatementKind kind, std::size_t at, std::string_view label = {}) {
            made.statements.push_back({kind, static_cast<std::uint32_t>(at), label});
        };
        while (!at_end()) {
            if (take_if("}")) {
                if (depth-- == 0) return;
                add(StatementKind::close_scope, 0);
            } else if (take_if("{")) {
                if (++depth > 64) return fail("scopes that are nested too deeply");
                add(StatementKind::open_scope, 0);
            } else if (take_if(".reg")) {
                const std::size_t before = made.registers.size();
                registers(made);
                for (std::size_t at = before; at < made.registers.size(); ++at) add(StatementKind::registers, at);
            } else if (space_named(next().text) && next().kind == TokenKind::dotted) {
                add(StatementKind::variable, made.variables.size());
                variable(false, made.variables);
            } else if (next().kind == TokenKind::name && ahead(1).is(":")) {
                labelled(made, add);
            } else if (next().kind == TokenKind::dotted || next().is(";")) {
                if (!passed_over(&made)) return fail("'" + std::string(next().text) + "' is not known in a function");
            } else {
                add(StatementKind::instruction, made.instructions.size());
                made.instructions.push_back(instruction());
            }
        }
        fail("the function " + std::string(made.name) + " has no end");
    }

    template <class Add>
    void labelled(FunctionSyntax& made, const Add& add) {
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

    void registers(FunctionSyntax& made) {
        const std::optional<Type> type = type_named(take().text);
        if (!type) return fail("registers of a type that is not known");
        do {
            Register one{name(), *type, 0};
            if (take_if("<")) {
                const std::uint64_t count = integer();
                if (count == 0 || count > most_registers)
                    return fail("a declaration of 0 or more than 65536 registers");
                one.count = static_cast<std::uint32_t>(count);
                expect(">");
            }
            made.registers.push_back(one);
        } while (take_if(","));
        expect(";");
    }

    Instruction instruction() {
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
        do out.operands.push_back(operand(0));
        while (take_if(","));
        expect(";");
        return out;
    }

    Operand operand(int depth) {
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

    std::vector<Operand> elements(std::string_view end, int depth) {
        std::vector<Operand> out;
        if (take_if(end)) return out;
        do out.push_back(operand(depth + 1));
        while (take_if(","));
        expect(end);
        return out;
    }

    Operand simple_operand(int depth) {
        Operand out;
        if (depth > 4) {
            fail("operands that are nested too deeply");
            return out;
        }
        if (take_if("[")) {
            out.kind = OperandKind::address;
            if (next().kind == TokenKind::name) {
                out.name = take().text;
                if (next().is("+") || next().is("-")) {
                    if (next().is("+")) take();
                    out.offset = signed_integer();
                }
            } else {
                out.offset = signed_integer();
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
        if (take_if("(")) {
            out.kind = OperandKind::list;
            out.elements = elements(")", depth);
            return out;
        }
        out.negated = take_if("!");
        const bool minus = take_if("-");
        const Token token = take();
        out.value = token.value;
        switch (token.kind) {
            case TokenKind::integer:
                out.kind = OperandKind::integer;
                if (minus) out.value = 0 - token.value;
                break;
            case TokenKind::single_float:
                out.kind = OperandKind::single_float;
                if (minus) out.value ^= std::uint64_t{1} << 31;
                break;
            case TokenKind::double_float:
                out.kind = OperandKind::double_float;
                if (minus) out.value ^= std::uint64_t{1} << 63;
                break;
            case TokenKind::name:
                if (minus) fail("a minus before a name");
                if (token.is("_")) break;
                out.kind = OperandKind::name;
                out.name = token.text;
                if (next().kind == TokenKind::dotted) out.part = take().text;
                if (next().is("+") || (next().is("-") && ahead(1).kind == TokenKind::integer)) {
                    if (next().is("+")) take();
                    out.offset = signed_integer();
                }
                break;
            default: fail("an operand is missing before '" + std::string(token.text) + "'");
        }
        return out;
    }

    TokenList list_;
    std::size_t at_ = 0;
    bool row_is_short_ = false;  // of the initialisers that are read
    SourceLine source_;
    ModuleSyntax out_;
};

}  // namespace

ModuleSyntax parse_module(std::string_view text) {
    return Parser(text).parse();
}

}  // namespace isthmus::ptx
