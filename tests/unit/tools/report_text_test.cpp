// SPDX-License-Identifier: Apache-2.0
// Reports on terminals of every width.
#include "common/report_text.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace isthmus::tools {
namespace {

TEST(ReportText, BreaksLongLinesAtBlanksBelowTheirText) {
    EXPECT_EQ(fitted("device     a device with a long name\n", 24),
              "device     a device with\n           a long name\n");
    EXPECT_EQ(fitted("device     short\nframes     3\n", 24), "device     short\nframes     3\n");
}

TEST(ReportText, KeepsEveryWordAndTheColumnsWhereItCan) {
    const std::string report =
        "device     0: NVIDIA H200 (discrete), simulated: h200\n"
        "input      a/rather/long/path/of/a/picture.jpg, JPEG of 512x600 in colour\n"
        "  stage      where          p50 ms       p99 ms\n";
    for (std::size_t columns = 0; columns < 120; ++columns) {
        std::istringstream words(report), kept(fitted(report, columns));
        for (std::string word, other; words >> word;) {
            ASSERT_TRUE(kept >> other);
            EXPECT_EQ(word, other) << columns;
        }
        if (columns < 50) continue;  // a path is one word
        std::istringstream lines(fitted(report, columns));
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), columns) << line;
    }
    EXPECT_EQ(fitted(report, 200), report);
}

}  // namespace
}  // namespace isthmus::tools
