// SPDX-License-Identifier: Apache-2.0
// Checks that a page is well-formed XML, as far as pages without CDATA and processing instructions need it.
#pragma once

#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::tune {

class WellFormed {
public:
    // Empty: well-formed; otherwise what is wrong, with the text before it.
    static std::string fault(std::string_view page) { return WellFormed(page).run(); }

private:
    explicit WellFormed(std::string_view page) : page_(page) {}

    std::string run() {
        if (page_.starts_with("<!DOCTYPE html>")) at_ = 15;
        while (at_ < page_.size() && fault_.empty()) {
            if (page_[at_] == '<') {
                tag();
            } else {
                const bool is_blank = std::isspace(static_cast<unsigned char>(page_[at_])) != 0;
                if (open_.empty() && !is_blank) wrong("text outside of the root");
                character();
            }
        }
        if (fault_.empty() && !open_.empty()) wrong("'" + open_.back() + "' is not closed");
        if (fault_.empty() && roots_ != 1) wrong("not one root");
        return fault_;
    }

    void wrong(const std::string& what) {
        const std::size_t begin = at_ < 60 ? 0 : at_ - 60;
        fault_ = what + " after: " + std::string(page_.substr(begin, at_ - begin));
    }
    bool next_is(std::string_view text) const { return page_.substr(at_).starts_with(text); }

    void character() {
        const auto code = static_cast<unsigned char>(page_[at_]);
        if (code < 0x20 && code != '\n' && code != '\t') return wrong("a control character");
        if (code == '&') {
            const std::string_view entity = page_.substr(at_, page_.find(';', at_) - at_);
            if (entity != "&amp" && entity != "&lt" && entity != "&gt" && entity != "&quot" && entity != "&#39") {
                return wrong("an ampersand");
            }
        }
        ++at_;
    }

    std::string read_name() {
        const std::size_t begin = at_;
        while (at_ < page_.size() && (std::isalnum(static_cast<unsigned char>(page_[at_])) || page_[at_] == '-')) ++at_;
        return std::string(page_.substr(begin, at_ - begin));
    }
    void skip_blanks() {
        while (at_ < page_.size() && std::isspace(static_cast<unsigned char>(page_[at_]))) ++at_;
    }

    void tag() {
        ++at_;
        if (next_is("/")) {
            ++at_;
            const std::string name = read_name();
            if (open_.empty() || open_.back() != name || !next_is(">")) return wrong("'" + name + "' closed");
            open_.pop_back();
            ++at_;
            return;
        }
        const std::string name = read_name();
        if (name.empty()) return wrong("no name");
        if (open_.empty()) ++roots_;
        std::vector<std::string> attributes;
        for (skip_blanks(); fault_.empty() && !next_is(">") && !next_is("/>"); skip_blanks()) attribute(attributes);
        if (!fault_.empty()) return;
        const bool is_empty = next_is("/>");
        at_ += is_empty ? 2 : 1;
        if (!is_empty) open_.push_back(name);
    }
    void attribute(std::vector<std::string>& seen) {
        const std::string name = read_name();
        for (const std::string& other : seen) {
            if (other == name) return wrong("'" + name + "' twice");
        }
        seen.push_back(name);
        if (name.empty() || !next_is("=\"")) return wrong("an attribute '" + name + "' without a value");
        at_ += 2;
        while (fault_.empty() && !next_is("\"")) {
            if (at_ >= page_.size() || page_[at_] == '<') return wrong("a value that does not end");
            character();
        }
        ++at_;
    }

    std::string_view page_;
    std::size_t at_ = 0;
    std::vector<std::string> open_;
    int roots_ = 0;
    std::string fault_;
};

}  // namespace isthmus::tools::tune
