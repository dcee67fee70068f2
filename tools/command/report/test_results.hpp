// SPDX-License-Identifier: Apache-2.0
// Results of tests, as the installed `run-tests` prints them or as `meson test` logs them, in one form.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace isthmus::tools::report {

// The end of a failed test's output that is kept, in bytes.
inline constexpr std::size_t kept_output_bytes = 4000;

// {"passed": 1, "failed": 1, "skipped": 0, "failures": [{"name", "result", "output"}], "names": {"passed": […],
// "skipped": […]}}. `text` is what `run-tests` printed ("passed  NAME", "FAILED  NAME (STATUS)" with the output below
// it), or meson-logs/testlog.json (one JSON object a line). null: it has no result of a test.
nlohmann::ordered_json test_results(std::string_view text);

}  // namespace isthmus::tools::report
