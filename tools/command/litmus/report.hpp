// SPDX-License-Identifier: Apache-2.0
// What a run of trials found, as text and as JSON; and the lines in which the child process tells it to its parent.
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
    bool applicable = true;  // false: a CPU device, which is one side alone
    std::uint64_t seed = 0;
    unsigned threads = 0;
    std::string mutant;
    std::string cannot;                 // why nothing could be tried; empty: it could
    int cannot_code = 0;                // … and the command's exit code then
    std::string record;                 // the machine's, as JSON, for --save
    std::vector<std::string> left_out;  // kinds, with the reason
    std::vector<Row> rows;
    std::string end;  // of the child: empty, or "hung", "crashed by signal 11"
};

// The child's lines: all but the rows' content, then each row whenever it has changed.
std::string header_line(const Report& report);
std::string row_line(std::size_t index, const Row& row);
// What the lines said; a line that was cut off counts for nothing. Rows that were not finished are not_run.
Report report_of_lines(std::string_view lines);

std::string as_text(const Report& report, const TextStyle& style = {});
std::string as_json(const Report& report);
// "passes", "no power", …: the weightiest of the rows'; "not applicable", "simulated" where they are not to be weighed.
std::string_view summary(const Report& report);
// Exit code of the command.
int exit_code(const Report& report);

}  // namespace isthmus::tools::litmus
