// SPDX-License-Identifier: Apache-2.0
// Reads PTX text into a tree. An error moves the cursor to the end, so that every loop ends. Then the statement that
// was not understood is passed over, and what it belongs to is refused; the whole text where its end is not found.
#include "constants.hpp"
#include "syntax.hpp"
#include "tokens.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace isthmus::ptx {
namespace {

constexpr std::uint64_t most_elements = std::uint64_t{1} << 32;
constexpr std::uint64_t most_registers = 1u << 16;  // of one declaration

class Parser {
public:
    explicit Parser(std::string_view text) : list_(read_tokens(text)) {
        if (!list_.error.empty()) give_up({list_.error, list_.error_line});
    }

    ModuleSyntax parse() {
        if (!next().is(".version")) give_up({"the text does not begin with .version", next().line});
        read_version();
        while (!at_end()) {
            const std::size_t start = at_;
            top_level();
            if (failure_.refused()) pass_over_definition(start);
        }
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
        if (!failure_.refused()) failure_ = {std::move(why), line};
        at_ = list_.tokens.size() - 1;
    }
    void give_up(Refusal why) {
        if (out_.error.empty()) {
            out_.error = std::move(why.what);
            out_.error_line = why.line;
        }
        failure_ = {};
        at_ = list_.tokens.size() - 1;
    }

    // From an opening bracket to behind its partner.
    void pass_over_brackets() {
        int depth = 0;
        do {
            const Token token = take();
            if (token.is("{") || token.is("(") || token.is("[")) ++depth;
            if (token.is("}") || token.is(")") || token.is("]")) --depth;
        } while (depth > 0 && !at_end());
    }
    bool at_bracket() const { return next().is("{") || next().is("(") || next().is("["); }
    // A statement of a body that was not understood. It ends with its semicolon, or before the end of its scope.
    void pass_over_statement(std::size_t start, Refusal& refusal) {
        if (!refusal.refused()) refusal = std::move(failure_);
        failure_ = {};
        nested_ = 0;
        at_ = start;
        if (next().is("{")) return pass_over_brackets();
        while (!at_end() && !next().is("}") && !take_if(";")) at_bracket() ? pass_over_brackets() : void(take());
    }
    // The same outside of functions: what names the variable or function is refused.
    void pass_over_definition(std::size_t start) {
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
    Constant expression() {
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
    Constant binary(int least) {
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
    Constant unary() {
        if (++nested_ > 64) fail("a constant expression that is nested too deeply");
        Constant out = signed_constant();
        --nested_;
        return out;
    }
    Constant signed_constant() {
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
    std::uint64_t constant() {
        const Constant out = expression();
        if (out.kind != OperandKind::integer) fail("a float where an integer is needed");
        return out.bits;
    }
    // +4*2 or -4 behind a name.
    std::int64_t offset() { return next().is("+") || next().is("-") ? static_cast<std::int64_t>(constant()) : 0; }

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
    void name_and_size(Variable& out) {
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

    Initial initial_value() {
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
    void symbol_value(Initial& out) {
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

    // A name that the text does not have.
    std::string_view made_name(std::string name) { return out_.made_names.emplace_back(std::move(name)); }

    void variable(bool is_extern, std::vector<Variable>& into) {
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

    std::vector<Variable> parameters() {
        std::vector<Variable> out;
        if (!take_if("(")) return out;
        if (take_if(")")) return out;
        do {
            const bool in_register = take_if(".reg");
            if (!in_register) expect(".param");
            out.push_back(declared(Space::param));
            out.back().in_register = in_register;
            const bool is_simple =
                out.back().dimensions.empty() && out.back().vector == 1 && out.back().type != Type::b128;
            if (in_register && !is_simple) fail("a parameter in a register that is a vector or has 128 bits");
        } while (take_if(","));
        expect(")");
        return out;
    }

    void function(bool is_entry) {
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
        while (!at_end()) {
            const std::size_t start = at_;
            statement(made, depth);
            if (depth < 0) return;
            if (failure_.refused()) pass_over_statement(start, made.refusal);
        }
        give_up({"the function " + std::string(made.name) + " has no end", next().line});
    }
    // `depth`: of the scopes; -1: the body has ended.
    void statement(FunctionSyntax& made, int& depth) {
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
                if (count == 0 || count > most_registers)
                    return fail("a declaration of 0 or more than 65536 registers");
                one.count = static_cast<std::uint32_t>(count);
                expect(">");
            }
            made.registers.push_back(one);
        } while (take_if(","));
        expect(";");
    }
    // A vector is a register for each element; operands are given the elements' names.
    void vector_register(FunctionSyntax& made, Register one, std::size_t elements) {
        const auto same = [&](const Register& other) { return other.name == one.name; };
        const bool again =
            vectors_.count(one.name) != 0 || std::any_of(made.registers.begin(), made.registers.end(), same);
        if (again || next().is("<")) return fail("a vector of registers in a range, or of a name that is there");
        std::vector<std::string_view>& names = vectors_[one.name];
        for (std::size_t at = 0; at < elements; ++at) {
            names.push_back(made_name(std::string(one.name) + "." + "xyzw"[at]));
            made.registers.push_back({names.back(), one.type, 0, one.line});
        }
    }
    // false: the name is no vector.
    bool vector_operand(std::string_view name, Operand& out) {
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
        in_call_ = out.opcode == "call";
        nested_ = 0;
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

}  // namespace

ModuleSyntax parse_module(std::string_view text) {
    return Parser(text).parse();
}

}  // namespace isthmus::ptx
