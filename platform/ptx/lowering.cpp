// SPDX-License-Identifier: Apache-2.0
// Names, operands and the frame of a function; the instructions are in lower_*.cpp.
#include "lowering.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace isthmus::ptx {
namespace {

// A register of 128 bits has two rows, the low half first.
std::uint32_t rows_of(Type type) {
    return type == Type::b128 ? 2 : 1;
}
bool holds(Type of_register, Type type) {
    return (of_register == Type::b128) == (type == Type::b128) && size_bytes(of_register) >= size_bytes(type);
}

}  // namespace

Qualifiers::Qualifiers(const Instruction& instruction) {
    for (const std::string_view word : instruction.qualifiers) {
        if (const auto type = type_named(word)) {
            types.push_back(*type);
        } else {
            left.push_back(word);
        }
    }
}
bool Qualifiers::take(std::string_view dotted) {
    const auto found = std::find(left.begin(), left.end(), dotted);
    if (found == left.end()) return false;
    left.erase(found);
    return true;
}
std::string_view Qualifiers::take_one_of(std::span<const std::string_view> dotted) {
    for (const std::string_view word : dotted) {
        if (take(word)) return word.substr(1);
    }
    return {};
}
void Qualifiers::ignore(std::span<const std::string_view> dotted) {
    for (const std::string_view word : dotted) take(word);
}
void Qualifiers::ignore_prefixed(std::string_view prefix) {
    std::erase_if(left, [&](std::string_view word) { return word.starts_with(prefix); });
}

Lowering::Lowering(const FunctionSyntax& syntax, ProgramCode& program, FunctionCode& out, std::uint32_t& shared)
    : syntax_(syntax), program_(program), out_(out), shared_(shared) {
    scopes_.emplace_back();
}

void Lowering::refuse(std::string what, std::uint32_t line) {
    if (!out_.refusal.refused()) out_.refusal = {std::move(what), line};
}

namespace {

// What a program can do in place of an instruction that is refused; empty: nothing is known.
std::string_view remedy_of(std::string_view refused) {
    constexpr std::string_view without_tensor_cores =
        "build this kernel for a path without tensor cores, or register a CPU twin for it";
    constexpr std::string_view launch_by_host = "launch the kernel from the host";
    constexpr std::pair<std::string_view, std::string_view> beginnings[] = {
        {"cp.async.bulk.tensor", "copy with cp.async.bulk, row by row, or with loads and stores"},
        {"cp.async.bulk.prefetch.tensor", "leave the prefetch out"},
        {"cp.reduce.async.bulk", "add with red, element by element"},
        {"tensormap", "copy with cp.async.bulk, row by row, or with loads and stores"},
        {"wgmma", without_tensor_cores},
        {"wmma", without_tensor_cores},
        {"mma", without_tensor_cores},
        {"tcgen05", without_tensor_cores},
        {"ldmatrix", without_tensor_cores},
        {"stmatrix", without_tensor_cores}};
    for (const auto& [beginning, remedy] : beginnings) {
        if (refused.starts_with(beginning)) return remedy;
    }
    constexpr std::string_view launches[] = {"LaunchDevice", "GetParameterBuffer"};
    for (const std::string_view one : launches) {
        if (refused.starts_with("call") && refused.find(one) != std::string_view::npos) return launch_by_host;
    }
    return "";
}

}  // namespace

void Lowering::refuse_this(std::string_view why) {
    std::string words(now_->opcode);
    for (const std::string_view word : now_->qualifiers) words += word;
    words += " " + std::string(why);
    const std::string_view instead = remedy_of(words);
    refuse(instead.empty() ? words : words + "; instead, " + std::string(instead));
}

void Lowering::mismatch() {
    fault("Arguments mismatch for instruction '" + std::string(now_->opcode) + "'");
}

// A name that is used: nothing declares it, and it is no special register.
void Lowering::note_name(std::string_view name) {
    constexpr std::string_view specials[] = {
        "%tid",    "%ntid",        "%laneid",    "%warpid",  "%nwarpid",  "%ctaid",     "%nctaid",   "%smid",
        "%nsmid",  "%gridid",      "%is_",       "%cluster", "%ncluster", "%lanemask_", "%clock",    "%pm",
        "%envreg", "%globaltimer", "%reserved_", "%total_",  "%aggr_",    "%dynamic_",  "%current_", "WARP_SZ"};
    if (name.empty() || find(name) || program_.symbols.find(name) != program_.symbols.end()) return;
    for (std::size_t scope = scope_;; scope = scopes_[scope].parent) {
        if (scopes_[scope].labels.count(name) != 0) return;
        if (scope == 0) break;
    }
    for (const std::string_view special : specials) {
        if (name.starts_with(special)) return;
    }
    fault("Unknown symbol '" + std::string(name) + "'");
}

// A name that is declared: it is there already in its scope.
void Lowering::note_declaration(std::string_view name, bool is_range) {
    const Scope& scope = scopes_[scope_];
    bool again = is_range ? scope.ranges.count(name) != 0 : scope.names.count(name) + scope.labels.count(name) != 0;
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    const auto range = scope.ranges.find(name.substr(0, digits));
    if (!is_range && range != scope.ranges.end() && digits < name.size() && name.size() - digits < 8) {
        std::uint32_t index = 0;
        for (const char c : name.substr(digits)) index = index * 10 + static_cast<std::uint32_t>(c - '0');
        again = again || index < range->second.count;
    }
    if (again) fault("Duplicate definition of variable '" + std::string(name) + "'");
}

// PTX ISA, operand types: the sizes are the same, and untyped bits agree with each type.
void Lowering::note_type(Type of_register, Type type) {
    const auto is_bits = [](Type one) { return one >= Type::b8 && one <= Type::b128; };
    const bool agrees = size_bytes(of_register) == size_bytes(type) &&
                        (is_bits(of_register) || is_bits(type) || is_float(of_register) == is_float(type));
    if (exact_types_ && !agrees) mismatch();
}

std::uint32_t Lowering::local_place(std::uint64_t bytes, std::uint32_t alignment) {
    constexpr std::uint64_t most = most_local_bytes;
    const std::uint64_t place = (std::uint64_t{out_.local_bytes} + alignment - 1) & ~std::uint64_t{alignment - 1};
    if (alignment > 4096 || bytes > most || place + bytes > most) {
        refuse("local memory of more than 512 KiB");
        return 0;
    }
    out_.local_bytes = static_cast<std::uint32_t>(place + bytes);
    return static_cast<std::uint32_t>(place);
}

// An entry's parameters lie in its parameter block; those of a function in its frame's local memory.
void Lowering::declare_parameters() {
    std::uint32_t offset = 0;
    const auto bind = [&](const Variable& variable, Binding::Kind kind, std::uint32_t place) {
        Binding binding;
        binding.kind = kind;
        binding.type = variable.type;
        binding.place = static_cast<std::int32_t>(place);
        binding.bytes = static_cast<std::uint32_t>(variable.bytes());
        line_ = variable.line;
        if (variable.name != "_" && !variable.name.empty()) note_declaration(variable.name, false);
        scopes_[0].names[variable.name] = binding;
    };
    const auto bind_register = [&](const Variable& variable, std::uint32_t place) {
        const Passed made{new_row(), place, variable.type};
        bind(variable, Binding::Kind::row, static_cast<std::uint32_t>(made.row));
        return made;
    };
    for (const Variable& parameter : syntax_.parameters) {
        if (parameter.bytes() > 65536 || parameter.unsized) return refuse("a parameter of no size", parameter.line);
        const auto bytes = static_cast<std::uint32_t>(parameter.bytes());
        if (syntax_.is_entry) {
            if (parameter.alignment > 4096) {
                return refuse("a parameter with an alignment of more than 4096 bytes", parameter.line);
            }
            offset = (offset + parameter.alignment - 1) & ~(parameter.alignment - 1);
            bind(parameter, Binding::Kind::entry_parameter, offset);
            offset += bytes;
            if (offset > most_parameter_bytes) return refuse("more than 32764 bytes of parameters", parameter.line);
        } else {
            const std::uint32_t place = local_place(bytes, parameter.alignment);
            out_.parameters.push_back({place, bytes});
            if (parameter.in_register) {
                pass(bind_register(parameter, place), true);
            } else {
                bind(parameter, Binding::Kind::local, place);
            }
        }
    }
    for (const Variable& result : syntax_.returns) {
        const std::uint32_t place = local_place(result.bytes(), result.alignment);
        if (result.in_register) {
            results_.push_back(bind_register(result, place));
        } else {
            bind(result, Binding::Kind::local, place);
        }
        out_.returns.push_back({place, static_cast<std::uint32_t>(result.bytes())});
    }
}

void Lowering::declare(const Register& registers) {
    constexpr std::uint32_t most = 1u << 20;
    Binding binding;
    binding.type = registers.type;
    binding.kind = registers.type == Type::pred ? Binding::Kind::predicate : Binding::Kind::row;
    std::uint32_t& next = registers.type == Type::pred ? out_.predicates : out_.rows;
    const std::uint32_t count = (registers.count == 0 ? 1 : registers.count) * rows_of(registers.type);
    if (next > most - count) return refuse("more than a million registers");
    binding.place = static_cast<std::int32_t>(next);
    binding.count = registers.count;
    next += count;
    Scope& scope = scopes_[scope_];
    line_ = registers.line;
    note_declaration(registers.name, registers.count != 0);
    (registers.count == 0 ? scope.names : scope.ranges)[registers.name] = binding;
}

void Lowering::declare(const Variable& variable) {
    Binding binding;
    binding.type = variable.type;
    line_ = variable.line;
    if (variable.space == Space::local || variable.space == Space::param) {
        if (variable.unsized || !variable.initial.empty())
            return refuse("a local variable without a size, or with a value");
        binding.kind = Binding::Kind::local;
        binding.place = static_cast<std::int32_t>(local_place(variable.bytes(), variable.alignment));
        if (variable.space == Space::local) out_.declared_local_bytes += static_cast<std::uint32_t>(variable.bytes());
    } else if (variable.space == Space::shared && !variable.unsized && variable.initial.empty()) {
        constexpr std::uint64_t most = 1 << 20;
        const std::uint64_t place =
            (std::uint64_t{shared_} + variable.alignment - 1) & ~std::uint64_t{variable.alignment - 1};
        if (place > most || variable.bytes() > most || place + variable.bytes() > most) {
            return refuse("shared memory of more than 1 MiB");
        }
        binding.kind = Binding::Kind::shared;
        binding.place = static_cast<std::int32_t>(place);
        out_.own_shared_bytes += static_cast<std::uint32_t>(place + variable.bytes()) - shared_;
        shared_ = static_cast<std::uint32_t>(place + variable.bytes());
    } else {
        return refuse("a variable of this kind in a function");
    }
    binding.bytes = static_cast<std::uint32_t>(variable.bytes());
    note_declaration(variable.name, false);
    scopes_[scope_].names[variable.name] = binding;
}

std::optional<Lowering::Binding> Lowering::find(std::string_view name) const {
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    const std::string_view prefix = name.substr(0, digits), number = name.substr(digits);
    for (std::size_t scope = scope_;; scope = scopes_[scope].parent) {
        const Scope& here = scopes_[scope];
        if (const auto found = here.names.find(name); found != here.names.end()) return found->second;
        if (const auto range = here.ranges.find(prefix);
            range != here.ranges.end() && !number.empty() && number.size() < 8) {
            std::uint32_t index = 0;
            for (const char c : number) index = index * 10 + static_cast<std::uint32_t>(c - '0');
            if (index < range->second.count) {
                Binding binding = range->second;
                binding.place += static_cast<std::int32_t>(index * rows_of(binding.type));
                return binding;
            }
        }
        if (scope == 0) return std::nullopt;
    }
}

Place Lowering::constant(std::uint64_t value) {
    const auto [known, is_new] = constants_.try_emplace(value, 0);
    if (is_new) {
        known->second = ~static_cast<Place>(out_.constants.size());
        out_.constants.emplace_back().fill(value);
    }
    return known->second;
}

Place Lowering::symbol_constant(std::string_view name, std::int64_t offset) {
    const auto symbol = program_.symbols.find(name);
    if (symbol == program_.symbols.end()) {
        note_name(name);
        refuse_this("names " + std::string(name) + ", which is not declared");
        return 0;
    }
    if (symbol->second.kind == Symbol::Kind::refused) {
        refuse_this("names " + std::string(name) +
                    ", which is refused: " + program_.refused_names[symbol->second.index].what);
        return 0;
    }
    if (symbol->second.kind == Symbol::Kind::shared) {
        if (symbol->second.index == 0) out_.shared_variables[symbol->second.offset] = symbol->second.bytes;
        if (symbol->second.index == 0) return constant(symbol->second.offset + static_cast<std::uint64_t>(offset));
        // Dynamic shared memory begins behind the entry's own.
        const Place start = emit_special(special_run(dynamic_shared_name, {}));
        if (offset == 0) return start;
        const Place sum = new_row();
        Op& op = emit(integer_run("add", Type::u64));
        op.d = sum;
        op.a = start;
        op.b = constant(static_cast<std::uint64_t>(offset));
        return sum;
    }
    program_.note_use(symbol->second);
    const auto row = static_cast<std::uint32_t>(out_.constants.size());
    out_.constants.emplace_back().fill(0);
    out_.relocations.push_back({row, symbol->second, offset});
    return ~static_cast<Place>(row);
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

Place Lowering::value(const Operand& operand, Type type) {
    if (type == Type::b128) return destination(operand, type);  // no constant has 128 bits
    const std::uint64_t mask = mask_of(size_bytes(type));
    if (operand.negated) {
        refuse_this("has a negated operand");
        return 0;
    }
    switch (operand.kind) {
        case OperandKind::integer:
            if (is_float(type) && size_bytes(type) > 2 && type != Type::f16x2 && type != Type::bf16x2) {
                refuse_this("has an integer as an operand of a float");
            }
            return constant(operand.value & mask);
        case OperandKind::single_float:
            if (type == Type::f64) {
                return constant(std::bit_cast<std::uint64_t>(
                    static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.value)))));
            }
            if (size_bytes(type) < 4) refuse_this("has a float that is larger than its type");
            return constant(operand.value);
        case OperandKind::double_float:
            if (type == Type::f32) {
                return constant(std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(operand.value))));
            }
            if (size_bytes(type) != 8) refuse_this("has a float that is larger than its type");
            return constant(operand.value);
        case OperandKind::name: break;
        default: refuse_this("has an operand of another kind than is known"); return 0;
    }
    const auto binding = find(operand.name);
    if (!binding || operand.part.size() > 1) {
        if (operand.name.starts_with('%') || operand.name == "WARP_SZ") {
            const Run run = special_run(operand.name, operand.part);
            if (run != nullptr && operand.offset == 0) return emit_special(run);
            note_name(operand.name);
            refuse_this("reads " + std::string(operand.name) + std::string(operand.part) + ", which is not modelled");
            return 0;
        }
        return symbol_constant(operand.name, operand.offset);
    }
    switch (binding->kind) {
        case Binding::Kind::row:
            note_type(binding->type, type);
            if (operand.offset != 0 || !holds(binding->type, type)) {
                refuse_this("has a register that is too small for its type");
            }
            return binding->place;
        case Binding::Kind::shared:
        case Binding::Kind::entry_parameter:
            return constant(static_cast<std::uint64_t>(binding->place + operand.offset));
        case Binding::Kind::local: {
            const Place row = new_row();
            Op& op = emit(local_address_run());
            op.d = row;
            op.value = static_cast<std::uint64_t>(binding->place + operand.offset);
            return row;
        }
        case Binding::Kind::predicate: break;
    }
    refuse_this("has a predicate where a number is needed");
    return 0;
}

Place Lowering::destination(const Operand& operand, Type type) {
    if (operand.kind == OperandKind::sink && type != Type::b128) return new_row();
    const auto binding = operand.kind == OperandKind::name && operand.offset == 0 ? find(operand.name) : std::nullopt;
    if (operand.kind == OperandKind::name) note_name(operand.name);
    if (binding && binding->kind == Binding::Kind::row) note_type(binding->type, type);
    if (!binding || binding->kind != Binding::Kind::row || !holds(binding->type, type)) {
        refuse_this("needs a register of its size");
        return 0;
    }
    return binding->place;
}

// ~0: false, ~1: true, and -1 for a sink, which is the same as false.
std::int32_t Lowering::predicate(const Operand& operand, bool sink_allowed) {
    predicate_negated_ = operand.negated;
    if (operand.kind == OperandKind::integer && !sink_allowed) return operand.value != 0 ? ~1 : ~0;
    if (operand.kind == OperandKind::sink && sink_allowed) return -1;
    const auto binding = operand.kind == OperandKind::name ? find(operand.name) : std::nullopt;
    if (operand.kind == OperandKind::name) note_name(operand.name);
    if (!binding || binding->kind != Binding::Kind::predicate) {
        refuse_this("has another operand where a predicate is needed");
        return -1;
    }
    return binding->place;
}

Lowering::AddressParts Lowering::address(const Operand& operand, Space space) {
    AddressParts out;
    out.space = space;
    if (operand.kind != OperandKind::address) {
        refuse_this("needs an address");
        return out;
    }
    out.offset = static_cast<std::uint64_t>(operand.offset);
    if (operand.name.empty()) {
        out.base = constant(0);
        return out;
    }
    const auto binding = find(operand.name);
    if (!binding) {
        out.base = symbol_constant(operand.name, 0);
        const auto symbol = program_.symbols.find(operand.name);
        const bool is_shared = symbol != program_.symbols.end() && symbol->second.kind == Symbol::Kind::shared;
        if (is_shared != (space == Space::shared)) refuse_this("names a variable of another space");
        return out;
    }
    switch (binding->kind) {
        case Binding::Kind::row:
            out.base = binding->place;
            if (binding->type == Type::b128 || size_bytes(binding->type) < 4 ||
                (size_bytes(binding->type) < 8 && space != Space::shared && space != Space::local &&
                 space != Space::param)) {
                refuse_this("has an address in a register that is too small");
            }
            // A parameter whose address was taken in a function lies in local memory.
            if (space == Space::param && !syntax_.is_entry) out.space = Space::local;
            return out;
        case Binding::Kind::shared:
            if (space != Space::shared) refuse_this("names a variable of another space");
            out.base = constant(static_cast<std::uint64_t>(binding->place));
            return out;
        case Binding::Kind::entry_parameter:
            if (space != Space::param) refuse_this("names a variable of another space");
            out.base = constant(static_cast<std::uint64_t>(binding->place));
            return out;
        case Binding::Kind::local:
            if (space != Space::param && space != Space::local) refuse_this("names a variable of another space");
            out.space = Space::local;
            {
                Op& op = emit(local_address_run());
                op.d = out.base = new_row();
                op.value = static_cast<std::uint64_t>(binding->place);
            }
            return out;
        case Binding::Kind::predicate: break;
    }
    refuse_this("has a predicate as an address");
    return out;
}

bool Lowering::want(std::size_t least, std::size_t most) {
    if (now_->operands.size() >= least && now_->operands.size() <= most) return true;
    // Newer architectures have min and max of three.
    if (exact_types_ && now_->opcode != "min" && now_->opcode != "max") mismatch();
    refuse_this("has " + std::to_string(now_->operands.size()) + " operands");
    return false;
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
