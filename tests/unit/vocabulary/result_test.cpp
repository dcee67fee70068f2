// Error and Result: values that explain, with and without exceptions.
#include <isthmus/result.hpp>

#include <gtest/gtest.h>

#include <memory>
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

// What a temporary Result gives away lives on by itself: nothing dangles in a loop over it.
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

}  // namespace
