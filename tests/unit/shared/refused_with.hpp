// SPDX-License-Identifier: Apache-2.0
// Which entry of the error catalogue a call returned.
#pragma once

#include <isthmus/result.hpp>

#include <gtest/gtest.h>

namespace isthmus::testing {

template <const auto& Entry, class T>
::testing::AssertionResult refused_with(const Result<T>& result, Code code = static_cast<Code>(Entry.code)) {
    if (result) return ::testing::AssertionFailure() << "not refused";
    const Error& error = result.error();
    if (error.id() == Entry.id && error.code() == code) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << error.id() << ": " << error.text();
}

}  // namespace isthmus::testing
