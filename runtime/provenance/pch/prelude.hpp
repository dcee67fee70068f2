// SPDX-License-Identifier: Apache-2.0
// Precompiled for the sources of this room, most of which include it anyway. Each source still includes what it uses;
// -Db_pch=false builds without this header.
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>
