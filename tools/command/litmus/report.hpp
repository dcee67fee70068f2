// SPDX-License-Identifier: Apache-2.0
// The results of a run of trials, as text and as JSON, and the lines by which the child process reports them to its
// parent.
#pragma once

#include "plan.hpp"
#include "text/table_text.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::litmus {

struct Report {
    std::string device;
    std::string uuid;
    int ordinal = -1;
    int driver_version = 0;
    bool simulated = false;
    bool applicable = true;  // false: a CPU device, which has one side only
    std::uint64_t seed = 0;
    unsigned threads = 0;
    std::string mutant;
    std::string cannot;                 // why no trial was possible; empty: trials ran
    int cannot_code = 0;                // the command's exit code for `cannot`
    std::string record;                 // the machine's record as JSON, for --save
    std::vector<std::string> left_out;  // kinds without trials, with the reason
    std::vector<Row> rows;
    std::string end;  // how the child ended: empty, or "hung", "crashed by signal 11"
};

// The child's lines: header_line() has all but the rows' contents; row_line() has a row, and is sent whenever it
// changes.
std::string header_line(const Report& report);
std::string row_line(std::size_t index, const Row& row);
// Parses the lines; a truncated line is ignored. Rows that were not finished are not_run.
Report report_of_lines(std::string_view lines);

std::string as_text(const Report& report, const TextStyle& style = {});
std::string as_json(const Report& report);
// "passes", "no power", …: the most important answer of all rows; "not applicable" or "simulated" where the answers
// have no meaning.
std::string_view summary(const Report& report);
// The command's exit code.
int exit_code(const Report& report);

}  // namespace isthmus::tools::litmus
