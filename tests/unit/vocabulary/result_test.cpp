// SPDX-License-Identifier: Apache-2.0
// Error and Result: values that explain, with and without exceptions.
#include <isthmus/memory_kind.hpp>
#include <isthmus/print.hpp>
#include <isthmus/result.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace {

using isthmus::BadResult;
using isthmus::Code;
using isthmus::Error;
using isthmus::Result;

Error refused() {
    return Error(Code::out_of_memory, "8 GiB were asked for", "ask for less").from_call("cuMemAlloc_v2", 2);
}

TEST(Errors, SayEverythingInOneLine) {  // keeps R1, K16
    EXPECT_EQ(refused().text(), "out_of_memory: 8 GiB were asked for (cuMemAlloc_v2 returned 2). Try: ask for less");
    EXPECT_EQ(Error(Code::timed_out, "too late").text(), "timed_out: too late");
    EXPECT_EQ(Error(Code::no_driver, "none is here", "install it").from_call("dlopen", 0).text(),
              "no_driver: none is here (dlopen). Try: install it");
    EXPECT_EQ(Error(Code::unsupported, "A sentence.", "another").text(), "unsupported: A sentence. Try: another");
}

TEST(Errors, AreValuesAndSurviveBeingMovedFrom) {
    Error error = refused();
    const Error copy = error;
    const Error moved = std::move(error);
    EXPECT_EQ(copy.text(), moved.text());
    EXPECT_EQ(error.code(), Code::invalid_handle);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(error.message(), "");
    error = copy;
    EXPECT_EQ(error.driver_code(), 2);
}

TEST(Results, HoldAValueOrAnError) {
    Result<std::unique_ptr<int>> good = std::make_unique<int>(5);
    ASSERT_TRUE(good);
    EXPECT_EQ(good.code(), Code::ok);
    EXPECT_EQ(**good, 5);
    const std::unique_ptr<int> taken = std::move(good).value();
    EXPECT_EQ(*taken, 5);
    const Result<std::unique_ptr<int>> bad = refused();
    EXPECT_FALSE(bad);
    EXPECT_EQ(bad.code(), Code::out_of_memory);
    EXPECT_EQ(bad.error().driver_code(), 2);
    const Result<void> fine;
    EXPECT_TRUE(fine.ok());
    EXPECT_EQ(Result<void>(refused()).code(), Code::out_of_memory);
}

// A temporary Result returns its value by value, so a range-based for loop over it does not dangle.
TEST(Results, OfATemporaryComesTheValueItself) {
    static_assert(std::is_same_v<decltype(std::declval<Result<std::string>>().value()), std::string>);
    static_assert(std::is_same_v<decltype(*std::declval<Result<std::string>>()), std::string>);
    const auto made = [] { return Result<std::string>("abc"); };
    std::string seen;
    for (const char one : made().value()) seen += one;
    EXPECT_EQ(seen, "abc");
}

TEST(Results, ThrowWhenAFailureIsAssertedToBeAValue) {
#if defined(__cpp_exceptions)
    const Result<int> bad = refused();
    try {
        (void)bad.value();
        FAIL() << "a failed result has no value";
    } catch (const BadResult& thrown) {
        EXPECT_EQ(thrown.error().code(), Code::out_of_memory);
        EXPECT_EQ(std::string(thrown.what()), refused().text());
    }
    EXPECT_THROW(Result<void>(refused()).value(), BadResult);
#else
    EXPECT_DEATH((void)Result<int>(refused()).value(), "");
#endif
}

// keeps R1
TEST(Results, GoOnWithTheValueOrWithTheSameError) {
    const Result<int> good = 4;
    const Result<int> bad = refused();
    EXPECT_EQ(good.value_or(7), 4);
    EXPECT_EQ(bad.value_or(7), 7);
    EXPECT_EQ(*Result<std::unique_ptr<int>>(std::make_unique<int>(3)).value_or(nullptr), 3);
    EXPECT_EQ(Result<std::unique_ptr<int>>(refused()).value_or(nullptr), nullptr);

    int calls = 0;
    const auto half = [&](int value) -> Result<double> {
        ++calls;
        if (value == 0) return Error(Code::invalid_argument, "nothing to halve");
        return value / 2.0;
    };
    EXPECT_EQ(good.and_then(half).value(), 2.0);
    EXPECT_EQ(Result<int>(0).and_then(half).code(), Code::invalid_argument);
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(bad.and_then(half).error().text(), refused().text());
    EXPECT_EQ(calls, 2) << "not called on failure";

    EXPECT_EQ(good.transform([](int value) { return std::to_string(value); }).value(), "4");
    EXPECT_EQ(bad.transform([](int value) { return value; }).code(), Code::out_of_memory);
    EXPECT_TRUE(good.transform([&](int) { ++calls; }).ok());
    EXPECT_EQ(calls, 3);
    auto moved = Result<std::unique_ptr<int>>(std::make_unique<int>(5)).transform([](std::unique_ptr<int> value) {
        return value;
    });
    EXPECT_EQ(**moved, 5);

    EXPECT_EQ(Result<void>().and_then([] { return Result<int>(1); }).value(), 1);
    EXPECT_EQ(Result<void>(refused()).and_then([] { return Result<int>(1); }).code(), Code::out_of_memory);
    EXPECT_EQ(Result<void>().transform([] { return 2; }).value(), 2);
    EXPECT_EQ(Result<void>(refused()).transform([] { return 2; }).code(), Code::out_of_memory);
}

Result<int> sum_of(const Result<std::pair<int, int>>& numbers, const Result<void>& allowed) {
    ISTHMUS_TRY(allowed);
    if (numbers) ISTHMUS_TRY(Result<void>());
    ISTHMUS_TRY(const auto both, numbers);
    ISTHMUS_TRY(auto more, Result<std::pair<int, int>>(std::pair<int, int>{both.first, both.second}));
    return more.first + more.second;
}

// keeps R1
TEST(Results, LeaveAFunctionWithTheirError) {
    EXPECT_EQ(sum_of(std::pair{2, 3}, {}).value(), 5);
    EXPECT_EQ(sum_of(std::pair{2, 3}, refused()).error().text(), refused().text());
    EXPECT_EQ(sum_of(refused(), {}).error().text(), refused().text());
}

TEST(Printing, NamesErrorsAndUuids) {
    std::ostringstream out;
    out << Code::out_of_memory << ' ' << isthmus::MemoryKind::pinned << ' ' << refused() << ' ' << isthmus::Uuid();
    EXPECT_EQ(out.str(), "out_of_memory pinned " + refused().text() + ' ' + isthmus::Uuid().text());
#if defined(__cpp_lib_format)
    EXPECT_EQ(std::format("{} {:>8} {}", Code::ended, isthmus::MemoryKind::pinned, refused()),
              "ended   pinned " + refused().text());
#endif
}

}  // namespace
