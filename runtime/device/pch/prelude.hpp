// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of this room, which nearly all include it anyway. Sources name what they use all the
// same; -Db_pch=false builds them without.
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
