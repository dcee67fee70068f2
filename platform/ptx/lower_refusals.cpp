// SPDX-License-Identifier: Apache-2.0
// What is refused, and what an assembler refuses, too.
#include "lowering.hpp"

#include <utility>

namespace isthmus::ptx {
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

void Lowering::refuse(std::string what, std::uint32_t line) {
    if (!out_.refusal.refused()) out_.refusal = {std::move(what), line};
}

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

bool Lowering::want(std::size_t least, std::size_t most) {
    if (now_->operands.size() >= least && now_->operands.size() <= most) return true;
    // Newer architectures have min and max of three.
    if (exact_types_ && now_->opcode != "min" && now_->opcode != "max") mismatch();
    refuse_this("has " + std::to_string(now_->operands.size()) + " operands");
    return false;
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

}  // namespace isthmus::ptx
