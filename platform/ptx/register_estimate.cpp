// SPDX-License-Identifier: Apache-2.0
// A register is alive from its first to its last mention in the text, and throughout each loop that it enters alive.
#include "register_estimate.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace isthmus::ptx {
namespace {

struct Life {
    std::size_t first = 0, last = 0;
    std::uint32_t registers = 1;  // of 32 bits
    bool is_free = true;          // every definition can be made anew: parameters, constants, their addresses
};

std::uint32_t registers_of(Type type) {
    if (type == Type::pred) return 0;
    return std::max<std::uint32_t>(1, size_bytes(type) / 4);
}

class Lives {
public:
    explicit Lives(const FunctionSyntax& function) : function_(function) {}

    std::uint32_t most_alive() {
        read();
        extend_over_loops();
        std::vector<std::int64_t> changes(position_ + 2);
        for (const auto& [name, life] : lives_) {
            if (life.is_free) continue;
            changes[life.first] += life.registers;
            changes[life.last + 1] -= life.registers;
        }
        std::int64_t alive = 0, most = 0;
        for (const std::int64_t change : changes) {
            alive += change;
            most = std::max(most, alive);
        }
        return static_cast<std::uint32_t>(most);
    }

private:
    // A register with the number of the scope that declares it.
    using Name = std::pair<std::uint32_t, std::string_view>;

    void read() {
        open_.push_back(0);
        for (const Statement& statement : function_.statements) {
            switch (statement.kind) {
                case StatementKind::open_scope: open_.push_back(++scopes_); break;
                case StatementKind::close_scope: open_.pop_back(); break;
                case StatementKind::registers:
                    declared_[open_.back()].push_back(&function_.registers[statement.at]);
                    break;
                case StatementKind::label: labels_[statement.name] = position_; break;
                case StatementKind::instruction: instruction(function_.instructions[statement.at]); break;
                default: break;
            }
        }
    }

    void instruction(const Instruction& one) {
        ++position_;
        if (one.opcode == "bra" && !one.operands.empty()) {
            const auto label = labels_.find(one.operands[0].name);
            if (label != labels_.end()) loops_.emplace_back(label->second + 1, position_);
            mention(one.guard, true);
            return;
        }
        const bool made_anew = is_free(one);
        for (std::size_t at = 0; at < one.operands.size(); ++at) {
            const bool defines = at == 0 && one.operands[at].kind != OperandKind::address;
            mention(one.operands[at], made_anew || !defines);
        }
        mention(one.guard, true);
    }
    // Whether its result needs no register of its own for long.
    bool is_free(const Instruction& one) const {
        const auto has = [&](std::string_view word) {
            return std::find(one.qualifiers.begin(), one.qualifiers.end(), word) != one.qualifiers.end();
        };
        if (one.opcode == "ld") return function_.is_entry && has(".param");
        if ((one.opcode != "mov" && one.opcode != "cvta") || one.operands.size() != 2) return false;
        const Operand& from = one.operands[1];
        if (from.kind != OperandKind::name) return from.kind == OperandKind::integer;
        if (from.name.starts_with('%') && !find(from.name)) return false;  // a special register
        const auto name = find(from.name);
        if (!name) return true;  // a variable
        const auto life = lives_.find(name->first);
        return life != lives_.end() && life->second.is_free;
    }

    void mention(const Operand& operand, bool keeps_free) {
        if (operand.kind == OperandKind::name || operand.kind == OperandKind::address)
            mention(operand.name, keeps_free);
        for (const Operand& element : operand.elements) mention(element, keeps_free);
    }
    void mention(std::string_view word, bool keeps_free) {
        const auto name = find(word);
        if (!name) return;
        const auto [life, is_new] = lives_.try_emplace(name->first, Life{position_, position_, name->second, true});
        life->second.last = position_;
        life->second.is_free = life->second.is_free && keeps_free;
    }

    // The register and its size; nullopt: the word names none.
    std::optional<std::pair<Name, std::uint32_t>> find(std::string_view word) const {
        if (word.empty()) return std::nullopt;
        const std::size_t digits = word.find_last_not_of("0123456789") + 1;
        for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope) {
            const auto here = declared_.find(*scope);
            if (here == declared_.end()) continue;
            for (const Register* const one : here->second) {
                const bool in_range = one->count != 0 && digits < word.size() && one->name == word.substr(0, digits);
                if (one->name != word && !in_range) continue;
                return std::pair(Name(*scope, word), registers_of(one->type));
            }
        }
        return std::nullopt;
    }

    void extend_over_loops() {
        // Inner loops end first in the text, so that outer ones see what these have extended.
        for (const auto& [begin, end] : loops_) {
            for (auto& [name, life] : lives_) {
                if (life.first < begin && life.last >= begin) life.last = std::max(life.last, end);
            }
        }
    }

    const FunctionSyntax& function_;
    std::size_t position_ = 0;
    std::uint32_t scopes_ = 0;
    std::vector<std::uint32_t> open_;
    std::map<std::uint32_t, std::vector<const Register*>> declared_;
    std::map<std::string_view, std::size_t> labels_;
    std::vector<std::pair<std::size_t, std::size_t>> loops_;
    std::map<Name, Life> lives_;
};

}  // namespace

std::uint32_t estimated_registers(const FunctionSyntax& function) {
    return Lives(function).most_alive();
}

}  // namespace isthmus::ptx
