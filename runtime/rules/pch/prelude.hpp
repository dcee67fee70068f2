// SPDX-License-Identifier: Apache-2.0
// Precompiled for the sources of this room, most of which include it anyway. Each source still includes what it uses;
// -Db_pch=false builds without this header.
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
