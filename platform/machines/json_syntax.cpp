// SPDX-License-Identifier: Apache-2.0
// Finds faults that the JSON reader would not report with their place: syntax errors, and keys that occur twice.
#include "json_syntax.hpp"

#include <nlohmann/json.hpp>

#include <set>
#include <vector>

namespace isthmus::platform::machines {

namespace {

constexpr std::size_t deepest_nesting = 32;

// Handles the parser's events; returning false ends the parse.
class Watcher {
public:
    bool null() { return true; }
    bool boolean(bool) { return true; }
    bool number_integer(nlohmann::json::number_integer_t) { return true; }
    bool number_unsigned(nlohmann::json::number_unsigned_t) { return true; }
    bool number_float(nlohmann::json::number_float_t, const std::string&) { return true; }
    bool string(std::string&) { return true; }
    bool binary(nlohmann::json::binary_t&) { return true; }
    bool start_object(std::size_t) { return open(); }
    bool end_object() { return close(); }
    bool start_array(std::size_t) { return open(); }
    bool end_array() { return close(); }
    bool key(std::string& key) {
        if (keys_.back().insert(key).second) return true;
        fault = "the key \"" + key + "\" is given twice";
        return false;
    }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
        fault = "the text stops being JSON at byte " + std::to_string(position);
        return false;
    }

    std::optional<std::string> fault;

private:
    bool open() {
        keys_.emplace_back();
        if (keys_.size() <= deepest_nesting) return true;
        fault = "it nests deeper than " + std::to_string(deepest_nesting) + " levels";
        return false;
    }
    bool close() {
        keys_.pop_back();
        return true;
    }
    std::vector<std::set<std::string>> keys_;
};

}  // namespace

std::optional<std::string> syntax_fault(std::string_view text) {
    Watcher watcher;
    const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), &watcher);
    if (!whole && !watcher.fault) watcher.fault = "it is not JSON";
    return watcher.fault;
}

}  // namespace isthmus::platform::machines
