// SPDX-License-Identifier: Apache-2.0
// Decodes branches, calls, barriers and operations between lanes.
#include "lowering.hpp"

#include <algorithm>

namespace isthmus::ptx {

bool Lowering::between_lanes() {
    Qualifiers& words = *words_;
    const std::string_view opcode = now_->opcode;
    if (opcode == "activemask") {
        simple(warp_run("activemask"), Type::b32, {});
        return true;
    }
    const bool known =
        opcode == "shfl" || opcode == "vote" || opcode == "match" || opcode == "redux" || opcode == "elect";
    if (!known) return false;
    constexpr std::string_view ways[] = {".up",     ".down", ".bfly", ".idx", ".all", ".any", ".uni",
                                         ".ballot", ".add",  ".min",  ".max", ".and", ".or",  ".xor"};
    if (!words.take(".sync")) return refuse_this("is not modelled: only .sync is"), true;
    std::string name(opcode);
    const std::string_view way = words.take_one_of(ways);
    if (!way.empty()) name += "." + std::string(way);
    const Type type = words.type();
    if (opcode == "redux")
        name += type == Type::u32 ? ".u32" : type == Type::s32 ? ".s32" : type == Type::b32 ? ".b32" : ".?";
    const Run run = warp_run(name);
    if (run == nullptr) return refuse_this("is not modelled"), true;
    Op made;
    Place members = 0;
    const Operand& result = now_->operands.empty() ? Operand() : now_->operands[0];
    const Operand first = result.kind == OperandKind::pair ? result.elements[0] : result;
    if (result.kind == OperandKind::pair) made.p = predicate(result.elements[1], true);
    if (opcode == "shfl") {
        if (!want(5, 5) || type != Type::b32) return refuse_this("is not modelled"), true;
        made.a = value(now_->operands[1], Type::b32);
        made.b = value(now_->operands[2], Type::u32);
        made.c = value(now_->operands[3], Type::u32);
        members = value(now_->operands[4], Type::b32);
        made.d = destination(first, Type::b32);
    } else if (opcode == "vote") {
        if (!want(3, 3)) return true;
        made.q = predicate(now_->operands[1]);
        made.flag = predicate_negated_;
        members = value(now_->operands[2], Type::b32);
        if (name == "vote.ballot") {
            made.d = destination(first, Type::b32);
        } else {
            made.p = predicate(first, true);
        }
    } else if (opcode == "elect") {
        if (!want(2, 2)) return true;
        made.d = destination(first, Type::b32);
        members = value(now_->operands[1], Type::b32);
    } else {
        if (!want(3, 3)) return true;
        if (opcode == "match" && type != Type::b32 && type != Type::b64) return refuse_this("is not modelled"), true;
        made.a = value(now_->operands[1], type);
        members = value(now_->operands[2], Type::b32);
        made.bytes = static_cast<std::uint8_t>(size_bytes(type));
        made.d = destination(first, Type::b32);
    }
    Op& op = emit(run, OpKind::warp_sync);
    op.a = made.a;
    op.b = made.b;
    op.c = made.c;
    op.d = made.d;
    op.p = made.p;
    op.q = made.q;
    op.flag = made.flag;
    op.bytes = made.bytes;
    op.extra = static_cast<std::uint32_t>(members);
    return true;
}

bool Lowering::barrier() {
    if (now_->opcode != "bar" && now_->opcode != "barrier") return false;
    Qualifiers& words = *words_;
    if (words.take(".warp")) {
        if (!words.take(".sync") || !want(1, 1)) return refuse_this("is not modelled"), true;
        const Place members = value(now_->operands[0], Type::b32);
        Op& op = emit(warp_run("bar.warp"), OpKind::warp_sync);
        op.extra = static_cast<std::uint32_t>(members);
        op.flag = true;
        return true;
    }
    if (words.take(".cluster")) return cluster_barrier();
    words.take(".cta");
    words.take(".aligned");
    Op made;
    constexpr std::string_view results[] = {".popc", ".and", ".or"};
    std::string name;
    std::size_t first = 0, most = 2;
    if (words.take(".sync")) {
        name = "sync";
    } else if (words.take(".arrive")) {
        name = "arrive";
        made.value2 = 1;
    } else if (words.take(".red")) {
        name = "red." + std::string(words.take_one_of(results));
        made.value2 = 2;
        first = 1;
        most = 4;
    } else {
        return refuse_this("is not modelled"), true;
    }
    if (!want(first + 1 + (made.value2 == 2 ? 1 : 0), most)) return true;
    const bool red = made.value2 == 2;
    const std::size_t numbers = now_->operands.size() - first - (red ? 1 : 0);
    made.a = value(now_->operands[first], Type::u32);
    made.flag = numbers > 1;
    if (made.flag) made.b = value(now_->operands[first + 1], Type::u32);
    if (red) {
        made.q = predicate(now_->operands.back());
        made.c = predicate_negated_ ? 1 : 0;
        if (name == "red.popc") {
            made.d = destination(now_->operands[0], Type::u32);
        } else {
            made.p = predicate(now_->operands[0], true);
        }
    }
    Op& op = emit(barrier_run(name), OpKind::barrier);
    op.a = made.a;
    op.b = made.b;
    op.c = made.c;
    op.d = made.d;
    op.p = made.p;
    op.q = made.q;
    op.flag = made.flag;
    op.value2 = made.value2;
    return true;
}

bool Lowering::branch_table() {
    if (now_->opcode != "brx") return false;
    if (!words_->take(".idx") || !want(2, 2)) return refuse_this("is not modelled"), true;
    const auto list = scopes_[0].targets.find(now_->operands[1].name);
    if (list == scopes_[0].targets.end()) return refuse_this("names no list of targets"), true;
    const std::vector<std::string_view>& labels = syntax_.targets[list->second];
    const Place index = value(now_->operands[0], Type::u32);
    Op& op = emit(nullptr, OpKind::branch_table);
    op.a = index;
    op.value = labels.size();
    op.extra = static_cast<std::uint32_t>(out_.extra.size());
    for (const std::string_view label : labels) {
        fixups_.push_back({out_.ops.size() - 1, label, scope_, static_cast<std::int32_t>(out_.extra.size()), line_});
        out_.extra.push_back(0);
    }
    return true;
}

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

// What alloca took in the function ends.
void Lowering::end_stack() {
    if (!stack_before_) return;
    Op made;
    made.a = *stack_before_;
    emit(stack_restore_run(), OpKind::may_fault, made);
}

bool Lowering::control() {
    const std::string_view opcode = now_->opcode;
    Qualifiers& words = *words_;
    if (opcode == "bra") {
        words.take(".uni");
        if (!want(1, 1)) return true;
        fixups_.push_back({out_.ops.size(), now_->operands[0].name, scope_, -1, line_});
        emit(nullptr, OpKind::branch);
        return true;
    }
    if (opcode == "ret" || opcode == "exit") {
        words.take(".uni");
        if (opcode == "ret") {
            store_results();
            end_stack();
        }
        emit(nullptr, opcode == "ret" ? OpKind::return_ : OpKind::exit);
        return true;
    }
    if (opcode == "trap" || opcode == "brkpt") {
        if (!want(0, 0)) return true;
        emit(trap_run(), OpKind::may_fault).flag = opcode == "brkpt";
        return true;
    }
    if (opcode == "nanosleep") {
        if (!words.types.empty() && want(1, 1)) emit(nullptr, OpKind::pause);
        return true;
    }
    if (without_effect()) return true;
    words.take(".uni");
    return branch_table() || call();
}

bool Lowering::without_effect() {
    const std::string_view opcode = now_->opcode;
    // Counts an event for a profiler; the order of launches, which is the stream's here; registers of a warp group.
    if (opcode == "pmevent" || opcode == "griddepcontrol" || opcode == "setmaxnreg") {
        words_->left.clear();
        return true;
    }
    if (opcode != "createpolicy") return false;
    words_->left.clear();
    if (!want(1, 4)) return true;
    Op made;  // opaque, and read by nothing
    made.d = destination(now_->operands[0], Type::b64);
    made.a = constant(0);
    emit(move_run(), OpKind::plain, made);
    return true;
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

}  // namespace isthmus::ptx
