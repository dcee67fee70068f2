// SPDX-License-Identifier: Apache-2.0
// JSON as RFC 8259 has it, and nothing else.
#include "json_cursor.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using isthmus::detail::JsonCursor;

std::string fault_in(const std::string& text) {
    JsonCursor cursor(text);
    cursor.skip();
    cursor.end();
    return std::string(cursor.fault());
}

// keeps P4
TEST(JsonCursor, SkipsEveryWellFormedValue) {
    for (const char* text :
         {"{}", "[]", "  [ ]\n", "true", "false", "null", "0", "-0", "12.5", "1e9", "1E+09", "-1.25e-3", "\"\"",
          R"("\"\\\/\b\f\n\r\t\u00e9\u20AC")", R"({"a": [1, {"b": null}], "a": "twice"})", "[[[[]]],\t\"\xc3\xa9\"]"}) {
        EXPECT_EQ(fault_in(text), "") << text;
    }
}

// keeps P4
TEST(JsonCursor, RefusesEverythingElse) {
    for (const char* text :
         {"",           " ",           "{",        "[",     "[1",  "[1,", "[1,]", "{\"a\"}", "{\"a\":}",
          "{\"a\":1,}", "{a:1}",       "[1 2]",    "]",     "tru", "nul", "01",   "+1",      "1.",
          ".5",         "1e",          "1e+",      "-",     "--1", "\"",  "\"a",  "\"\\x\"", "\"\\u12g4\"",
          "\"\\u12\"",  "\"\\ud800\"", "\"a\nb\"", "{} {}", "1 2", "'a'", "[1]x"}) {
        EXPECT_NE(fault_in(text), "") << text;
    }
    const std::string deep(65, '[');
    EXPECT_EQ(fault_in(deep + std::string(65, ']')), "objects and arrays are nested too deeply");
    EXPECT_EQ(fault_in(deep.substr(1) + std::string(64, ']')), "");
}

TEST(JsonCursor, ReadsValuesWithTheirMembersInOrder) {
    const std::string text = R"({"name": "a\u00e9\t\u20ac", "many": [1, 20, 9223372036854775807], "yes": true})";
    JsonCursor cursor(text);
    std::vector<std::string> keys;
    std::vector<std::uint64_t> numbers;
    cursor.object([&](std::string_view key) {
        keys.emplace_back(key);
        if (key == "name") {
            EXPECT_EQ(cursor.string(), "a\xc3\xa9\t\xe2\x82\xac");
        } else if (key == "many") {
            cursor.array([&] { numbers.push_back(cursor.whole_number()); });
        } else {
            EXPECT_TRUE(cursor.boolean());
        }
    });
    cursor.end();
    EXPECT_TRUE(cursor.good()) << cursor.fault();
    EXPECT_EQ(keys, (std::vector<std::string>{"name", "many", "yes"}));
    EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 20, 9223372036854775807u}));
}

TEST(JsonCursor, WholeNumbersHaveNoSignFractionExponentOrPadding) {
    for (const char* text : {"-1", "1.0", "1e3", "01", "9223372036854775808", "99999999999999999999", "\"1\"", ""}) {
        const std::string kept = text;
        JsonCursor cursor(kept);
        (void)cursor.whole_number();
        cursor.end();
        EXPECT_FALSE(cursor.good()) << text;
    }
}

TEST(JsonCursor, TheFirstFaultStaysWithItsPlace) {
    const std::string text = "[1, x, y]";
    JsonCursor cursor(text);
    cursor.skip();
    EXPECT_EQ(cursor.fault(), "a value was expected");
    EXPECT_EQ(cursor.place(), 4u);
    cursor.refuse("another");
    (void)cursor.string();
    EXPECT_EQ(cursor.fault(), "a value was expected");
    EXPECT_EQ(cursor.place(), 4u);
}

}  // namespace
