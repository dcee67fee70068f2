// SPDX-License-Identifier: Apache-2.0
// Decodes one function: names become places, instructions operations. What is not known is refused, with its line.
#pragma once

#include "code.hpp"
#include "operations.hpp"
#include "qualifiers.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::ptx {

// That of a qualifier without its dot (rn, rni); the nearest number, where there is none.
Rounding rounding_named(std::string_view name);

class Lowering {
public:
    // `shared`: where the function's own shared variables begin; the bytes they need are added.
    Lowering(const FunctionSyntax& syntax, ProgramCode& program, FunctionCode& out, std::uint32_t& shared);
    void lower();

private:
    struct Binding {
        enum class Kind : std::uint8_t { row, predicate, local, shared, entry_parameter } kind = Kind::row;
        Type type = Type::none;
        std::int32_t place = 0;
        std::uint32_t count = 0;  // of a range of registers
        std::uint32_t bytes = 0;  // of a variable
    };
    struct Scope {
        std::map<std::string_view, Binding> names, ranges;
        std::map<std::string_view, std::uint32_t> labels;
        std::map<std::string_view, std::uint32_t> targets;
        std::size_t parent = 0;
    };
    struct Fixup {
        std::size_t op = 0;
        std::string_view label;
        std::size_t scope = 0;
        std::int32_t extra = -1;  // index of a table's element; -1: the operation's target
        std::uint32_t line = 0;
    };
    // A parameter or result of a call that is a register on this side: it goes through local memory.
    struct Passed {
        Place row = 0;
        std::uint32_t place = 0;
        Type type = Type::none;
    };
    struct PackedIntegers {
        std::uint32_t bits = 0;
        bool is_signed = false;
    };
    struct AddressParts {
        Space space = Space::generic;
        Place base = 0;
        std::uint64_t offset = 0;
    };

    // lower_refusals.cpp
    void refuse(std::string what) { refuse(std::move(what), line_); }
    void refuse(std::string what, std::uint32_t line);
    // The instruction's own words.
    void refuse_this(std::string_view why);
    bool refused() const { return out_.refusal.refused(); }
    // What an assembler refuses, too, in its words.
    void fault(std::string what) { program_.note_fault(std::move(what), line_); }
    void mismatch();
    bool want(std::size_t least, std::size_t most);
    void note_name(std::string_view name);
    void note_declaration(std::string_view name, bool is_range);
    void note_type(Type of_register, Type type);

    // lower_declarations.cpp
    std::uint32_t local_place(std::uint64_t bytes, std::uint32_t alignment);
    void declare_parameters();
    void declare(const Register& registers);
    void declare(const Variable& variable);
    std::optional<Binding> find(std::string_view name) const;

    // lower_operands.cpp
    std::optional<std::uint32_t> reserved_place(const Operand& operand) const;  // what %reserved_smem_offset_* gives
    Place constant(std::uint64_t value);
    Place symbol_constant(std::string_view name, std::int64_t offset);
    Place value(const Operand& operand, Type type);
    Place destination(const Operand& operand, Type type);
    std::int32_t predicate(const Operand& operand, bool sink_allowed = false);
    AddressParts address(const Operand& operand, Space space);
    void element_places(const Operand& operand, Type type, bool written, Op& op);

    // lowering.cpp
    void statements();
    void resolve_labels();
    Place new_row() { return static_cast<Place>(out_.rows++); }
    // `op`: what is known of it already; its place in the source and its guard are set here.
    Op& emit(Run run, OpKind kind = OpKind::plain, Op op = {});
    Place emit_special(Run run);
    bool test(Run run, Type type);
    bool simple(Run run, Type to, std::initializer_list<Type> from);
    void instruction(const Instruction& instruction);

    // Each in its file: lower_arithmetic.cpp …; false: it is another instruction.
    bool arithmetic();
    bool integer_arithmetic(std::string_view name, Type type);
    bool float_arithmetic(std::string_view name, Type type);
    bool bits();
    bool comparison();
    bool compare_parts(Comparison& comparison, Combine& combine);
    void end_parts(Op& op, Combine combine, std::size_t at);
    bool select();
    bool move();
    void move_wide(const Operand& to, const Operand& from);
    void move_special_vector(const Operand& to, const Operand& from, Type type);
    bool convert();
    bool convert_small();
    void convert_and_pack();
    bool memory();
    bool load_or_store(bool is_load);
    bool policy_operand(std::size_t at);
    bool atomic();
    bool spaces();
    bool surfaces();
    bool textures();
    bool gradients(const TextureShape& shape, std::vector<Place>& out);
    bool object_query();
    bool mbarrier();
    bool asynchronous_copy();
    void thread_copy();
    void bulk_copy();
    bool clusters();
    bool cluster_barrier();
    bool stack();
    bool takes_stack() const;
    void end_stack();
    bool between_lanes();
    bool barrier();
    bool control();
    bool without_effect();
    bool branch_table();
    bool call();
    std::vector<Type> parameter_types(const std::vector<Operand>& operands, std::size_t target) const;
    std::optional<LocalPlace> argument(const Operand& operand, Type type);
    void pass(const Passed& one, bool loads);
    void store_results();

    const FunctionSyntax& syntax_;
    ProgramCode& program_;
    FunctionCode& out_;
    std::uint32_t& shared_;
    std::vector<Scope> scopes_;
    std::size_t scope_ = 0;
    std::vector<Fixup> fixups_;
    std::map<std::uint64_t, Place> constants_;
    const Instruction* now_ = nullptr;
    Qualifiers* words_ = nullptr;
    std::uint32_t line_ = 0;
    std::int32_t guard_ = -1;
    bool exact_types_ = false;           // of the instruction's registers
    bool predicate_negated_ = false;     // of the last predicate()
    std::vector<Passed> results_;        // of the function, that are registers
    std::optional<Place> stack_before_;  // where the stack ended when the function began, if it has alloca
};

}  // namespace isthmus::ptx
