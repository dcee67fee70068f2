// SPDX-License-Identifier: Apache-2.0
// A graph as DOT text: what is drawn, and that no name can break out of its quotes.
#include "graph_dot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace isthmus::detail {
namespace {

// keeps S15: what was recorded can be looked at
TEST(GraphDot, AnEmptyGraphIsAGraph) {
    EXPECT_EQ(graph_dot("graph 1", {}), "digraph \"graph 1\" {\n  node [shape=box, fontname=monospace];\n}\n");
}

// keeps S15
TEST(GraphDot, ShowsOperationsArgumentsPlacesAndEdges) {
    const std::vector<DotOperation> operations = {
        {"scale",
         true,
         {{"out", ArgumentUse::write, "buffer 4"}, {"in", ArgumentUse::read, "buffer 5"}},
         3,
         "H200",
         {}},
        {"a copy", false, {{"", ArgumentUse::read_write, "buffer 4"}}, 7, "Orin", {0}},
        {"join", true, {}, 3, "H200", {0, 1}},
    };
    EXPECT_EQ(graph_dot("two streams", operations),
              "digraph \"two streams\" {\n"
              "  node [shape=box, fontname=monospace];\n"
              "  n0 [label=\"scale\\lout: writes buffer 4\\lin: reads buffer 5\\lstream 3, H200\\l\"];\n"
              "  n1 [label=\"a copy\\lreads and writes buffer 4\\lstream 7, Orin\\l\", style=rounded];\n"
              "  n2 [label=\"join\\lstream 3, H200\\l\"];\n"
              "  n0 -> n1;\n"
              "  n0 -> n2;\n"
              "  n1 -> n2;\n"
              "}\n");
}

// keeps S15
TEST(GraphDot, EqualOperationsGiveEqualText) {
    const std::vector<DotOperation> operations = {{"a", true, {}, 1, "d", {}}, {"a", true, {}, 1, "d", {0}}};
    EXPECT_EQ(graph_dot("g", operations), graph_dot("g", operations));
    EXPECT_NE(graph_dot("g", operations), graph_dot("h", operations));
}

// Whether every string of the line is closed, with nothing left over.
bool balanced(const std::string& text) {
    bool inside = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\n' && inside) return false;
        if (inside && text[at] == '\\') {
            ++at;
        } else if (text[at] == '"') {
            inside = !inside;
        }
    }
    return !inside;
}

// keeps S15: every byte that a name could have
TEST(GraphDot, NoNameEndsItsStringOrItsLine) {
    EXPECT_EQ(dot_escaped("plain_name<float, 3>"), "plain_name<float, 3>");
    EXPECT_EQ(dot_escaped("a\"b\\c"), "a\\\"b\\\\c");
    EXPECT_EQ(dot_escaped("a\nb\tc\x7f"), "a b c ");
    EXPECT_EQ(dot_escaped("µ"), "µ");
    for (int first = 0; first < 256; ++first) {
        for (const char second : {'"', '\\', 'n', '\n', 'x'}) {
            const std::string name{static_cast<char>(first), second};
            const std::string drawn = graph_dot(name, {{name, true, {{name, ArgumentUse::read, name}}, 1, name, {}}});
            ASSERT_TRUE(balanced(drawn)) << first << " " << second << "\n" << drawn;
            ASSERT_EQ(std::count(drawn.begin(), drawn.end(), '\n'), 4);
        }
    }
    EXPECT_FALSE(balanced("n0 [label=\"a\"b\"]"));  // shows that the check can fail
}

}  // namespace
}  // namespace isthmus::detail
