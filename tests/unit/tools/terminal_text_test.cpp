// SPDX-License-Identifier: Apache-2.0
// Text and tables for terminals: columns instead of bytes, lines that break at words, blocks that keep their keys.
#include "lines.hpp"

#include <gtest/gtest.h>

#include <text/table_text.hpp>
#include <text/terminal_text.hpp>

namespace {

using namespace isthmus::tools;

TEST(TerminalText, ColumnsAreThoseOfATerminalAndNotBytes) {
    EXPECT_EQ(display_columns(""), 0u);
    EXPECT_EQ(display_columns("3 µs × 2 ●"), 10u);
    EXPECT_EQ(display_columns("日本"), 4u) << "wide characters take two";
    EXPECT_EQ(display_columns("e\u0301a"), 2u) << "a combining mark takes none";
    EXPECT_EQ(display_columns("\033[1;31mred\033[0m"), 3u) << "colours take none";
    EXPECT_EQ(display_columns("a\xff"
                              "b"),
              3u)
        << "a byte that is not UTF-8";
    EXPECT_EQ(display_columns("\xc3"), 1u) << "a character that is cut off";
    EXPECT_EQ(display_columns("\033[1;31"), 5u) << "no colour without its end";
}

TEST(TerminalText, LinesEndAtWordsAndLongWordsBreakBetweenCharacters) {
    using Lines = std::vector<std::string>;
    EXPECT_EQ(lines_of("", 5), Lines{""});
    EXPECT_EQ(lines_of("µs µs µs", 5), (Lines{"µs µs", "µs"}));
    EXPECT_EQ(lines_of("one  two", 3), (Lines{"one", "two"}));
    EXPECT_EQ(lines_of("one\n two\tx", 80), Lines{"one two x"}) << "names may hold line ends";
    EXPECT_EQ(lines_of("a ●●●●● b", 3), (Lines{"a", "●●●", "●●", "b"}));
    EXPECT_EQ(lines_of("日本語", 1), (Lines{"日", "本", "語"})) << "one character at least";
    EXPECT_EQ(lines_of("ab", 0), (Lines{"a", "b"}));
}

TEST(TerminalText, WrappedTextCountsColumnsAndKeepsLongWordsWhole) {
    EXPECT_EQ(wrapped("µµµµ µµµµ", 9, 0), "µµµµ µµµµ");
    EXPECT_EQ(wrapped("one two three", 9, 2), "one two\n  three");
    EXPECT_EQ(wrapped("/a/very/long/path x", 4, 0), "/a/very/long/path\nx") << "to be copied";
}

TEST(TerminalText, ItemsStayWholeWhileALineHasRoom) {
    using Lines = std::vector<std::string>;
    EXPECT_EQ(lines_of_items({"ipc events", "dma buf", "x"}, " · ", 12), (Lines{"ipc events ·", "dma buf · x"}));
    EXPECT_EQ(lines_of_items({"ipc events", "dma buf"}, ", ", 20), Lines{"ipc events, dma buf"});
    EXPECT_EQ(lines_of_items({"ipc events", "dma buf"}, ", ", 18), (Lines{"ipc events,", "dma buf"}));
    EXPECT_EQ(lines_of_items({"a", "longer than it"}, ", ", 8), (Lines{"a,", "longer", "than it"}));
    EXPECT_EQ(lines_of_items({}, ", ", 8), Lines{""});
}

TEST(TerminalText, TheFirstVariableThatIsSetDecidesTheEncoding) {
    EXPECT_TRUE(is_utf8_locale(nullptr, nullptr, "C.UTF-8"));
    EXPECT_TRUE(is_utf8_locale(nullptr, "de_DE.utf8", "C"));
    EXPECT_FALSE(is_utf8_locale("C", nullptr, "C.UTF-8"));
    EXPECT_TRUE(is_utf8_locale("", "", "en_US.UTF-8")) << "empty is as unset";
    EXPECT_FALSE(is_utf8_locale(nullptr, nullptr, nullptr));
}

Section wide_table() {
    return {"t",
            "",
            {"memory", "shape", "answer", "speed"},
            {{"pinned", "message_to_host", "passes", "25.2 M/s"}, {"pinned", "torn_8", "no power", "3 µs"}},
            2,
            {}};
}

TEST(TableText, BlocksOfATableTooWideRepeatAllItsKeys) {
    const std::string text = as_text({wide_table()}, {36});
    EXPECT_EQ(text,
              "t\n"
              "  memory  shape            answer\n"
              "  pinned  message_to_host  passes\n"
              "  pinned  torn_8           no power\n"
              "\n"
              "  memory  shape            speed\n"
              "  pinned  message_to_host  25.2 M/s\n"
              "  pinned  torn_8           3 µs\n");
}

TEST(TableText, BlocksAreOfAboutTheSameWidth) {
    const Section section{"", "", {"k", "aaaa", "bbbb", "cccc", "dddd"}, {{"1", "a", "b", "c", "d"}}};
    EXPECT_EQ(as_text({section}, {24}), "  k  aaaa  bbbb\n  1  a     b\n\n  k  cccc  dddd\n  1  c     d\n");
}

TEST(TableText, ColumnsAreAlignedByWhatTheTerminalShows) {
    const Section section{"", "", {"a", "b"}, {{"3 µs", "x"}, {"日本", "y"}, {"four", "z"}}};
    EXPECT_EQ(as_text({section}), "  a     b\n  3 µs  x\n  日本  y\n  four  z\n");
}

TEST(TableText, LegendsTitlesAndLongCellsBreakAtWords) {
    const Section section{"A title of some words",
                          "A legend of some words",
                          {"k", "reason"},
                          {{"1", "because of a reason that is long"}, {"2", "short"}}};
    EXPECT_EQ(as_text({section}, {20}),
              "A title of some\nwords\n"
              "  A legend of some\n  words\n"
              "  k  reason\n"
              "  1  because of a\n     reason that is\n     long\n"
              "  2  short\n");
}

TEST(TableText, NoLineIsLongerThanTheTerminalWhateverTheWidth) {
    Section section = wide_table();
    section.text = "legend with_a_word_that_is_longer_than_any_terminal_of_twenty_columns";
    section.rows.push_back({"write_combined", "a_shape_without_any_blank_to_break_at", "", "µµµµ µµµµ µµµµ µµµµ µµµµ"});
    for (std::size_t width = 20; width <= 120; ++width) {
        for (const std::string& line : lines(as_text({section}, {width, true}))) {
            EXPECT_LE(display_columns(line), width) << line;
            EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
        }
    }
}

TEST(TableText, ColoursAreThoseOfTheCellsAndOnlyWhereTheTerminalHasThem) {
    Section section{"", "", {"k", "v"}, {{"a", "no"}}};
    section.paint = [](std::size_t, std::size_t column) { return column == 1 ? Colour::red : Colour::plain; };
    EXPECT_EQ(as_text({section}, {80, true}), "  \033[2mk\033[0m  \033[2mv\033[0m\n  a  \033[1;31mno\033[0m\n");
    EXPECT_EQ(as_text({section}, {80, false}), "  k  v\n  a  no\n");
}

}  // namespace
