// SPDX-License-Identifier: Apache-2.0
// What work of other code is given, and what its answers count as.
#include <isthmus/native_work.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

// As cuda.h and driver_types.h declare theirs, and as another library does.
enum cudaError_enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 };
enum cudaError { cudaSuccess = 0, cudaErrorIllegalAddress = 700 };
enum LibraryStatus { LIBRARY_OK = 0, LIBRARY_BAD = 700 };

namespace {

using isthmus::Code;
using isthmus::Error;
using isthmus::Result;
using isthmus::detail::NativeOutcome;
using isthmus::detail::NativeView;

template <class... T, class F>
NativeOutcome outcome_of(F work, const NativeView* views = nullptr) {
    NativeOutcome out;
    isthmus::detail::run_native_caught<F, T...>(work, nullptr, views, out);
    return out;
}

// keeps W1
TEST(NativeCall, TheWorkGetsItsStreamAndAPointerPerUseInTheirOrder) {
    float in = 0;
    std::int32_t out = 0;
    const NativeView views[] = {{&in}, {&out}};
    int stream = 0;
    NativeOutcome outcome;
    int calls = 0;
    auto work = [&](void* cu_stream, const float* first, std::int32_t* second) {
        ++calls;
        EXPECT_EQ(cu_stream, &stream);
        EXPECT_EQ(first, &in);
        EXPECT_EQ(second, &out);
    };
    isthmus::detail::run_native_caught<decltype(work), const float, std::int32_t>(work, &stream, views, outcome);
    EXPECT_TRUE(outcome.called && outcome.ok());
    EXPECT_EQ(calls, 1);
}

// keeps W1
TEST(NativeCall, AReadingUseHasConstElementsAndTheOthersHaveNot) {
    using Whole = isthmus::Buffer<float>;
    using Part = isthmus::BufferPart<float>;
    using ReadPart = isthmus::BufferPart<const float>;
    static_assert(std::is_same_v<decltype(reads(std::declval<const Whole&>()))::element_type, const float>);
    static_assert(std::is_same_v<decltype(writes(std::declval<Whole&>()))::element_type, float>);
    static_assert(std::is_same_v<decltype(updates(std::declval<Whole&>()))::element_type, float>);
    static_assert(std::is_same_v<decltype(reads(std::declval<ReadPart>()))::element_type, const float>);
    static_assert(std::is_same_v<decltype(writes(std::declval<Part>()))::element_type, float>);
    const auto can_write = []<class B>(B) {
        return requires(B buffer) {
            writes(buffer);
        };
    };
    EXPECT_TRUE(can_write(Part(nullptr, 0, 1)));
    EXPECT_FALSE(can_write(ReadPart(nullptr, 0, 1)));
    const auto part = reads(Part(nullptr, 3, 5));
    EXPECT_TRUE(part.argument.is_part);
    EXPECT_EQ(part.argument.first_byte, 12u);
    EXPECT_EQ(part.argument.raw_count, 5u);
}

// keeps W4
TEST(NativeCall, AnswersAreSortedByTheirTypes) {
    EXPECT_TRUE(outcome_of([](void*) {}).ok());
    EXPECT_TRUE(outcome_of([](void*) { return 0; }).ok());
    EXPECT_TRUE(outcome_of([](void*) { return Result<void>(); }).ok());

    NativeOutcome outcome = outcome_of([](void*) { return 700; });
    EXPECT_TRUE(!outcome.ok() && outcome.of_driver);
    EXPECT_EQ(outcome.code, 700);
    outcome = outcome_of([](void*) { return CUDA_ERROR_INVALID_VALUE; });
    EXPECT_TRUE(!outcome.ok() && outcome.of_driver);
    outcome = outcome_of([](void*) { return cudaErrorIllegalAddress; });
    EXPECT_TRUE(!outcome.ok() && outcome.of_driver);
    EXPECT_EQ(outcome.code, 700);
    // The number of another library: it says nothing about the device.
    outcome = outcome_of([](void*) { return LIBRARY_BAD; });
    EXPECT_FALSE(outcome.ok());
    EXPECT_FALSE(outcome.of_driver);
    outcome = outcome_of([](void*) { return Result<void>(Error(Code::unsupported, "no such filter")); });
    ASSERT_TRUE(outcome.error.has_value());
    EXPECT_EQ(outcome.error->code(), Code::unsupported);
}

// keeps W4
TEST(NativeCall, AnExceptionIsKeptAndIsNoSuccess) {
    const NativeOutcome outcome = outcome_of([](void*) { throw std::runtime_error("broken"); });
    EXPECT_TRUE(outcome.called);
    EXPECT_FALSE(outcome.ok());
    EXPECT_THROW(std::rethrow_exception(outcome.thrown), std::runtime_error);
}

// keeps W7
TEST(NativeCall, AKeptCopyIsCalledAsOftenAsItsGraphIsLaunched) {
    std::int32_t data = 0;
    const NativeView views[] = {{&data}};
    const auto work = [](void* cu_stream, std::int32_t* one) {
        EXPECT_EQ(cu_stream, nullptr);
        ++*one;
    };
    isthmus::detail::KeptWorkOf<std::decay_t<decltype(work)>, std::int32_t> kept(work, views);
    for (int turn = 1; turn <= 3; ++turn) {
        NativeOutcome outcome;
        kept.run(outcome);
        EXPECT_TRUE(outcome.ok());
        EXPECT_EQ(data, turn);
    }
}

}  // namespace
