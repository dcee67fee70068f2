// SPDX-License-Identifier: Apache-2.0
// The registers, variables and parameters of a function, and the names that its scopes have.
#include "lowering.hpp"

namespace isthmus::ptx {
namespace {

// A register of 128 bits has two rows, the low half first.
std::uint32_t rows_of(Type type) {
    return type == Type::b128 ? 2 : 1;
}

}  // namespace

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
        constexpr std::uint64_t most = (1 << 20) + reserved_shared_bytes;
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

}  // namespace isthmus::ptx
