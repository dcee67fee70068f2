// SPDX-License-Identifier: Apache-2.0
// Reads the declarations of PTX text: version, target, entries with their parameters, variables. Function bodies are
// skipped. The syntax is that of the PTX ISA 8.7, chapters 4, 5 and 11.
#include "module_image.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace isthmus::images {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;  // of a variable; a parameter block has at most 32764

bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_word_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '%' || c == '.';
}

// Words (also directives, which begin with a point) and single characters; comments and strings are skipped.
class Tokens {
public:
    explicit Tokens(std::string_view text) : rest_(text) { next(); }
    std::string_view now() const { return now_; }  // empty: the end
    bool take(std::string_view token) {
        if (now_ != token) return false;
        next();
        return true;
    }
    std::string_view take() { return std::exchange(now_, step()); }
    void next() { now_ = step(); }

private:
    std::string_view step() {
        while (!rest_.empty()) {
            if (is_blank(rest_.front())) {
                rest_.remove_prefix(1);
            } else if (rest_.starts_with("//")) {
                rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
            } else if (rest_.starts_with("/*")) {
                const std::size_t end = rest_.find("*/", 2);
                rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 2);
            } else if (rest_.front() == '"') {
                const std::size_t end = rest_.find('"', 1);
                rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
            } else {
                break;
            }
        }
        std::size_t count = 0;
        while (count < rest_.size() && is_word_part(rest_[count])) ++count;
        const std::string_view token = rest_.substr(0, count == 0 ? std::min<std::size_t>(1, rest_.size()) : count);
        rest_.remove_prefix(token.size());
        return token;
    }
    std::string_view rest_;
    std::string_view now_;
};

// A whole number, decimal, octal or hexadecimal; nullopt: it is none, or too great to be a size.
std::optional<std::uint64_t> number(std::string_view word) {
    std::uint64_t base = 10;
    if (word.starts_with("0x") || word.starts_with("0X")) {
        base = 16;
        word.remove_prefix(2);
    } else if (word.size() > 1 && word.front() == '0') {
        base = 8;
    }
    if (word.ends_with("U")) word.remove_suffix(1);
    if (word.empty()) return std::nullopt;
    std::uint64_t value = 0;
    for (const char c : word) {
        const std::uint64_t digit = c >= '0' && c <= '9'   ? static_cast<std::uint64_t>(c - '0')
                                    : c >= 'a' && c <= 'f' ? static_cast<std::uint64_t>(c - 'a') + 10
                                    : c >= 'A' && c <= 'F' ? static_cast<std::uint64_t>(c - 'A') + 10
                                                           : 16;
        if (digit >= base) return std::nullopt;
        value = value * base + digit;
        if (value > most_bytes) return std::nullopt;
    }
    return value;
}

// The bytes of a type (".u64", ".b8", ".f32"); 0: it is none. Opaque types (.texref, ...) have 8.
std::uint64_t bytes_of_type(std::string_view word) {
    constexpr std::array<std::pair<std::string_view, std::uint64_t>, 24> types{{
        {".u8", 1},    {".s8", 1},   {".b8", 1},    {".u16", 2},    {".s16", 2},        {".b16", 2},
        {".f16", 2},   {".bf16", 2}, {".f16x2", 4}, {".bf16x2", 4}, {".u32", 4},        {".s32", 4},
        {".b32", 4},   {".f32", 4},  {".u64", 8},   {".s64", 8},    {".b64", 8},        {".f64", 8},
        {".b128", 16}, {".e4m3", 1}, {".e5m2", 1},  {".texref", 8}, {".samplerref", 8}, {".surfref", 8},
    }};
    const auto found = std::find_if(types.begin(), types.end(), [&](const auto& type) { return type.first == word; });
    return found == types.end() ? 0 : found->second;
}

struct Declared {
    std::string_view name;  // empty: the declaration was not understood
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 1;
};

// What stands before the names: ".align 4 .v2 .f32". Stops at the first word that is no directive.
struct Form {
    std::uint64_t element = 0;
    std::uint64_t alignment = 0;  // 0: that of the element
};
Form form_of(Tokens& tokens) {
    Form form;
    std::uint64_t lanes = 1;
    bool of_pointer = false;  // what follows .ptr is about the memory that the parameter points to
    while (tokens.now().starts_with(".")) {
        const std::string_view word = tokens.take();
        if (word == ".align") {
            const std::optional<std::uint64_t> alignment = number(tokens.take());
            if (!of_pointer) form.alignment = alignment.value_or(0);
        } else if (word == ".v2" || word == ".v4") {
            lanes = word == ".v2" ? 2 : 4;
        } else if (word == ".ptr") {
            of_pointer = true;
        } else if (word == ".attribute") {
            if (tokens.take("(")) {
                for (int depth = 1; depth > 0 && !tokens.now().empty(); tokens.next()) {
                    if (tokens.now() == "(") ++depth;
                    if (tokens.now() == ")") --depth;
                }
            }
        } else if (const std::uint64_t bytes = bytes_of_type(word); bytes != 0) {
            form.element = bytes;
        }
    }
    form.element *= lanes;
    return form;
}

Declared name_of(Tokens& tokens, const Form& form) {
    Declared declared;
    declared.name = tokens.take();
    declared.bytes = form.element;
    declared.alignment = form.alignment != 0 ? form.alignment : form.element;
    const bool lawful = !declared.name.empty() && is_word_part(declared.name.front()) && form.element != 0 &&
                        declared.alignment <= 4096 && (declared.alignment & (declared.alignment - 1)) == 0;
    while (tokens.take("[")) {
        const std::optional<std::uint64_t> count = number(tokens.now());
        if (count) tokens.next();
        if (!tokens.take("]")) return {};
        declared.bytes = count && *count > 0 && declared.bytes <= most_bytes / *count ? declared.bytes * *count : 0;
    }
    return lawful && declared.bytes > 0 ? declared : Declared{};
}

void skip_value(Tokens& tokens) {
    for (int depth = 0; !tokens.now().empty(); tokens.next()) {
        if (tokens.now() == "{") ++depth;
        if (tokens.now() == "}") --depth;
        if (depth <= 0 && (tokens.now() == "," || tokens.now() == ";")) return;
    }
}

void read_entry(Tokens& tokens, ImageContents& out) {
    ImageEntry entry;
    entry.name = tokens.take();
    if (entry.name.empty() || !is_word_part(entry.name.front())) return;
    std::uint64_t end = 0;
    if (tokens.take("(")) {
        while (!tokens.now().empty() && !tokens.take(")")) {
            if (tokens.take(",")) continue;
            const Form form = form_of(tokens);
            const Declared parameter = name_of(tokens, form);
            if (parameter.name.empty()) {
                out.damage = "the parameters of one of its entries cannot be read";
                return;
            }
            end = (end + parameter.alignment - 1) & ~(parameter.alignment - 1);
            if (end > UINT16_MAX || parameter.bytes > UINT16_MAX) {
                out.damage = "one of its entries has more parameters than a launch can pass";
                return;
            }
            entry.parameters.push_back({static_cast<std::uint32_t>(end), static_cast<std::uint32_t>(parameter.bytes)});
            end += parameter.bytes;
        }
    }
    if (out.entry(entry.name) == nullptr) out.entries.push_back(std::move(entry));
}

void read_variables(Tokens& tokens, bool defined_elsewhere, ImageContents& out) {
    const Form form = form_of(tokens);
    while (!tokens.now().empty() && !tokens.take(";")) {
        if (tokens.take(",")) continue;
        if (tokens.take("=")) {
            skip_value(tokens);
            continue;
        }
        const Declared variable = name_of(tokens, form);
        if (variable.name.empty() || defined_elsewhere || out.global(variable.name) != nullptr) continue;
        out.globals.push_back({std::string(variable.name), variable.bytes});
    }
}

// "8.4" → 84
std::uint32_t version_of(std::string_view word) {
    const std::size_t point = word.find('.');
    const std::uint64_t major = number(word.substr(0, point)).value_or(0);
    const std::uint64_t minor = point == std::string_view::npos ? 0 : number(word.substr(point + 1)).value_or(0);
    return major < 100 && minor < 10 ? static_cast<std::uint32_t>(major * 10 + minor) : 0;
}

// "sm_90a" → 90; 0: it names no GPU
std::uint32_t target_of(std::string_view word) {
    if (!word.starts_with("sm_")) return 0;
    word.remove_prefix(3);
    while (!word.empty() && (word.back() < '0' || word.back() > '9')) word.remove_suffix(1);
    const std::uint64_t target = number(word).value_or(0);
    return target < 1000 ? static_cast<std::uint32_t>(target) : 0;
}

}  // namespace

void read_ptx(std::string_view text, ImageContents& out) {
    out.size_bytes = text.size();
    Tokens tokens(text);
    int depth = 0;
    bool defined_elsewhere = false;  // behind .extern
    while (!tokens.now().empty() && out.damage.empty()) {
        const std::string_view word = tokens.take();
        if (word == "{") ++depth;
        if (word == "}" && depth > 0) --depth;
        if (depth > 0) continue;
        if (word == ".version") {
            out.ptx_version = std::max(out.ptx_version, version_of(tokens.take()));
        } else if (word == ".target") {
            const std::string_view name = tokens.take();
            if (const std::uint32_t target = target_of(name); target != 0) {
                out.ptx_targets.push_back(target);
                out.ptx_suffixes.push_back(name.ends_with('a') ? 'a' : name.ends_with('f') ? 'f' : '\0');
            }
        } else if (word == ".entry") {
            read_entry(tokens, out);
        } else if (word == ".global" || word == ".const") {
            read_variables(tokens, defined_elsewhere, out);
        }
        defined_elsewhere = word == ".extern" || (defined_elsewhere && word == ".visible");
    }
}

}  // namespace isthmus::images
