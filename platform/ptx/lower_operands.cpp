// SPDX-License-Identifier: Apache-2.0
// Operands become places: constants, registers, predicates, the parts of addresses.
#include "lowering.hpp"

#include <bit>

namespace isthmus::ptx {
namespace {

bool holds(Type of_register, Type type) {
    return (of_register == Type::b128) == (type == Type::b128) && size_bytes(of_register) >= size_bytes(type);
}

}  // namespace

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

std::optional<std::uint32_t> Lowering::reserved_place(const Operand& operand) const {
    if (!program_.reads_reserved_shared || operand.offset != 0 || !operand.part.empty() ||
        !operand.name.starts_with(reserved_shared_names)) {
        return std::nullopt;
    }
    const std::string_view which = operand.name.substr(reserved_shared_names.size());
    if (which == "begin" || which == "0") return 0;
    if (which == "1") return reserved_for_groups;
    if (which == "end" || which == "cap") return reserved_shared_bytes;
    return std::nullopt;
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
            if (const auto place = reserved_place(operand)) return constant(*place);
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

// Places of a vector's elements, or of one operand. Sinks are -1.
void Lowering::element_places(const Operand& operand, Type type, bool written, Op& op) {
    op.count = static_cast<std::uint8_t>(operand.elements.size());
    op.extra = static_cast<std::uint32_t>(out_.extra.size());
    std::vector<std::int32_t> places;
    for (const Operand& element : operand.elements) {
        if (written) {
            places.push_back(element.kind == OperandKind::sink ? -1 : destination(element, type));
        } else {
            places.push_back(value(element, type));
        }
    }
    out_.extra.insert(out_.extra.end(), places.begin(), places.end());
}

}  // namespace isthmus::ptx
