// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of this room, nearly all of which include it anyway. Sources still name what they use;
// -Db_pch=false builds them without it.
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
