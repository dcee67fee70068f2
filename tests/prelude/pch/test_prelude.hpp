// SPDX-License-Identifier: Apache-2.0
// What nearly every test includes, precompiled once per build and used by all of them (see meson.build). Each test
// still includes what it uses: builds with -Db_pch=false do without, and one leg of tools/check is such a build.
// Assembly and C of the same targets get it too, and it is empty for them.
#ifdef __cplusplus
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#ifdef ISTHMUS_TEST_PUBLIC
#include <isthmus/isthmus.hpp>
#endif
#endif
