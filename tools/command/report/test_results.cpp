// SPDX-License-Identifier: Apache-2.0
// Reads both forms line by line; lines that are neither a result nor below a failure are ignored.
#include "test_results.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace isthmus::tools::report {
namespace {

using Json = nlohmann::ordered_json;

struct Failure {
    std::string name;
    std::string result;
    std::string output;
};

struct Results {
    std::vector<std::string> passed;
    std::vector<std::string> skipped;
    std::vector<Failure> failed;
};

bool take(std::string_view& line, std::string_view start) {
    if (line.substr(0, start.size()) != start) return false;
    line.remove_prefix(start.size());
    return true;
}

// "10 passed, 2 failed, 0 skipped": the last line of run-tests.
bool is_summary(std::string_view line) {
    return line.find(" passed, ") != std::string_view::npos && line.find(" failed, ") != std::string_view::npos &&
           line.size() > 8 && line.substr(line.size() - 8) == " skipped";
}

void read_meson(std::string_view line, Results& results) {
    const Json test = Json::parse(line.begin(), line.end(), nullptr, false);
    const auto text = [&](const char* key) {
        return test.contains(key) && test[key].is_string() ? test[key].get<std::string>() : std::string();
    };
    if (!test.is_object() || text("name").empty() || text("result").empty()) return;
    const std::string result = text("result");
    if (result == "OK" || result == "EXPECTEDFAIL") {
        results.passed.push_back(text("name"));
    } else if (result == "SKIP") {
        results.skipped.push_back(text("name"));
    } else {
        results.failed.push_back({text("name"), result, text("stdout") + text("stderr")});
    }
}

void read_runner(std::string_view line, Results& results, bool& is_below_failure) {
    if (take(line, "passed  ")) {
        results.passed.emplace_back(line);
    } else if (take(line, "skipped ")) {
        results.skipped.emplace_back(line);
    } else if (take(line, "FAILED  ")) {
        const std::size_t open = line.rfind(" (");
        const bool has_status = open != std::string_view::npos && line.back() == ')';
        results.failed.push_back({std::string(line.substr(0, has_status ? open : line.size())),
                                  has_status ? "status " + std::string(line.substr(open + 2, line.size() - open - 3))
                                             : std::string("failed"),
                                  {}});
        is_below_failure = true;
        return;
    } else {
        if (is_below_failure && !is_summary(line)) results.failed.back().output.append(line).append("\n");
        return;
    }
    is_below_failure = false;
}

std::string end_of(const std::string& output) {
    if (output.size() <= kept_output_bytes) return output;
    return "…" + output.substr(output.size() - kept_output_bytes);
}

}  // namespace

nlohmann::ordered_json test_results(std::string_view text) {
    Results results;
    bool is_below_failure = false;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!is_below_failure && line.substr(0, 1) == "{") {
            read_meson(line, results);
        } else {
            read_runner(line, results, is_below_failure);
        }
    }
    if (results.passed.empty() && results.skipped.empty() && results.failed.empty()) return nullptr;
    Json failures = Json::array();
    for (const Failure& one : results.failed) {
        failures.push_back({{"name", one.name}, {"result", one.result}, {"output", end_of(one.output)}});
    }
    return {{"passed", results.passed.size()},
            {"failed", results.failed.size()},
            {"skipped", results.skipped.size()},
            {"failures", std::move(failures)},
            {"names", {{"passed", results.passed}, {"skipped", results.skipped}}}};
}

}  // namespace isthmus::tools::report
