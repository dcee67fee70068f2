// SPDX-License-Identifier: Apache-2.0
// Precompiled header: the headers that nearly all sources of this room include. Each source still includes what it
// uses, so that -Db_pch=false builds it without this header.
#include <isthmus/capability.hpp>
#include <isthmus/result.hpp>
#include <platform/driver.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>
