// SPDX-License-Identifier: Apache-2.0
// Finds what each text defines, renames what is its own, and puts the texts behind one head.
#include "joining.hpp"

#include "syntax.hpp"
#include "tokens.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace isthmus::ptx {
namespace {

enum class Linkage { own, visible, outside, weak, common };

// A function or variable at the outermost level of a text.
struct Definition {
    std::string name;
    Linkage linkage = Linkage::own;
    bool has_content = false;        // a body, or a variable that is not declared with .extern
    std::size_t begin = 0, end = 0;  // its place in the text
};

struct Part {
    std::vector<Definition> definitions;
    std::vector<std::pair<std::size_t, std::size_t>> heads;  // places of .version, .target and .address_size
    std::string_view version, target;
    std::uint64_t files = 0;  // the greatest number of a .file
    std::string error;
};

class Scan {
public:
    explicit Scan(std::string_view text) : text_(text), list_(read_tokens(text)) {}

    Part read() {
        if (!list_.error.empty()) {
            out_.error = "line " + std::to_string(list_.error_line) + ": " + list_.error;
            return std::move(out_);
        }
        while (!at_end()) statement();
        return std::move(out_);
    }
    const std::vector<Token>& tokens() const { return list_.tokens; }

private:
    bool at_end() const { return list_.tokens[at_].kind == TokenKind::end; }
    const Token& here() const { return list_.tokens[at_]; }
    std::size_t place(const Token& token) const { return static_cast<std::size_t>(token.text.data() - text_.data()); }
    std::size_t behind(const Token& token) const { return place(token) + token.text.size(); }

    void head(std::string_view& out, std::size_t values) {
        const std::size_t begin = place(here());
        ++at_;
        if (values != 0 && !at_end()) out = here().text;
        std::size_t end = begin;
        for (std::size_t i = 0; i < std::max<std::size_t>(values, 1) && !at_end(); ++i)
            end = behind(list_.tokens[at_++]);
        while (!at_end() && here().is(",")) {  // .target sm_90, debug
            ++at_;
            end = behind(list_.tokens[at_++]);
        }
        out_.heads.emplace_back(begin, end);
    }
    // Passes over brackets of any kind, from an opening one to behind its partner.
    void skip_brackets() {
        int depth = 0;
        do {
            const Token& token = here();
            if (token.is("{") || token.is("(") || token.is("[")) ++depth;
            if (token.is("}") || token.is(")") || token.is("]")) --depth;
            ++at_;
        } while (depth != 0 && !at_end());
    }

    void statement() {
        std::string_view none;
        if (here().is(".version")) return head(out_.version, 1);
        if (here().is(".target")) return head(out_.target, 1);
        if (here().is(".address_size")) return head(none, 1);
        if (here().is(".file")) {
            ++at_;
            if (!at_end()) out_.files = std::max(out_.files, here().value);
            return;
        }
        if (here().is("{")) return skip_brackets();  // of a section
        Definition made;
        made.begin = place(here());
        if (here().is(".visible") || here().is(".extern") || here().is(".weak") || here().is(".common")) {
            made.linkage = here().is(".visible")  ? Linkage::visible
                           : here().is(".extern") ? Linkage::outside
                           : here().is(".common") ? Linkage::common
                                                  : Linkage::weak;
            ++at_;
        }
        if (here().is(".func") || here().is(".entry")) {
            if (here().is(".entry") && made.linkage == Linkage::own) made.linkage = Linkage::visible;
            return function(std::move(made));
        }
        if (here().is(".global") || here().is(".const") || here().is(".shared")) return variables(std::move(made));
        if (!at_end()) ++at_;
    }
    void function(Definition made) {
        ++at_;
        while (!at_end() && !here().is(";") && !here().is("{")) {
            if (here().is("(")) {
                skip_brackets();
                continue;
            }
            if (here().kind == TokenKind::name && made.name.empty()) made.name = here().text;
            ++at_;
        }
        made.has_content = here().is("{");
        if (made.has_content) {
            skip_brackets();
        } else if (!at_end()) {
            ++at_;
        }
        finish(std::move(made));
    }
    // One or several names, each with a size and a value.
    void variables(Definition made) {
        ++at_;
        std::vector<std::string> names;
        bool in_value = false;
        while (!at_end() && !here().is(";")) {
            if (here().is("{") || here().is("(") || here().is("[")) {
                skip_brackets();
                continue;
            }
            if (here().is("=")) in_value = true;
            if (here().is(",")) in_value = false;
            if (here().kind == TokenKind::name && !in_value) names.emplace_back(here().text);
            ++at_;
        }
        if (!at_end()) ++at_;
        made.has_content = made.linkage != Linkage::outside;
        for (std::string& name : names) {
            Definition one = made;
            one.name = std::move(name);
            finish(std::move(one));
        }
    }
    void finish(Definition made) {
        made.end = at_ == 0 ? made.begin : behind(list_.tokens[at_ - 1]);
        if (!made.name.empty()) out_.definitions.push_back(std::move(made));
    }

    std::string_view text_;
    TokenList list_;
    std::size_t at_ = 0;
    Part out_;
};

struct Known {
    std::size_t part = 0, definition = 0;
    Linkage linkage = Linkage::own;
};

class Joining {
public:
    explicit Joining(const std::vector<NamedText>& texts) : texts_(texts), dropped_(texts.size()) {}

    Joined join() {
        for (const NamedText& one : texts_) {
            scans_.emplace_back(one.text);
            parts_.push_back(scans_.back().read());
            if (!parts_.back().error.empty()) return {"", one.name + ": " + parts_.back().error};
        }
        for (std::size_t part = 0; part < parts_.size(); ++part) {
            if (std::string error = find_definitions(part); !error.empty()) return {"", std::move(error)};
        }
        Joined out;
        out.text = ".version " + std::string(newest(&Part::version)) + "\n.target " +
                   std::string(newest(&Part::target)) + "\n.address_size 64\n";
        std::uint64_t files = 0;
        for (std::size_t part = 0; part < parts_.size(); ++part) {
            write(part, files, out.text);
            files += parts_[part].files;
        }
        return out;
    }

private:
    std::string find_definitions(std::size_t part) {
        for (std::size_t at = 0; at < parts_[part].definitions.size(); ++at) {
            const Definition& one = parts_[part].definitions[at];
            if (one.linkage == Linkage::own || !one.has_content) continue;
            const auto [known, is_new] = known_.try_emplace(one.name, Known{part, at, one.linkage});
            if (is_new) continue;
            const Definition& earlier = parts_[known->second.part].definitions[known->second.definition];
            const bool gives_way = one.linkage == Linkage::weak || one.linkage == Linkage::common;
            const bool earlier_gives_way =
                known->second.linkage == Linkage::weak || known->second.linkage == Linkage::common;
            // Of several .common ones the largest stays.
            const bool grows = one.linkage == Linkage::common && known->second.linkage == Linkage::common &&
                               bytes_of(part, one) > bytes_of(known->second.part, earlier);
            if (gives_way && !grows) {
                dropped_[part].insert(at);
            } else if (earlier_gives_way) {
                dropped_[known->second.part].insert(known->second.definition);
                known->second = {part, at, one.linkage};
            } else {
                return "Multiple definition of '" + one.name + "' in '" + texts_[part].name + "', first defined in '" +
                       texts_[known->second.part].name + "'";
            }
        }
        return "";
    }

    // Of a variable.
    std::uint64_t bytes_of(std::size_t part, const Definition& one) const {
        const std::string text = ".version 9.0\n" + texts_[part].text.substr(one.begin, one.end - one.begin);
        for (const Variable& variable : parse_module(text).variables) {
            if (variable.name == one.name) return variable.bytes();
        }
        return 0;
    }

    std::string_view newest(std::string_view Part::*member) const {
        const auto number = [](std::string_view text) {
            unsigned value = 0;
            for (const char c : text) {
                if (c >= '0' && c <= '9') value = value * 10 + static_cast<unsigned>(c - '0');
            }
            return value;
        };
        std::string_view best;
        for (const Part& part : parts_) {
            if (best.empty() || number(part.*member) > number(best)) best = part.*member;
        }
        return best;
    }

    // Own names that another text has too.
    std::set<std::string_view> names_to_change(std::size_t part) const {
        std::set<std::string_view> change;
        for (const Definition& one : parts_[part].definitions) {
            if (one.linkage != Linkage::own) continue;
            for (std::size_t other = 0; other < parts_.size(); ++other) {
                if (other == part) continue;
                for (const Definition& theirs : parts_[other].definitions) {
                    if (theirs.name == one.name) change.insert(one.name);
                }
            }
        }
        return change;
    }

    void write(std::size_t part, std::uint64_t files_before, std::string& out) const {
        const std::string_view text = texts_[part].text;
        const std::set<std::string_view> change = names_to_change(part);
        std::vector<std::pair<std::size_t, std::size_t>> skipped = parts_[part].heads;
        for (const std::size_t at : dropped_[part]) {
            skipped.emplace_back(parts_[part].definitions[at].begin, parts_[part].definitions[at].end);
        }
        std::sort(skipped.begin(), skipped.end());
        const auto is_skipped = [&](std::size_t place) {
            return std::any_of(skipped.begin(), skipped.end(),
                               [&](const auto& range) { return place >= range.first && place < range.second; });
        };
        std::size_t copied = 0;
        const auto copy_to = [&](std::size_t end) {
            for (const auto& [begin, behind] : skipped) {
                if (behind <= copied || begin >= end) continue;
                if (begin > copied) out += text.substr(copied, begin - copied);
                copied = std::max(copied, std::min(behind, end));
            }
            if (end > copied) out += text.substr(copied, end - copied);
            copied = std::max(copied, end);
        };
        bool names_file = false;
        for (const Token& token : scans_[part].tokens()) {
            if (token.kind == TokenKind::end || token.kind == TokenKind::string) continue;
            const auto place = static_cast<std::size_t>(token.text.data() - text.data());
            const bool is_debug_name = part != 0 && token.text.starts_with("$L__info_string");
            const bool is_number = token.kind == TokenKind::integer && names_file && files_before != 0;
            names_file = token.is(".file") || token.is(".loc") || token.is("inlined_at");
            const bool is_changed = token.kind == TokenKind::name && (is_debug_name || change.count(token.text) != 0);
            if ((!is_number && !is_changed) || is_skipped(place)) continue;
            copy_to(place);
            out += is_number ? std::to_string(token.value + files_before)
                             : std::string(token.text) + "$part" + std::to_string(part + 1);
            copied = place + token.text.size();
        }
        copy_to(text.size());
        out += "\n";
    }

    const std::vector<NamedText>& texts_;
    std::vector<Scan> scans_;
    std::vector<Part> parts_;
    std::map<std::string, Known> known_;
    std::vector<std::set<std::size_t>> dropped_;  // definitions that another one replaces
};

}  // namespace

Joined join(const std::vector<NamedText>& texts) {
    if (texts.size() == 1) return {texts[0].text, ""};
    return Joining(texts).join();
}

}  // namespace isthmus::ptx
