// SPDX-License-Identifier: Apache-2.0
// The document of `isthmus report`: its form, its reader, and its summary. Pure.
#pragma once

#include <machines/record.hpp>

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::report {

inline constexpr const char* schema = "isthmus-report-1";

// The parts, as JSON; null: left out, and `left_out` has the reason.
struct Parts {
    std::string written_on;  // "2026-11-24"
    bool simulated = false;
    nlohmann::ordered_json record;      // as platform/machines writes it, with the findings of trials
    nlohmann::ordered_json litmus;      // {"from": "trials" or "file", …}
    nlohmann::ordered_json tests;       // test_results(), with "from"
    nlohmann::ordered_json profile;     // "isthmus-profile-1"
    nlohmann::ordered_json doctor;      // doctor_json()
    std::vector<std::string> left_out;  // "profile: there is none": one line each
};

// A document from elsewhere; discarded where it is no JSON, or nested so deeply that recursion would end the process.
nlohmann::ordered_json parsed(std::string_view text);

nlohmann::ordered_json document_of(const Parts& parts);
// The text of the file: indented, so that its sender can read it.
std::string text_of(const nlohmann::ordered_json& document);
// Throws Failure (exit code 2), which names `file`, for what is no report of this schema.
nlohmann::ordered_json read_report(std::string_view text, const std::string& file);

// What is in the report and what was left out, in lines for a terminal. It takes a part of another version of this
// program as it is.
std::string summary_of(const nlohmann::ordered_json& document);

// The report's record under a new name, as a file of platform/machines: with the rows that its devices classify to, and
// with sources that name the report. Values that its owner's driver answered are observed; those of a simulated machine
// are assumed. Throws Failure (exit code 2) where the report has no record, or a damaged one.
platform::machines::MachineRecord record_in(const nlohmann::ordered_json& document, std::string name,
                                            const std::string& file);

}  // namespace isthmus::tools::report
