// SPDX-License-Identifier: Apache-2.0
// Which components the library under test was built with (-Dcomponents=).
#pragma once

#include <gtest/gtest.h>

#include <string_view>

namespace test {

bool has_component(std::string_view component);

}  // namespace test

// First line of a test that uses this component, where the tests around it need none: NEEDS(graph). Skips it where the
// library was built without.
#define NEEDS(component) \
    if (!test::has_component(#component)) GTEST_SKIP() << "the library was built without its component '" #component "'"
