// SPDX-License-Identifier: Apache-2.0
// Errors of the catalogue: their fields, their texts, and when the texts are built.
#include <error_entry.hpp>
#include <error_places.hpp>
#include <short_name.hpp>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace {

using namespace isthmus;

constexpr auto too_large = error_entry("T001", Code::invalid_argument,
                                       "{bytes:number} bytes of {kind} memory; at most {most:number} are there",
                                       "ask for {most:number} bytes or less of {kind} memory");
constexpr auto plain = error_entry("T002", Code::in_use, "a view is open", "");
constexpr auto braces = error_entry("T004", Code::in_use, "{.timing = true} or {} or {", "{what}: record({.timing})");
constexpr auto answered = error_entry("T003", Code::ok, "{call} failed", "look at {file}");

TEST(ErrorEntry, NamesItsFieldsOnceInTheirOrder) {
    constexpr detail::ErrorFields fields = too_large.fields();
    static_assert(fields.count == 3);
    static_assert(fields.field[0].name == "bytes" && fields.field[0].is_number);
    static_assert(fields.field[1].name == "kind" && !fields.field[1].is_number);
    static_assert(fields.field[2].name == "most" && fields.field[2].is_number);
    static_assert(plain.fields().count == 0);
    // Values of other types, or of another number, do not compile.
    static_assert(detail::fit<too_large, unsigned long, const char*, int>());
    static_assert(!detail::fit<too_large, unsigned long, const char*>());
    static_assert(!detail::fit<too_large, const char*, const char*, int>());
    static_assert(!detail::fit<too_large, unsigned long, int, int>());
}

TEST(ErrorEntry, BecomesAnErrorWithItsIdCodeAndTexts) {
    const Error error = make_error<too_large>(std::size_t{4096}, std::string("pinned"), -1);
    EXPECT_EQ(error.id(), "T001");
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(error.message(), "4096 bytes of pinned memory; at most -1 are there");
    EXPECT_EQ(error.remedy(), "ask for -1 bytes or less of pinned memory");
    EXPECT_EQ(error.text(),
              "invalid_argument: 4096 bytes of pinned memory; at most -1 are there. Try: ask for -1 bytes or less of "
              "pinned memory [T001]");
    EXPECT_EQ(make_error<plain>().text(), "in_use: a view is open [T002]");
}

TEST(ErrorEntry, LeavesBracesThatNameNoFieldAsTheyAre) {
    const Error error = make_error<braces>("try");
    EXPECT_EQ(error.message(), "{.timing = true} or {} or {");
    EXPECT_EQ(error.remedy(), "try: record({.timing})");
}

TEST(ErrorEntry, TakesTheCodeOfAnAnswer) {
    const Error error = make_error_as<answered>(Code::not_permitted, "mbind", "{braces} and \n lines");
    EXPECT_EQ(error.code(), Code::not_permitted);
    EXPECT_EQ(error.message(), "mbind failed");
    EXPECT_EQ(error.remedy(), "look at {braces} and \n lines") << "text in a field is text, not a format";
}

TEST(ErrorEntry, KeepsItsValuesAndNotTheirMemory) {
    std::string kind = "a kind whose name is longer than what a string holds by itself";
    const Error error = make_error<too_large>(1, kind, 2);
    const Error before = error;  // NOLINT(performance-unnecessary-copy-initialization): text not built yet
    kind.assign(kind.size(), 'x');
    EXPECT_NE(error.message().find("a kind whose name"), std::string_view::npos);
    EXPECT_EQ(before.text(), error.text());
    const Error after = error;  // NOLINT(performance-unnecessary-copy-initialization): text built
    EXPECT_EQ(after.text(), error.text());
    EXPECT_NE(after.message().data(), error.message().data());
}

// More than the library has places for, and values longer than a place.
TEST(ErrorEntry, KeepsItsValuesHoweverManyThereAreAndHoweverLong) {
    std::vector<Error> many;
    for (int at = 0; at < 100; ++at) {
        const std::string kind(static_cast<std::size_t>(at) * 11, 'k');
        many.push_back(
            make_error<too_large>(at, kind, at).from_call(std::string(static_cast<std::size_t>(at), 'c'), at));
    }
    const std::vector<Error> copies = many;
    for (int at = 0; at < 100; ++at) {
        const std::string number = std::to_string(at);
        const std::string kind(static_cast<std::size_t>(at) * 11, 'k');
        const auto place = static_cast<std::size_t>(at);
        for (const Error* each : std::initializer_list<const Error*>{&many[place], &copies[place]}) {
            std::string message = number;
            message.append(" bytes of ").append(kind).append(" memory; at most ").append(number).append(" are there");
            EXPECT_EQ(each->message(), message);
            EXPECT_EQ(each->call(), std::string(static_cast<std::size_t>(at), 'c'));
        }
    }
}

TEST(ErrorEntry, GivesItsTextsToAnotherErrorWithoutComposingItsOwn) {
    const Error error = make_error<too_large>(3, std::string(300, 'k'), 4);
    EXPECT_EQ(detail::message_in_words(error).view(), error.message());
    EXPECT_EQ(detail::remedy_in_words(error).view(), error.remedy());
    const Error own(Code::in_use, "a text", "a remedy");
    EXPECT_EQ(detail::message_in_words(own).view(), "a text");
    EXPECT_EQ(detail::remedy_in_words(own).view(), "a remedy");
}

TEST(ErrorEntry, KeepsItsTextsWhileThePlacesAreTouched) {
    std::vector<Error> many;
    for (int at = 0; at < 40; ++at) {
        many.push_back(make_error<too_large>(at, "pinned", at));
        detail::touch_places_of_errors();
    }
    for (int at = 0; at < 40; ++at) {
        const std::string number = std::to_string(at);
        std::string expected = number;
        expected.append(" bytes of pinned memory; at most ").append(number).append(" are there");
        EXPECT_EQ(many[static_cast<std::size_t>(at)].message(), expected);
    }
}

TEST(ShortName, KeepsTheBeginningOfANameThatIsTooLong) {
    const std::string most(most_name_bytes, 'n');
    EXPECT_EQ(short_name("").view(), "");
    EXPECT_EQ(short_name("scale").view(), "scale");
    EXPECT_EQ(short_name(most).view(), most);
    EXPECT_EQ(short_name(most + "n").view(), most + "...");
    EXPECT_EQ(launching("scale").view(), "launching kernel 'scale'");
    EXPECT_EQ(launching(std::string(5000, 'n')).view(), "launching kernel '" + most + "...'");
    // A character of two, three or four bytes is kept whole or left out.
    for (const std::string sign : {"\u00e9", "\u20ac", "\U0001f600"}) {
        for (std::size_t left = 0; left <= sign.size(); ++left) {
            const std::string before(most_name_bytes - left, 'n');
            const std::string kept = left == sign.size() ? before + sign : before;
            EXPECT_EQ(short_name(before + sign + "nnnn").view(), kept + "...") << sign << ' ' << left;
        }
    }
}

TEST(ErrorEntry, IsPutIntoWordsOnceByManyThreads) {
    for (int round = 0; round < 50; ++round) {
        const Error error = make_error<too_large>(7, "managed", 8);
        std::vector<const char*> seen(4);
        {
            std::vector<std::jthread> threads;
            for (const char*& each : seen) threads.emplace_back([&] { each = error.message().data(); });
        }
        for (const char* each : seen) EXPECT_EQ(each, error.message().data());
    }
}

TEST(ErrorEntry, IsToldToAWatcher) {
    static thread_local std::vector<std::string> ids;
    ids.clear();
    detail::watch_errors([](std::string_view id) { ids.emplace_back(id); });
    const Error first = make_error<plain>();
    const Error copy = first;  // NOLINT(performance-unnecessary-copy-initialization): told once
    const Error own(Code::in_use, "a program's own");
    detail::watch_errors(nullptr);
    const Error later = make_error<plain>();
    EXPECT_EQ(ids, std::vector<std::string>{"T002"});
    EXPECT_EQ(own.id(), "");
    EXPECT_EQ(later.id(), "T002");
}

TEST(ErrorEntry, OfAMovedFromErrorIsEmpty) {
    Error error = make_error<plain>();
    const Error taken = std::move(error);
    EXPECT_EQ(error.id(), "");       // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(error.message(), "");  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(taken.id(), "T002");
    const Error called = std::move(error).from_call("cuInit", 3);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(called.code(), Code::invalid_handle);
    EXPECT_EQ(called.message(), "");
}

}  // namespace
