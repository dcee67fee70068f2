// SPDX-License-Identifier: Apache-2.0
// What --verify found, as text and as JSON.
#include "verify.hpp"

#include "common/console.hpp"
#include "text/table_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <stdexcept>

namespace isthmus::tools::tune {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Way& way) {
    std::string text(name(way.kind));
    if (way.locality != Locality::anywhere) text.append(", ").append(name(way.locality));
    return text;
}

Json json_of(const Sample& sample) {
    return {sample.median, sample.low, sample.high, sample.count};
}
Sample sample_from(const Json& json) {
    return {json.at(0).get<double>(), json.at(1).get<double>(), json.at(2).get<double>(), json.at(3).get<int>()};
}

Json json_of(const Choice& choice) {
    return {{"kind", choice.kind}, {"seconds", json_of(choice.seconds)}, {"ratio", choice.ratio}};
}
Choice choice_from(const Json& json) {
    return {json.at("kind").get<std::string>(), sample_from(json.at("seconds")), json.at("ratio").get<double>()};
}

Json json_of(const VerifyRow& row) {
    return {{"device", name(row.point.device)},
            {"bytes", row.point.bytes},
            {"passes", row.point.passes},
            {"best", {{"kind", name(row.best.kind)}, {"locality", name(row.best.locality)}}},
            {"best_seconds", json_of(row.best_seconds)},
            {"with_profile", json_of(row.with_profile)},
            {"without_profile", json_of(row.without_profile)}};
}

template <class Enum>
Enum named(const Json& json, int count) {
    const std::string text = json.get<std::string>();
    for (int code = 0; code < count; ++code) {
        if (name(static_cast<Enum>(code)) == text) return static_cast<Enum>(code);
    }
    throw std::runtime_error(fmt::format("'{}' is not known", text));
}
VerifyRow row_from(const Json& json) {
    constexpr int role_count = 3, locality_count = 6;
    VerifyRow row;
    row.point = {named<Role>(json.at("device"), role_count), json.at("bytes").get<std::size_t>(),
                 json.at("passes").get<int>()};
    row.best = {named<MemoryKind>(json.at("best").at("kind"), memory_kind_count),
                named<Locality>(json.at("best").at("locality"), locality_count)};
    row.best_seconds = sample_from(json.at("best_seconds"));
    row.with_profile = choice_from(json.at("with_profile"));
    row.without_profile = choice_from(json.at("without_profile"));
    return row;
}

Json json_of(const Verdict& verdict) {
    return {{"points", verdict.points}, {"share_within_5_percent", verdict.good_share}, {"worst_ratio", verdict.worst}};
}

std::string time_text(double seconds) {
    if (seconds < 1e-3) return fmt::format("{:.4g} µs", seconds * 1e6);
    return seconds < 1 ? fmt::format("{:.4g} ms", seconds * 1e3) : fmt::format("{:.4g} s", seconds);
}

Section table(const std::vector<VerifyRow>& rows, bool with_profile) {
    Section section;
    section.title = with_profile ? "With the profile, above 1.05" : "Without a profile, above 1.05";
    section.header = {"device", "size", "passes", "chosen", "its time", "best", "its time", "ratio"};
    for (const VerifyRow& row : rows) {
        const Choice& choice = with_profile ? row.with_profile : row.without_profile;
        if (choice.ratio <= good_ratio) continue;
        section.rows.push_back({std::string(name(row.point.device)), size_text(row.point.bytes),
                                std::to_string(row.point.passes), choice.kind, time_text(choice.seconds.median),
                                text_of(row.best), time_text(row.best_seconds.median),
                                fmt::format("{:.2f}", choice.ratio)});
    }
    if (section.rows.empty()) {
        section.header.clear();
        section.text = "none";
    }
    return section;
}

}  // namespace

std::string verify_text(const std::vector<VerifyRow>& rows, bool simulated) {
    std::string text;
    if (simulated) text += "This machine is simulated: its times mean nothing.\n";
    for (const bool with_profile : {true, false}) {
        const Verdict verdict = verdict_of(rows, with_profile);
        text += fmt::format("{:<20}{} points, {:.1f} % of them within 5 % of the best memory, the worst {:.2f} times\n",
                            with_profile ? "with the profile" : "without a profile", verdict.points,
                            verdict.good_share * 100, verdict.worst);
    }
    return text + "\n" + as_text({table(rows, true), table(rows, false)}, {stdout_columns(), stdout_has_colour()});
}

std::string verify_json(const std::vector<VerifyRow>& rows, bool simulated) {
    Json out = {{"simulated", simulated},
                {"with_profile", json_of(verdict_of(rows, true))},
                {"without_profile", json_of(verdict_of(rows, false))},
                {"rows", Json::array()}};
    for (const VerifyRow& row : rows) out["rows"].push_back(json_of(row));
    return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string write_rows(const std::vector<VerifyRow>& rows) {
    Json out = Json::array();
    for (const VerifyRow& row : rows) out.push_back(json_of(row));
    return out.dump();
}

std::vector<VerifyRow> read_rows(std::string_view text) {
    std::vector<VerifyRow> rows;
    for (const Json& row : Json::parse(text)) rows.push_back(row_from(row));
    return rows;
}

}  // namespace isthmus::tools::tune
