// SPDX-License-Identifier: Apache-2.0
// Decodes calls: what is passed, and what comes back.
#include "lowering.hpp"

#include <utility>

namespace isthmus::ptx {

// Between a register and its place in the frame's local memory.
void Lowering::pass(const Passed& one, bool loads) {
    Op made;
    made.a = new_row();
    Op& address = emit(local_address_run());
    address.d = made.a;
    address.value = one.place;
    made.bytes = static_cast<std::uint8_t>(size_bytes(one.type));
    made.space = Space::local;
    made.slot = program_.memory_slots++;
    (loads ? made.d : made.b) = one.row;
    emit(loads ? load_run(made.bytes) : store_run(made.bytes), OpKind::may_fault, made);
}

void Lowering::store_results() {
    for (const Passed& one : results_) pass(one, false);
}

// Of the function that the operand names, or of the prototype behind it; empty: it is not known.
std::vector<Type> Lowering::parameter_types(const std::vector<Operand>& operands, std::size_t target) const {
    if (!find(operands[target].name)) {
        const auto symbol = program_.symbols.find(operands[target].name);
        const bool is_function = symbol != program_.symbols.end() && symbol->second.kind == Symbol::Kind::function;
        return is_function ? program_.functions[symbol->second.index].parameter_types : std::vector<Type>();
    }
    std::vector<Type> out;
    for (const Statement& statement : syntax_.statements) {
        const bool is_meant = statement.kind == StatementKind::prototype && operands.back().kind == OperandKind::name &&
                              statement.name == operands.back().name;
        if (!is_meant) continue;
        for (const Variable& one : syntax_.prototypes[statement.at].parameters) out.push_back(one.type);
    }
    return out;
}

// A variable of .param, or anything else, which is stored to local memory. nullopt: it cannot be passed.
std::optional<LocalPlace> Lowering::argument(const Operand& operand, Type type) {
    const auto binding = operand.kind == OperandKind::name ? find(operand.name) : std::nullopt;
    if (binding && binding->kind == Binding::Kind::local)
        return LocalPlace{static_cast<std::uint32_t>(binding->place), binding->bytes};
    if (type == Type::none && binding && binding->kind == Binding::Kind::row) type = binding->type;
    const bool is_value = operand.kind == OperandKind::name || operand.kind == OperandKind::integer ||
                          operand.kind == OperandKind::single_float || operand.kind == OperandKind::double_float;
    if (!is_value || type == Type::none || type == Type::b128) return std::nullopt;
    const std::uint32_t bytes = size_bytes(type);
    const Passed made{value(operand, type), local_place(bytes, bytes), type};
    pass(made, false);
    return LocalPlace{made.place, bytes};
}

bool Lowering::call() {
    if (now_->opcode != "call") return false;
    const std::vector<Operand>& operands = now_->operands;
    std::size_t at = 0;
    CallSite site;
    std::vector<Passed> results;
    if (operands.size() > 1 && operands[0].kind == OperandKind::list) {
        for (const Operand& element : operands[at++].elements) {
            const auto binding = element.kind == OperandKind::name ? find(element.name) : std::nullopt;
            if (element.kind == OperandKind::sink) {
                site.results.emplace_back();
            } else if (binding && binding->kind == Binding::Kind::local) {
                site.results.push_back({static_cast<std::uint32_t>(binding->place), binding->bytes});
            } else if (binding && binding->kind == Binding::Kind::row && binding->type != Type::b128) {
                const std::uint32_t bytes = size_bytes(binding->type);
                results.push_back({binding->place, local_place(bytes, bytes), binding->type});
                site.results.push_back({results.back().place, bytes});
            } else {
                return refuse_this("gives its result to what is no register and no variable of .param"), true;
            }
        }
    }
    if (at >= operands.size() || operands[at].kind != OperandKind::name) return refuse_this("names no function"), true;
    const Operand& target = operands[at++];
    if (at < operands.size() && operands[at].kind == OperandKind::list) {
        const std::vector<Type> types = parameter_types(operands, at - 1);
        for (const Operand& element : operands[at].elements) {
            const std::size_t one = site.arguments.size();
            const auto place = argument(element, one < types.size() ? types[one] : Type::none);
            if (!place)
                return refuse_this("passes what is neither a register, a number nor a variable of .param"), true;
            site.arguments.push_back(*place);
        }
    }
    const auto number = static_cast<std::uint32_t>(out_.sites.size());
    out_.sites.push_back(std::move(site));
    const auto binding = find(target.name);
    const auto symbol = program_.symbols.find(target.name);
    Op made;
    made.extra = number;
    made.slot = program_.memory_slots++;  // intrinsics read memory: they need a window of their own
    if (binding && binding->kind == Binding::Kind::row) {
        out_.calls_indirectly = true;
        made.a = binding->place;
        emit(nullptr, OpKind::call_indirect, made);
    } else if (symbol != program_.symbols.end() && symbol->second.kind == Symbol::Kind::function) {
        const FunctionCode& callee = program_.functions[symbol->second.index];
        if (callee.intrinsic == Intrinsic::missing) return refuse_this("of " + callee.name + " is not modelled"), true;
        out_.calls.push_back(symbol->second.index);
        made.value = symbol->second.index;
        emit(nullptr, OpKind::call, made);
    } else if (symbol != program_.symbols.end() && symbol->second.kind == Symbol::Kind::refused) {
        symbol_constant(target.name, 0);  // says why
    } else {
        note_name(target.name);
        refuse_this("names no function");
    }
    for (const Passed& one : results) pass(one, true);
    return true;
}

}  // namespace isthmus::ptx
