// SPDX-License-Identifier: Apache-2.0
// Which components the library under test was built with (-Dcomponents=).
#pragma once

#include <gtest/gtest.h>

#include <string_view>

namespace test {

bool has_component(std::string_view component);

}  // namespace test

// NEEDS(graph): first line of a test that needs a component which the rest of its file does not. Skips the test where
// the library was built without it.
#define NEEDS(component) \
    if (!test::has_component(#component)) GTEST_SKIP() << "the library was built without its component '" #component "'"
