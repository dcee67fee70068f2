// SPDX-License-Identifier: Apache-2.0
// Parsing of numbers, display of text, suggestions for misspelt words, and notices about peers.
#include "text/nearest.hpp"
#include "common/number_options.hpp"
#include "text/printable.hpp"
#include "share/notices.hpp"
#include "text/version_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <vector>

namespace {

using namespace isthmus::tools;
using share::NoticeRate;
using share::Notices;
using namespace std::chrono_literals;

const std::vector<std::string> no_number_at_all = {
    "",    " ",   "nan", "NaN",  "-nan",      "nan(1)", "inf", "-inf", "infinity",  "+1", " 1", "1 ",
    "1x",  "x1",  "1,5", "0x10", "1_000",     "1'0",    "{}",  "[1]",  "--1",       "1-", "1e", "1e400",
    "\n1", "1\n", "٣",   "½",    "1\x1b[31m", "\x1b",   "１",  "true", "-1e999999", ".",  "-",  std::string("1\0", 2)};

TEST(Numbers, AreTheWholeTextAndFiniteAndInRange) {
    for (const std::string& text : no_number_at_all) {
        EXPECT_EQ(number_in<double>(text, {-1e300, 1e300}), std::nullopt) << text;
        EXPECT_EQ(number_in<std::uint64_t>(text, {}), std::nullopt) << text;
        EXPECT_EQ(number_in<int>(text, {}), std::nullopt) << text;
    }
    for (const char* text : {"1.5", "1e3", "-1", "18446744073709551616", "99999999999999999999"}) {
        EXPECT_EQ(number_in<std::uint64_t>(text, {}), std::nullopt) << text;
    }
    EXPECT_EQ(number_in<std::uint64_t>("18446744073709551615", {}), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(number_in<unsigned>("64", {1, 64}), 64u);
    EXPECT_EQ(number_in<unsigned>("65", {1, 64}), std::nullopt);
    EXPECT_EQ(number_in<unsigned>("0", {1, 64}), std::nullopt);
    EXPECT_EQ(number_in<int>("-5", {-5, 5}), -5);
    EXPECT_EQ(number_in<double>("0.5", {0.1, 1.0}), 0.5);
    EXPECT_EQ(number_in<double>("1e-3", {0.001, 1.0}), 0.001);
    EXPECT_EQ(number_in<double>("0.05", {0.1, 1.0}), std::nullopt);
    EXPECT_EQ(wanted_number<unsigned>({1, 64}), "a whole number from 1 to 64");
    EXPECT_EQ(wanted_number<double>({0.1, 3600}), "a number from 0.1 to 3600");
}

TEST(Printable, LeavesTextAsItIs) {
    for (const char* text : {"", "plain\n\ttext", "µs × 10⁶, größer — ●", "漢字 🙂"})
        EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
    EXPECT_EQ(printable("a\x1b]0;title\x07z"), "a\\u001b]0;title\\u0007z");
    EXPECT_EQ(printable("\x1b[2J\r\b\x7f"), "\\u001b[2J\\u000d\\u0008\\u007f");
    EXPECT_EQ(printable("\xc2\x9b"
                        "31m"),
              "\\u009b31m");  // CSI as one character
    EXPECT_EQ(printable("\x9b"
                        "31m"),
              "\\x9b31m");                                // CSI as one byte
    EXPECT_EQ(printable("a\xe2\x80\xaez"), "a\\u202ez");  // right-to-left override
    EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028");      // line separator
    EXPECT_EQ(printable(std::string_view("\0", 1)), "\\u0000");
    EXPECT_EQ(printable("\xc1\x9b\xed\xa0\x80\xf5"), "\\xc1\\x9b\\xed\\xa0\\x80\\xf5");  // invalid UTF-8
    EXPECT_EQ(printable("cut \xe2\x82"), "cut \\xe2\\x82");
    EXPECT_EQ(printable("\xf0\x80\x80\x9b"), "\\xf0\\x80\\x80\\x9b");  // overlong encoding
}

TEST(Printable, KeepsColoursOnlyWhereAskedAndNothingElse) {
    EXPECT_EQ(printable("\033[1;31mred\033[0m", Colours::kept), "\033[1;31mred\033[0m");
    EXPECT_EQ(printable("\033[1;31mred\033[0m"), "\\u001b[1;31mred\\u001b[0m");
    for (const char* other : {"\033[2J", "\033[8m", "\033[40m", "\033[1;8m", "\033[", "\033", "\033[99999999999m"}) {
        EXPECT_EQ(printable(other, Colours::kept).find('\033'), std::string::npos) << other + 1;
    }
}

TEST(Nearest, IsAWordAFewLettersAway) {
    const std::vector<std::string> commands = {"caps", "doctor", "litmus", "run", "share", "tune", "view"};
    EXPECT_EQ(nearest("cap", commands), "caps");
    EXPECT_EQ(nearest("acps", commands), "caps");
    EXPECT_EQ(nearest("docter", commands), "doctor");
    EXPECT_EQ(nearest("litmsu", commands), "litmus");
    EXPECT_EQ(nearest("rnu", commands), "run");
    EXPECT_EQ(nearest("shares", commands), "share");
    EXPECT_EQ(nearest("tnue", commands), "tune");
    for (const char* far : {"", "frobnicate", "x", "rung-theory"}) EXPECT_EQ(nearest(far, commands), "") << far;
    EXPECT_EQ(nearest(std::string(1000000, 'c'), commands), "");
    EXPECT_EQ(nearest("caps", {}), "");
    EXPECT_EQ(edit_distance("abcd", "abdc"), 1u);
    EXPECT_EQ(edit_distance("", "abc"), 3u);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(VersionText, ShowsMajorAndMinorOfACudaVersion) {
    EXPECT_EQ(version_text(12060), "12.6");
    EXPECT_EQ(version_text(13000), "13.0");
    EXPECT_EQ(version_text(11081), "11.8");  // the last digit is no part of the version
}

TEST(NoticeRate, SaysSoManyAtOnceAndThenOneForEachInterval) {
    NoticeRate rate(3, 10ms);
    NoticeRate::Time now(1h);
    for (int times = 0; times < 3; ++times) EXPECT_TRUE(rate.take(now));
    EXPECT_FALSE(rate.take(now));
    EXPECT_FALSE(rate.take(now + 9ms));
    EXPECT_TRUE(rate.take(now + 10ms));
    EXPECT_FALSE(rate.take(now + 19ms));
    now += 24h;
    for (int times = 0; times < 3; ++times) EXPECT_TRUE(rate.take(now));
    EXPECT_FALSE(rate.take(now)) << "never more than the burst";
}

TEST(Notices, SayNoMoreThanABurstAtOnceAndHowManyTheyLeftOut) {
    std::vector<std::string> said;
    Notices notices([&](std::string_view line) { said.emplace_back(line); });
    notices.say_left_out();
    EXPECT_TRUE(said.empty()) << "nothing was left out";
    for (int line = 0; line < 100000; ++line) notices.say("line " + std::to_string(line));
    // More than the first twenty are allowed if this took longer than the interval.
    EXPECT_GE(said.size(), 20u);
    EXPECT_LT(said.size(), 2000u);
    EXPECT_EQ(said[0], "line 0");
    EXPECT_EQ(said[19], "line 19");
    notices.say_left_out();
    const bool counted = std::any_of(said.begin(), said.end(), [](const std::string& line) {
        return line.find(" lines were left out here") != std::string::npos;
    });
    EXPECT_TRUE(counted) << said.back();
    const std::size_t lines = said.size();
    notices.say_left_out();
    EXPECT_EQ(said.size(), lines) << "said once";
}

TEST(Notices, ALineThatCannotBeSaidIsOneThatIsLeftOut) {
    bool fails = true;
    std::vector<std::string> said;
    Notices notices([&](std::string_view line) {
        if (fails) throw std::bad_alloc();
        said.emplace_back(line);
    });
    notices.say("lost");
    fails = false;
    notices.say("told");
    EXPECT_EQ(said, (std::vector<std::string>{"share: 1 line was left out here", "told"}));
}

}  // namespace
