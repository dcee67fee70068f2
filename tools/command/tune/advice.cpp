// SPDX-License-Identifier: Apache-2.0
// From choices to sentences.
#include "advice.hpp"

#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace isthmus::tools::tune {

namespace {

constexpr std::array typical_passes = {1, 4, 16, 64};

// "pinned memory below 16 MiB, from there a copy at each hand-over"
std::string runs_words(const std::vector<Run>& runs) {
    if (runs.size() == 1) return way_words(runs.front().way);
    std::string text;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const std::string way = way_words(runs[i].way);
        if (i == 0) {
            text = fmt::format("{} below {}", way, about(static_cast<double>(runs[1].from_bytes)));
        } else if (i + 1 < runs.size()) {
            text += fmt::format(", then {} below {}", way, about(static_cast<double>(runs[i + 1].from_bytes)));
        } else {
            text += fmt::format(", from there {}", way);
        }
    }
    return text;
}

// Do two rows say the same to a reader? Their borders lie within this factor of each other.
bool alike(const std::vector<Run>& one, const std::vector<Run>& other, double factor) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [&](const Run& a, const Run& b) {
        const double x = static_cast<double>(a.from_bytes), y = static_cast<double>(b.from_bytes);
        return a.way == b.way && x <= factor * y && y <= factor * x;
    });
}

// Where the choice gains most over the first way that the use admits: "up to 2.4 times as fast as pinned memory".
std::string gain_words(const CostModel& model, const std::vector<Run>& runs, const UseCase& use, int passes) {
    std::size_t first = 0;
    while (first < model.ways().size() && !model.serves(first, use)) ++first;
    if (first == model.ways().size()) return {};
    double most = 1;
    for (const double size : model.sizes()) {
        const auto way = std::find(model.ways().begin(), model.ways().end(), run_at(runs, size).way);
        if (way == model.ways().end()) continue;
        const auto at = static_cast<std::size_t>(way - model.ways().begin());
        if (!model.serves(at, use)) continue;
        const double ratio = model.seconds(first, use, passes, size) / model.seconds(at, use, passes, size);
        if (std::isfinite(ratio)) most = std::max(most, ratio);
    }
    if (most < 1.1) return {};
    return fmt::format(" (up to {:.1f} times as fast as {})", most, way_words(model.ways()[first]));
}

// One use, for some numbers of passes that share an answer.
struct Statement {
    int first_passes = 1;
    int last_passes = 1;
    std::vector<Run> runs;
};
std::vector<Statement> statements_for(const std::vector<ProfileChoice>& choices, const UseCase& use) {
    std::vector<Statement> statements;
    for (const int passes : typical_passes) {
        std::vector<Run> runs = runs_of(choices, use, passes);
        if (runs.empty()) continue;
        if (!statements.empty() && alike(statements.back().runs, runs, 1.2)) {
            statements.back().last_passes = passes;
        } else {
            statements.push_back({passes, passes, std::move(runs)});
        }
    }
    return statements;
}

std::string how_often(const Statement& statement) {
    const bool to_the_end = statement.last_passes == typical_passes.back();
    if (statement.first_passes == 1 && to_the_end) return ", however often";
    if (to_the_end) return fmt::format(" {} or more", times_words(statement.first_passes));
    if (statement.first_passes == statement.last_passes) return " " + times_words(statement.first_passes);
    return fmt::format(" {} to {}", statement.first_passes, times_words(statement.last_passes));
}

std::string_view host_words(Role host) {
    return host == Role::reads ? "reads them" : host == Role::writes ? "writes them" : "reads and writes them";
}

// Does the other condition change what is chosen, and not only where a border lies?
bool says_more(const Statement& other, const std::vector<ProfileChoice>& choices, const UseCase& use) {
    for (const int passes : typical_passes) {
        if (passes < other.first_passes || passes > other.last_passes) continue;
        if (!alike(runs_of(choices, use, passes), other.runs, 8)) return true;
    }
    return false;
}

}  // namespace

std::vector<std::string> warnings(const Measurements& measured) {
    std::vector<std::string> lines;
    if (measured.profile.simulated) {
        lines.emplace_back("Measured on a simulated machine: its times say nothing about a real one.");
    }
    if (measured.conditions.throttled) {
        lines.emplace_back(
            "The GPU was throttled while it was measured. Cool it or raise its power limit, and measure again.");
    }
    if (measured.turns.empty()) lines.emplace_back("Nothing was measured: there was no time, or no way that works.");
    return lines;
}

std::vector<std::string> advice(const Measurements& measured) {
    std::vector<std::string> lines = warnings(measured);
    const CostModel model(measured);
    const std::vector<ProfileChoice> choices = known_choices(measured);
    for (const Role device : all_roles) {
        const UseCase use = measured_use(device);
        for (const Statement& statement : statements_for(choices, use)) {
            lines.push_back(fmt::format("Buffers that the GPU {}{}: {}{}.", role_words(device), how_often(statement),
                                        runs_words(statement.runs),
                                        gain_words(model, statement.runs, use, statement.last_passes)));
        }
        UseCase often = use;
        often.host_often = true;
        UseCase quick = use;
        quick.prefer = Prefer::latency;
        const auto add = [&](const UseCase& other, const std::string& condition) {
            for (const Statement& statement : statements_for(choices, other)) {
                if (!says_more(statement, choices, use)) continue;
                lines.push_back(fmt::format("Buffers that the GPU {}{}, {}: {}.", role_words(device),
                                            how_often(statement), condition, runs_words(statement.runs)));
            }
        };
        add(often, fmt::format("where the CPU {} many times", host_words(use.host)));
        add(quick, "where latency matters and nothing may be copied");
    }
    return lines;
}

}  // namespace isthmus::tools::tune
