// SPDX-License-Identifier: Apache-2.0
// Each rule rewrites one string; numbers of UUIDs are kept for the whole document.
#include "scrub.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace isthmus::tools::report {
namespace {

using Json = nlohmann::ordered_json;

bool is_alphanumeric(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool is_hexadecimal(char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}
std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

// Names that say nothing about an owner: of distributions, boards and accounts that come with them, and words that
// documents of this program are made of. Between blanks.
constexpr std::string_view common_names =
    " root user users admin debian docker linux localdomain localhost none test tests ubuntu unknown "
    " dgx jetson nano nvidia orin spark tegra tegra-ubuntu thor xavier "
    " build cpu cuda device devices driver gpu home host isthmus kernel machine managed memory node pinned profile "
    " record report simulated ";

// Fields whose strings describe hardware, versions, or one of a few words. No rule for names applies to them.
constexpr std::string_view descriptive_fields =
    " addressing_mode answer cpu_name device devices ending id is kernel_release kind locality memory module_version "
    " name of prefer role row schema shape summary title translation weight ";

bool is_among(std::string_view words, std::string_view word) {
    return words.find(fmt::format(" {} ", word)) != std::string_view::npos;
}

// "id", "host_reads_device_memory", "PCI_BUS_ID": the name of a field, which programs write and a user's name may
// equal.
bool is_identifier(std::string_view key) {
    return std::all_of(key.begin(), key.end(), [](char c) { return is_alphanumeric(c) || c == '_'; });
}

// Replaces every occurrence that `allowed` admits.
template <class Allowed>
void replace_all(std::string& text, std::string_view what, std::string_view by, Allowed allowed) {
    if (what.empty()) return;
    const std::string wanted = lower(what);
    std::string low = lower(text);
    for (std::size_t at = 0; (at = low.find(wanted, at)) != std::string::npos;) {
        if (!allowed(text, at, at + wanted.size())) {
            ++at;
            continue;
        }
        text.replace(at, wanted.size(), by);
        low.replace(at, wanted.size(), by);
        at += by.size();
    }
}

bool is_word(const std::string& text, std::size_t begin, std::size_t end) {
    return (begin == 0 || !is_alphanumeric(text[begin - 1])) && (end == text.size() || !is_alphanumeric(text[end]));
}

// The length of a UUID's five groups at this place; 0: there are none.
std::size_t groups_at(std::string_view text, std::size_t at) {
    constexpr std::array<std::size_t, 5> lengths = {8, 4, 4, 4, 12};
    std::size_t to = at;
    for (std::size_t group = 0; group < lengths.size(); ++group) {
        if (group > 0 && (to >= text.size() || text[to++] != '-')) return 0;
        for (std::size_t digit = 0; digit < lengths[group]; ++digit, ++to) {
            if (to >= text.size() || !is_hexadecimal(text[to])) return 0;
        }
    }
    return to - at;
}

// The number of pairs of hexadecimal digits at this place, with one separator (':' or '-') between them.
std::size_t pairs_at(std::string_view text, std::size_t at, std::size_t& length) {
    std::size_t pairs = 0;
    char separator = 0;
    std::size_t to = at;
    while (to + 1 < text.size() && is_hexadecimal(text[to]) && is_hexadecimal(text[to + 1])) {
        ++pairs;
        to += 2;
        length = to - at;
        if (to >= text.size() || (text[to] != ':' && text[to] != '-')) break;
        if (separator != 0 && text[to] != separator) break;
        separator = text[to++];
    }
    return at + length < text.size() && is_alphanumeric(text[at + length]) ? 0 : pairs;
}

class Scrubber {
public:
    explicit Scrubber(const Identity& identity) {
        for (const std::string& home : identity.homes) {
            if (home.size() > 1) homes_.push_back(home);
        }
        const auto add = [&](const std::vector<std::string>& names, std::string_view by) {
            for (const std::string& name : names) {
                if (name.size() >= 2 && !is_common_name(name)) names_.emplace_back(name, by);
            }
        };
        add(identity.hosts, "<host>");
        add(identity.users, "<user>");
        for (const std::string& serial : identity.serials) {
            if (serial.size() >= 4 && !is_common_name(serial)) serials_.push_back(serial);
        }
        // Longer ones first: a host's full name before its first part.
        const auto longer = [](const auto& one, const auto& other) { return one.first.size() > other.first.size(); };
        std::stable_sort(names_.begin(), names_.end(), longer);
        std::stable_sort(homes_.begin(), homes_.end(),
                         [](const auto& one, const auto& other) { return one.size() > other.size(); });
    }

    Json document(const Json& json, std::string_view field, bool is_free) {
        if (json.is_object()) {
            Json out = Json::object();
            for (const auto& [key, value] : json.items()) {
                // Results of tests have names that people chose: nothing in them is spared.
                const bool free_below = is_free || key == "tests" || key == "left_out";
                if (lower(key).find("serial") != std::string::npos && (value.is_string() || value.is_number())) {
                    out[text(key, !is_identifier(key))] = "<serial>";
                    continue;
                }
                out[text(key, !is_identifier(key))] = document(value, key, free_below);
            }
            return out;
        }
        if (json.is_array()) {
            Json out = Json::array();
            for (const Json& item : json) out.push_back(document(item, field, is_free));
            return out;
        }
        if (!json.is_string()) return json;
        return text(json.get<std::string>(), is_free || !is_among(descriptive_fields, field));
    }

private:
    std::string text(std::string text, bool names_too) {
        number_uuids(text);
        replace_pairs(text);
        replace_after_serial(text);
        for (const std::string& serial : serials_) replace_all(text, serial, "<serial>", is_word);
        for (const std::string& home : homes_) {
            replace_all(text, home, "<home>", [](const std::string& all, std::size_t begin, std::size_t end) {
                const bool begins = begin == 0 || (!is_alphanumeric(all[begin - 1]) && all[begin - 1] != '/');
                return begins && (end == all.size() || !is_alphanumeric(all[end]));
            });
        }
        replace_homes_of_others(text);
        if (!names_too) return text;
        for (const auto& [name, by] : names_) {
            const bool anywhere = name.size() >= 6;
            replace_all(text, name, by, [anywhere](const std::string& all, std::size_t begin, std::size_t end) {
                return anywhere || is_word(all, begin, end);
            });
        }
        return text;
    }

    std::size_t number_of(const std::string& digits) {
        return numbers_.try_emplace(lower(digits), numbers_.size() + 1).first->second;
    }

    void number_uuids(std::string& text) {
        for (std::size_t at = 0; at < text.size(); ++at) {
            if (!is_hexadecimal(text[at]) || (at > 0 && is_alphanumeric(text[at - 1]))) continue;
            std::size_t length = groups_at(text, at);
            std::size_t plain = at;
            while (length == 0 && plain < text.size() && is_hexadecimal(text[plain])) ++plain;
            const bool grouped = length != 0;
            if (!grouped && plain - at == 32) length = 32;
            if (length == 0 || (at + length < text.size() && is_alphanumeric(text[at + length]))) continue;
            std::string digits = text.substr(at, length);
            digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
            if (digits.find_first_not_of('0') == std::string::npos) continue;  // no UUID
            std::string number = fmt::format("{:032}", number_of(digits));
            if (grouped) {
                for (const std::size_t dash : {8, 13, 18, 23}) number.insert(dash, "-");
            }
            text.replace(at, length, number);
            at += length - 1;
        }
    }

    static void replace_pairs(std::string& text) {
        for (std::size_t at = 0; at < text.size(); ++at) {
            if (!is_hexadecimal(text[at]) || (at > 0 && (is_alphanumeric(text[at - 1]) || text[at - 1] == ':')))
                continue;
            std::size_t length = 0;
            const std::size_t pairs = pairs_at(text, at, length);
            if (pairs != 6 && pairs != 8) continue;
            const std::string_view by = pairs == 6 ? "<mac>" : "<serial>";
            text.replace(at, length, by);
            at += by.size() - 1;
        }
    }

    // "Serial Number: 1420521012345", "serial=ABC-17": the next word with a digit, after "number", "no." and marks.
    static void replace_after_serial(std::string& text) {
        for (std::size_t at = 0; (at = lower(text).find("serial", at)) != std::string::npos;) {
            at += std::string_view("serial").size();
            std::size_t begin = at;
            const auto skip = [&](std::string_view marks) {
                while (begin < text.size() && marks.find(text[begin]) != std::string_view::npos) ++begin;
            };
            skip(" _-");
            for (const std::string_view word : {"numbers", "number", "nr", "no"}) {
                if (lower(std::string_view(text).substr(begin, word.size())) != word) continue;
                if (begin + word.size() < text.size() && is_alphanumeric(text[begin + word.size()])) continue;
                begin += word.size();
                break;
            }
            skip(" .:=#'\"\t");
            std::size_t end = begin;
            bool has_digit = false;
            while (end < text.size() && (is_alphanumeric(text[end]) || text[end] == '-')) {
                has_digit = has_digit || std::isdigit(static_cast<unsigned char>(text[end])) != 0;
                ++end;
            }
            if (!has_digit || end - begin < 4) continue;
            text.replace(begin, end - begin, "<serial>");
            at = begin + std::string_view("<serial>").size();
        }
    }

    static void replace_homes_of_others(std::string& text) {
        constexpr std::string_view start = "/home/";
        for (std::size_t at = 0; (at = text.find(start, at)) != std::string::npos;) {
            at += start.size();
            std::size_t end = at;
            while (end < text.size() &&
                   (is_alphanumeric(text[end]) || std::string_view("._-").find(text[end]) != std::string_view::npos)) {
                ++end;
            }
            if (end > at) text.replace(at, end - at, "<user>");
        }
    }

    std::vector<std::string> homes_;
    std::vector<std::pair<std::string, std::string>> names_;
    std::vector<std::string> serials_;
    std::map<std::string, std::size_t> numbers_;  // of a UUID's digits
};

}  // namespace

bool is_common_name(std::string_view name) {
    return is_among(common_names, lower(name));
}

nlohmann::ordered_json scrub(const nlohmann::ordered_json& document, const Identity& identity) {
    return Scrubber(identity).document(document, {}, false);
}

}  // namespace isthmus::tools::report
