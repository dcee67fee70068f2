// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of this room, which nearly all include it anyway. Sources name what they use all the
// same; -Db_pch=false builds them without.
#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
