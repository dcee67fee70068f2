// SPDX-License-Identifier: Apache-2.0
// Writes the results of trials as JSON, and as lines between the processes.
#include "report.hpp"

#include "common/exit_codes.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace isthmus::tools::litmus {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) {
    // Names come from drivers: bytes that are not UTF-8 are replaced and raise no exception.
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Row row_from(const Json& json) {
    Row row;
    row.kind = static_cast<MemoryKind>(json.at("kind").get<int>());
    row.shape = static_cast<LitmusShape>(json.at("shape").get<int>());
    row.role = static_cast<Role>(json.at("role").get<int>());
    row.ending = static_cast<Ending>(json.at("ending").get<int>());
    row.trouble = json.at("trouble").get<std::string>();
    row.seen = json.at("seen").get<Counts>();
    row.control = json.at("control").get<Counts>();
    row.seconds = json.at("seconds").get<double>();
    return row;
}

void take_header(const Json& json, Report& report) {
    report.device = json.at("device").get<std::string>();
    report.uuid = json.at("uuid").get<std::string>();
    report.ordinal = json.at("ordinal").get<int>();
    report.driver_version = json.at("driver_version").get<int>();
    report.simulated = json.at("simulated").get<bool>();
    report.applicable = json.at("applicable").get<bool>();
    report.seed = json.at("seed").get<std::uint64_t>();
    report.threads = json.at("threads").get<unsigned>();
    report.mutant = json.at("mutant").get<std::string>();
    report.cannot = json.at("cannot").get<std::string>();
    report.cannot_code = json.at("cannot_code").get<int>();
    report.record = json.at("record").get<std::string>();
    report.left_out = json.at("left_out").get<std::vector<std::string>>();
}

Json row_json(const Row& row) {
    const Answer answer = answer_of(row);
    const std::uint64_t tried = total(row.seen);
    const std::uint64_t weak = count(row.shape, row.seen, Outcome::weak);
    const std::uint64_t control = total(row.control);
    Json out = {{"kind", name(row.kind)},
                {"shape", name(row.shape)},
                {"role", name(row.role)},
                {"answer", name(answer)},
                {"instances", tried},
                {"weak", weak},
                {"interleaved", count(row.shape, row.seen, Outcome::interleaved)},
                {"weak_rate_upper_bound", upper_bound(weak, tried)},
                {"seconds", row.seconds}};
    if (row.role == Role::test) {
        out["control"] = {{"instances", control},
                          {"weak", count(row.shape, row.control, Outcome::weak)},
                          {"interleaved", count(row.shape, row.control, Outcome::interleaved)}};
    }
    out["ending"] = name(row.ending);
    if (!row.trouble.empty()) out["trouble"] = row.trouble;
    return out;
}

}  // namespace

std::string header_line(const Report& report) {
    return line_of({{"device", report.device},
                    {"uuid", report.uuid},
                    {"ordinal", report.ordinal},
                    {"driver_version", report.driver_version},
                    {"simulated", report.simulated},
                    {"applicable", report.applicable},
                    {"seed", report.seed},
                    {"threads", report.threads},
                    {"mutant", report.mutant},
                    {"cannot", report.cannot},
                    {"cannot_code", report.cannot_code},
                    {"record", report.record},
                    {"left_out", report.left_out}});
}

std::string row_line(std::size_t index, const Row& row) {
    return line_of({{"row", index},
                    {"kind", static_cast<int>(row.kind)},
                    {"shape", static_cast<int>(row.shape)},
                    {"role", static_cast<int>(row.role)},
                    {"ending", static_cast<int>(row.ending)},
                    {"trouble", row.trouble},
                    {"seen", row.seen},
                    {"control", row.control},
                    {"seconds", row.seconds}});
}

Report report_of_lines(std::string_view lines) {
    Report report;
    bool is_header = true;
    for (std::size_t begin = 0; begin < lines.size();) {
        const std::size_t end = lines.find('\n', begin);
        if (end == std::string_view::npos) break;  // truncated
        const Json json = Json::parse(lines.begin() + begin, lines.begin() + end, nullptr, false);
        begin = end + 1;
        if (!json.is_object()) continue;  // output of a driver
        if (is_header != json.contains("device")) continue;
        if (is_header) {
            take_header(json, report);
            is_header = false;
            continue;
        }
        const auto index = json.at("row").get<std::size_t>();
        if (index >= report.rows.size()) report.rows.resize(index + 1);
        report.rows[index] = row_from(json);
    }
    return report;
}

std::string_view summary(const Report& report) {
    if (!report.applicable) return "not applicable";
    const auto has = [&](Answer answer) {
        return std::any_of(report.rows.begin(), report.rows.end(),
                           [answer](const Row& row) { return answer_of(row) == answer; });
    };
    if (has(Answer::forbidden_seen) && !report.simulated) return "forbidden seen";
    if (!report.end.empty() || has(Answer::incomplete) || report.rows.empty()) return "incomplete";
    if (report.simulated) return "simulated";
    if (!report.mutant.empty()) return has(Answer::mutant_noticed) ? "mutant noticed" : "mutant unnoticed";
    return has(Answer::no_power) ? "no power" : "passes";
}

int exit_code(const Report& report) {
    if (!report.applicable || (report.rows.empty() && report.end.empty())) return exit_cannot;
    if (!report.end.empty()) return exit_failed;
    const bool problem = std::any_of(report.rows.begin(), report.rows.end(), [&](const Row& row) {
        const Answer answer = answer_of(row);
        return is_problem(answer) && !(report.simulated && answer == Answer::forbidden_seen);
    });
    return problem ? exit_failed : exit_ok;
}

std::string as_json(const Report& report) {
    Json rows = Json::array();
    for (const Row& row : report.rows) rows.push_back(row_json(row));
    Json out = {{"summary", summary(report)},    {"device", report.device},
                {"uuid", report.uuid},           {"driver_version", report.driver_version},
                {"simulated", report.simulated}, {"seed", report.seed},
                {"threads", report.threads}};
    if (!report.mutant.empty()) out["mutant"] = report.mutant;
    if (!report.end.empty()) out["end"] = report.end;
    out["left_out"] = report.left_out;
    out["rows"] = std::move(rows);
    return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace isthmus::tools::litmus
