// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of left-out components: the form of a refusal.
#pragma once

#include "scenario.hpp"

#include <string>
#include <string_view>

namespace left_out {

using namespace isthmus;

// Code::unsupported, with the component in the message and the option in the remedy.
template <class T>
testing::AssertionResult refused_without(std::string_view component, const Result<T>& answer) {
    if (answer) return testing::AssertionFailure() << "it worked";
    const Error& error = answer.error();
    const std::string named = "'" + std::string(component) + "'";
    if (error.code() != Code::unsupported || error.message().find(named) == std::string_view::npos ||
        error.remedy().find("-Dcomponents=") == std::string_view::npos ||
        error.remedy().find(component) == std::string_view::npos) {
        return testing::AssertionFailure() << error.text();
    }
    return testing::AssertionSuccess();
}

}  // namespace left_out
