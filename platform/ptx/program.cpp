// SPDX-License-Identifier: Apache-2.0
// From text to a checked program: variables, functions, entries.
#include "program.hpp"

#include "code.hpp"
#include "entry_needs.hpp"
#include "lowering.hpp"
#include "register_estimate.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace isthmus::ptx {
namespace {

Intrinsic intrinsic_named(std::string_view name) {
    if (name == "vprintf") return Intrinsic::vprintf;
    if (name == "__assertfail") return Intrinsic::assertfail;
    if (name == "cudaGraphSetConditional") return Intrinsic::set_condition;
    if (name == "malloc") return Intrinsic::malloc;
    if (name == "free") return Intrinsic::free;
    return Intrinsic::missing;
}

class Builder {
public:
    Builder(const ModuleSyntax& syntax, ProgramCode& out) : syntax_(syntax), out_(out) {}

    void build() {
        out_.files = syntax_.files;
        for (const char c : syntax_.target) {
            if (c >= '0' && c <= '9') out_.target = out_.target * 10 + static_cast<std::uint32_t>(c - '0');
        }
        declare_functions();
        declare_aliases();
        declare_variables();
        for (const auto& [name, why] : syntax_.refused_names) refuse_name(name, why);
        if (!out_.refusal.refused()) fill_contents();
        if (out_.refusal.refused()) return;
        out_.reads_reserved_shared = reads_reserved_shared();
        lower(false);
        lower(true);
        for (Entry& entry : out_.entries) entry.shared_bytes = align(entry.shared_bytes, dynamic_alignment_);
        note_needs(out_, bodies_);
    }

private:
    void refuse(std::string what, std::uint32_t line) {
        if (!out_.refusal.refused()) out_.refusal = {std::move(what), line};
    }
    void duplicate(const char* what, std::string_view name, std::uint32_t line) {
        out_.note_fault("Duplicate definition of " + std::string(what) + " '" + std::string(name) + "'", line);
    }
    static std::uint32_t align(std::uint32_t value, std::uint32_t to) { return (value + to - 1) & ~(to - 1); }

    void declare_functions() {
        for (const FunctionSyntax& one : syntax_.functions) {
            const auto [symbol, is_new] = out_.symbols.try_emplace(std::string(one.name));
            if (is_new) {
                symbol->second = {Symbol::Kind::function, static_cast<std::uint32_t>(out_.functions.size()), 0};
                FunctionCode& code = out_.functions.emplace_back();
                code.name = one.name;
                code.is_entry = one.is_entry;
                for (const Variable& parameter : one.parameters) code.parameter_types.push_back(parameter.type);
                bodies_.push_back(nullptr);
            }
            if (!one.has_body) continue;
            const FunctionSyntax*& body = bodies_[symbol->second.index];
            if (body != nullptr) {
                refuse("the function " + std::string(one.name) + " has two bodies", one.line);
                if (!body->gives_way && !one.gives_way) duplicate("function", one.name, one.line);
            }
            body = &one;
            out_.functions[symbol->second.index].has_body = true;
            out_.functions[symbol->second.index].is_entry = one.is_entry;
        }
        for (std::size_t at = 0; at < out_.functions.size(); ++at) {
            FunctionCode& code = out_.functions[at];
            if (!code.has_body) code.intrinsic = intrinsic_named(code.name);
        }
    }

    void declare_aliases() {
        for (const auto& [alias, function] : syntax_.aliases) {
            const auto symbol = out_.symbols.find(function);
            if (symbol == out_.symbols.end()) {
                refuse_name(alias, {"an alias of " + std::string(function) + ", which is not declared", 0});
            } else {
                out_.symbols[std::string(alias)] = Symbol(symbol->second);
            }
        }
    }
    // Entries that name it are refused.
    void refuse_name(std::string_view name, const Refusal& why) {
        out_.symbols[std::string(name)] = {Symbol::Kind::refused,
                                           static_cast<std::uint32_t>(out_.refused_names.size())};
        out_.refused_names.push_back(why);
    }

    void declare_variables() {
        for (const Variable& one : syntax_.variables) {
            Symbol symbol;
            if (one.alignment > 4096) refuse("an alignment of more than 4096 bytes", one.line);
            if (one.space == Space::shared) {
                symbol.kind = Symbol::Kind::shared;
                if (one.unsized || one.is_extern) {
                    symbol.index = 1;
                    dynamic_alignment_ = std::max(dynamic_alignment_, one.alignment);
                } else if (one.bytes() > (1 << 20)) {
                    refuse("shared memory of more than 1 MiB", one.line);
                } else {
                    shared_ = align(shared_, one.alignment);
                    symbol.offset = shared_;
                    symbol.bytes = static_cast<std::uint32_t>(one.bytes());
                    shared_ += static_cast<std::uint32_t>(one.bytes());
                }
            } else {
                if (one.unsized && !one.is_extern) refuse("a variable without a size", one.line);
                if (one.bytes() > std::uint64_t{1} << 34) refuse("a variable of more than 16 GiB", one.line);
                if (const Symbol* const known = variable_named(one.name)) {
                    declare_again(known->index, one);
                    continue;
                }
                symbol.index = static_cast<std::uint32_t>(out_.variables.size());
                out_.variables.push_back({std::string(one.name), one.bytes(), one.alignment,
                                          one.space == Space::constant, one.is_extern, one.is_managed});
                declared_.push_back(&one);
            }
            out_.symbols[std::string(one.name)] = symbol;
        }
        out_.addresses.resize(out_.variables.size());
        out_.contents.resize(out_.variables.size());
    }

    const Symbol* variable_named(std::string_view name) const {
        const auto found = out_.symbols.find(name);
        return found != out_.symbols.end() && found->second.kind == Symbol::Kind::variable ? &found->second : nullptr;
    }
    // Declarations with .extern may come before and behind the definition, which counts.
    void declare_again(std::uint32_t index, const Variable& one) {
        if (one.is_extern) return;
        if (!declared_[index]->is_extern) {
            if (!declared_[index]->gives_way && !one.gives_way) duplicate("variable", one.name, one.line);
            return refuse("the variable " + std::string(one.name) + " again", one.line);
        }
        out_.variables[index] = {std::string(one.name),        one.bytes(), one.alignment,
                                 one.space == Space::constant, false,       one.is_managed};
        declared_[index] = &one;
    }

    void fill_contents() {
        for (std::size_t at = 0; at < declared_.size(); ++at) {
            const Variable& variable = *declared_[at];
            if (variable.initial.empty()) continue;
            ProgramCode::Content& content = out_.contents[at];
            const std::uint32_t bytes = size_bytes(variable.type);
            if (variable.initial.size() > variable.count * variable.vector) {
                return refuse("more values than the variable has elements", variable.line);
            }
            content.bytes.resize(variable.initial.size() * bytes);
            for (std::size_t element = 0; element < variable.initial.size(); ++element) {
                fill(variable, variable.initial[element], element * bytes, content);
            }
        }
    }
    void fill(const Variable& variable, const Initial& initial, std::size_t at, ProgramCode::Content& content) {
        const std::uint32_t bytes = size_bytes(variable.type);
        std::uint64_t value = initial.value;
        if (initial.kind == Initial::Kind::symbol) {
            const auto symbol = out_.symbols.find(initial.symbol);
            const bool has_address = symbol != out_.symbols.end() && (symbol->second.kind == Symbol::Kind::variable ||
                                                                      symbol->second.kind == Symbol::Kind::function);
            if (!has_address || (bytes != 8 && initial.mask == 0)) {
                return refuse_name(variable.name,
                                   {"the address of " + std::string(initial.symbol) + " as a value", variable.line});
            }
            out_.note_use(symbol->second);
            content.symbols.push_back({at, symbol->second, initial.offset, initial.mask, bytes});
            value = 0;
        } else if (initial.kind == Initial::Kind::single_float && bytes == 8) {
            value = std::bit_cast<std::uint64_t>(
                static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value))));
        } else if (initial.kind == Initial::Kind::double_float && bytes == 4) {
            value = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(value)));
        } else if (initial.kind != Initial::Kind::integer && bytes < 4) {
            return refuse_name(variable.name, {"a float as a value of fewer bytes", variable.line});
        } else if (initial.kind == Initial::Kind::integer && is_float(variable.type) && bytes >= 4) {
            return refuse_name(variable.name, {"an integer as a value of a float", variable.line});
        }
        std::memcpy(content.bytes.data() + at, &value, std::min<std::size_t>(bytes, sizeof value));
    }

    bool reads_reserved_shared() const {
        const auto reads = [](const Instruction& one) {
            return std::any_of(one.operands.begin(), one.operands.end(),
                               [](const Operand& operand) { return operand.name.starts_with(reserved_shared_names); });
        };
        return std::any_of(syntax_.functions.begin(), syntax_.functions.end(), [&](const FunctionSyntax& one) {
            return std::any_of(one.instructions.begin(), one.instructions.end(), reads);
        });
    }
    // Functions first: entries lay their own shared variables behind those of all functions.
    void lower(bool entries) {
        for (std::size_t at = 0; at < out_.functions.size(); ++at) {
            const FunctionSyntax* const body = bodies_[at];
            if (body == nullptr || body->is_entry != entries) continue;
            std::uint32_t own = shared_;
            Lowering(*body, out_, out_.functions[at], entries ? own : shared_).lower();
            out_.functions[at].registers = estimated_registers(*body);
            if (entries) add_entry(*body, static_cast<std::uint32_t>(at), own);
        }
    }
    void add_entry(const FunctionSyntax& body, std::uint32_t function, std::uint32_t shared) {
        Entry entry;
        entry.name = body.name;
        entry.shared_bytes = shared;
        const auto product = [](const std::array<std::uint64_t, 3>& of) { return of[0] * of[1] * of[2]; };
        const std::uint64_t most =
            product(body.required_threads) != 0 ? product(body.required_threads) : product(body.most_threads);
        entry.most_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, ~std::uint32_t{0}));
        for (std::size_t axis = 0; axis < 3; ++axis)
            entry.required_threads[axis] = static_cast<std::uint32_t>(body.required_threads[axis]);
        for (std::size_t axis = 0; axis < 3; ++axis)
            entry.required_cluster[axis] = static_cast<std::uint32_t>(body.required_cluster[axis]);
        entry.explicit_cluster = body.explicit_cluster;
        entry.most_cluster_blocks =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(body.most_cluster_blocks, ~std::uint32_t{0}));
        for (const Variable& parameter : body.parameters) {
            // Lowering has refused it.
            if (parameter.alignment > 4096 || parameter.bytes() > 2 * most_parameter_bytes ||
                entry.parameter_bytes > most_parameter_bytes) {
                break;
            }
            entry.parameter_bytes = align(entry.parameter_bytes, parameter.alignment);
            entry.parameters.push_back({entry.parameter_bytes, static_cast<std::uint32_t>(parameter.bytes())});
            entry.parameter_bytes += static_cast<std::uint32_t>(parameter.bytes());
        }
        out_.entries.push_back(std::move(entry));
        out_.entry_functions.push_back(function);
    }

    const ModuleSyntax& syntax_;
    ProgramCode& out_;
    std::vector<const FunctionSyntax*> bodies_;
    std::vector<const Variable*> declared_;
    std::uint32_t shared_ = reserved_shared_bytes;  // where the next static variable begins
    std::uint32_t dynamic_alignment_ = 16;
};

}  // namespace

std::uint64_t ProgramCode::address_of(const Symbol& symbol) const noexcept {
    switch (symbol.kind) {
        case Symbol::Kind::variable: return addresses[symbol.index];
        case Symbol::Kind::function: return function_window | (std::uint64_t{symbol.index} << 4);
        case Symbol::Kind::shared:
        case Symbol::Kind::refused: break;
    }
    return symbol.offset;
}

void ProgramCode::note_use(const Symbol& symbol) {
    if (symbol.kind != Symbol::Kind::variable || !undefined_variable.empty()) return;
    if (variables[symbol.index].is_extern) undefined_variable = variables[symbol.index].name;
}

Program::Program(std::string_view text) : code_(std::make_unique<ProgramCode>()) {
    const ModuleSyntax syntax = parse_module(text);
    if (!syntax.error.empty()) {
        code_->refusal = {syntax.error, syntax.error_line};
        return;
    }
    Builder(syntax, *code_).build();
    if (code_->refusal.refused()) code_->entries.clear();
}

Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

const Refusal& Program::refusal() const noexcept {
    return code_->refusal;
}
const Refusal& Program::fault() const noexcept {
    return code_->fault;
}
const std::string& Program::undefined_variable() const noexcept {
    return code_->undefined_variable;
}
std::uint32_t Program::target() const noexcept {
    return code_->target;
}
const std::vector<Entry>& Program::entries() const noexcept {
    return code_->entries;
}
const Entry* Program::entry(std::string_view name) const noexcept {
    for (const Entry& one : code_->entries) {
        if (one.name == name) return &one;
    }
    return nullptr;
}
const std::vector<GlobalVariable>& Program::variables() const noexcept {
    return code_->variables;
}

void Program::place(const std::vector<std::uint64_t>& addresses) {
    for (std::size_t at = 0; at < code_->addresses.size() && at < addresses.size(); ++at) {
        code_->addresses[at] = addresses[at];
    }
    for (FunctionCode& function : code_->functions) {
        for (const Relocation& one : function.relocations) {
            function.constants[one.constant].fill(code_->address_of(one.symbol) +
                                                  static_cast<std::uint64_t>(one.offset));
        }
    }
}

std::vector<std::byte> Program::content(std::size_t variable) const {
    const ProgramCode::Content& content = code_->contents[variable];
    std::vector<std::byte> out = content.bytes;
    for (const auto& place : content.symbols) {
        std::uint64_t address = code_->address_of(place.symbol) + static_cast<std::uint64_t>(place.offset);
        if (place.mask != 0) address = (address & place.mask) >> std::countr_zero(place.mask);
        std::memcpy(out.data() + place.at, &address, std::min<std::size_t>(place.bytes, sizeof address));
    }
    return out;
}

}  // namespace isthmus::ptx
