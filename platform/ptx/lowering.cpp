// SPDX-License-Identifier: Apache-2.0
// The statements of a function, in their order; what each of them becomes is in lower_*.cpp.
#include "lowering.hpp"

#include <algorithm>

namespace isthmus::ptx {

Lowering::Lowering(const FunctionSyntax& syntax, ProgramCode& program, FunctionCode& out, std::uint32_t& shared)
    : syntax_(syntax), program_(program), out_(out), shared_(shared) {
    scopes_.emplace_back();
}

Op& Lowering::emit(Run run, OpKind kind, Op op) {
    op.run = run;
    op.kind = kind;
    op.line = line_;
    op.guard = guard_;
    if (now_ != nullptr) {
        op.source = now_->source;
        op.guard_negated = now_->guard_negated;
    }
    out_.ops.push_back(op);
    return out_.ops.back();
}

Place Lowering::emit_special(Run run) {
    const Place row = new_row();
    emit(run).d = row;
    return row;
}

void Lowering::instruction(const Instruction& instruction) {
    now_ = &instruction;
    line_ = instruction.line;
    Qualifiers words(instruction);
    words_ = &words;
    guard_ = -1;
    if (!instruction.guard.empty()) {
        const auto binding = find(instruction.guard);
        note_name(instruction.guard);
        if (!binding || binding->kind != Binding::Kind::predicate) return refuse_this("has no predicate as its guard");
        guard_ = binding->place;
    }
    // Loads, stores and conversions take wider registers, and other instructions are not known well enough.
    constexpr std::string_view exact[] = {"mov", "add", "sub", "mul", "mad", "div", "rem", "min", "max",  "neg",
                                          "abs", "fma", "and", "or",  "xor", "not", "shl", "shr", "selp", "setp"};
    const std::string_view name = instruction.opcode;
    exact_types_ = std::find(std::begin(exact), std::end(exact), name) != std::end(exact);
    const bool is_wide = std::find(words.types.begin(), words.types.end(), Type::b128) != words.types.end();
    if (is_wide && name != "mov" && name != "ld" && name != "st") return refuse_this("is not modelled");
    const bool known = arithmetic() || bits() || comparison() || select() || move() || convert() || memory() ||
                       surfaces() || textures() || object_query() || between_lanes() || barrier() || control();
    if (!known) return refuse_this("is not modelled");
    if (!words.left.empty()) {
        std::string rest;
        for (const std::string_view word : words.left) rest += word;
        refuse_this("is not modelled: " + rest + " is not known");
    }
}

// A predicate that tells something of one operand.
bool Lowering::test(Run run, Type type) {
    if (run == nullptr) return refuse_this("is not modelled"), true;
    if (!want(2, 2)) return true;
    const Place a = value(now_->operands[1], type);
    const std::int32_t p = predicate(now_->operands[0]);
    if (p < 0) return refuse_this("needs a predicate"), true;
    Op& op = emit(run);
    op.a = a;
    op.p = p;
    return true;
}

// One operation for an instruction with a result and up to three operands; false: refused.
bool Lowering::simple(Run run, Type to, std::initializer_list<Type> from) {
    if (run == nullptr) {
        refuse_this("is not modelled");
        return false;
    }
    if (!want(1 + from.size(), 1 + from.size())) return false;
    Place places[3] = {};
    std::size_t at = 0;
    for (const Type type : from) {
        places[at] = value(now_->operands[1 + at], type);
        ++at;
    }
    const Place d = destination(now_->operands[0], to);
    Op& op = emit(run);
    op.d = d;
    op.a = places[0];
    op.b = places[1];
    op.c = places[2];
    return true;
}

void Lowering::resolve_labels() {
    for (const Fixup& fixup : fixups_) {
        bool found = false;
        for (std::size_t scope = fixup.scope; !found; scope = scopes_[scope].parent) {
            const auto label = scopes_[scope].labels.find(fixup.label);
            if (label != scopes_[scope].labels.end()) {
                found = true;
                if (fixup.extra < 0) {
                    out_.ops[fixup.op].value = label->second;
                } else {
                    out_.extra[static_cast<std::size_t>(fixup.extra)] = static_cast<std::int32_t>(label->second);
                }
            }
            if (scope == 0) break;
        }
        if (!found) {
            line_ = fixup.line;
            fault("Unknown symbol '" + std::string(fixup.label) + "'");
        }
        if (!found) refuse("the label " + std::string(fixup.label) + " is not there", fixup.line);
    }
}

void Lowering::lower() {
    statements();
    constexpr std::uint32_t alignment = 32;
    out_.local_bytes = (out_.local_bytes + alignment - 1) & ~(alignment - 1);
}

void Lowering::statements() {
    line_ = syntax_.line;
    if (syntax_.refusal.refused()) refuse(syntax_.refusal.what, syntax_.refusal.line);
    if (!syntax_.refused_directive.empty()) refuse(syntax_.refused_directive + " is not modelled");
    declare_parameters();
    if (takes_stack()) {
        out_.takes_stack = true;
        stack_before_ = emit_special(stack_save_run());
    }
    // Lists of targets may stand behind their use.
    for (const Statement& statement : syntax_.statements) {
        if (statement.kind == StatementKind::targets) scopes_[0].targets[statement.name] = statement.at;
    }
    for (const Statement& statement : syntax_.statements) {
        if (refused()) return;
        switch (statement.kind) {
            case StatementKind::open_scope:
                scopes_.emplace_back().parent = scope_;
                scope_ = scopes_.size() - 1;
                break;
            case StatementKind::close_scope: scope_ = scopes_[scope_].parent; break;
            case StatementKind::registers: declare(syntax_.registers[statement.at]); break;
            case StatementKind::variable: declare(syntax_.variables[statement.at]); break;
            case StatementKind::label:
                line_ = statement.line;
                if (scopes_[scope_].labels.count(statement.name) != 0)
                    fault("Duplicate definition of label '" + std::string(statement.name) + "'");
                scopes_[scope_].labels[statement.name] = static_cast<std::uint32_t>(out_.ops.size());
                break;
            case StatementKind::instruction: instruction(syntax_.instructions[statement.at]); break;
            default: break;
        }
    }
    if (refused()) return;
    now_ = nullptr;
    guard_ = -1;
    store_results();
    end_stack();
    emit(nullptr, OpKind::return_);  // where the text has none
    resolve_labels();
}

}  // namespace isthmus::ptx
