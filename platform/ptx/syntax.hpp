// SPDX-License-Identifier: Apache-2.0
// PTX text as a tree: what was written, not yet checked. Views into the text.
#pragma once

#include "program.hpp"
#include "types.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus::ptx {

// A line of the source program, from .loc; file 0: not stated.
struct SourceLine {
    std::uint32_t file = 0;
    std::uint32_t line = 0;
};

enum class OperandKind : std::uint8_t { name, integer, single_float, double_float, address, vector, pair, list, sink };

struct Operand {
    OperandKind kind = OperandKind::sink;
    bool negated = false;     // !%p
    std::string_view name;    // of a name, or the base of an address (empty: an absolute address)
    std::string_view part;    // ".x" of %tid.x
    std::int64_t offset = 0;  // of an address, or name+offset
    std::uint64_t value = 0;  // of a number
    std::vector<Operand> elements;
};

struct Instruction {
    std::string_view opcode;
    std::vector<std::string_view> qualifiers;
    std::vector<Operand> operands;
    std::string_view guard;  // empty: none
    bool guard_negated = false;
    std::uint32_t line = 0;
    SourceLine source;
};

struct Initial {
    enum class Kind : std::uint8_t { integer, single_float, double_float, symbol } kind = Kind::integer;
    std::uint64_t value = 0;
    std::string_view symbol;
    std::int64_t offset = 0;
    std::uint64_t mask = 0;  // 0xff00(symbol): the byte of the address that is meant; 0: all of it
};

struct Variable {
    std::string_view name;
    Space space = Space::global;
    Type type = Type::none;
    std::uint32_t vector = 1;
    std::uint64_t count = 1;  // elements in all dimensions
    std::vector<std::uint64_t> dimensions;
    bool unsized = false;  // name[]
    bool is_extern = false;
    bool is_managed = false;      // .attribute(.managed)
    bool gives_way = false;       // .weak or .common
    bool in_register = false;     // a parameter of a function: .reg
    std::uint32_t alignment = 0;  // bytes
    std::vector<Initial> initial;
    std::uint32_t line = 0;
    std::uint64_t bytes() const { return unsized ? 0 : std::uint64_t{size_bytes(type)} * vector * count; }
};

struct Register {
    std::string_view name;
    Type type = Type::none;
    std::uint32_t count = 0;  // %r<count>; 0: one register of this name
    std::uint32_t line = 0;
};

// What stands in a body, in its order.
enum class StatementKind : std::uint8_t {
    instruction,
    label,
    open_scope,
    close_scope,
    registers,
    variable,
    prototype,
    targets
};
struct Statement {
    StatementKind kind = StatementKind::instruction;
    std::uint32_t at = 0;    // index into the list of its kind
    std::string_view name;   // of a label, a prototype, a list of targets
    std::uint32_t line = 0;  // of a label
};

struct Prototype {
    std::vector<Variable> returns, parameters;
};

struct FunctionSyntax {
    std::string_view name;
    bool is_entry = false;
    bool has_body = false;
    bool gives_way = false;  // .weak
    std::vector<Variable> returns, parameters;
    std::vector<Statement> statements;
    std::vector<Instruction> instructions;
    std::vector<Register> registers;
    std::vector<Variable> variables;
    std::vector<Prototype> prototypes;
    std::vector<std::vector<std::string_view>> targets;
    std::array<std::uint64_t, 3> most_threads = {}, required_threads = {};  // .maxntid, .reqntid; 0: not stated
    std::array<std::uint64_t, 3> required_cluster = {};                     // .reqnctapercluster; 0: not stated
    bool explicit_cluster = false;                                          // .explicitcluster
    std::uint64_t most_cluster_blocks = 0;                                  // .maxclusterrank; 0: not stated
    std::uint64_t most_registers = 0, least_blocks = 0;                     // .maxnreg, .minnctapersm; 0: not stated
    std::string refused_directive;                                          // a directive that cannot be honoured
    Refusal refusal;                                                        // the first statement that was not read
    std::uint32_t line = 0;
};

struct ModuleSyntax {
    std::uint32_t version = 0;  // × 10
    std::string_view target;
    std::vector<Variable> variables;
    std::vector<FunctionSyntax> functions;
    std::vector<std::pair<std::string_view, std::string_view>> aliases;  // and the functions that they name
    std::map<std::string_view, Refusal> refused_names;  // variables and functions whose declaration was not read
    std::deque<std::string> made_names;                 // that views above name and the text does not have
    std::map<std::uint32_t, std::string> files;
    std::string error;  // empty: the ends of all statements were found
    std::uint32_t error_line = 0;
};

ModuleSyntax parse_module(std::string_view text);

}  // namespace isthmus::ptx
