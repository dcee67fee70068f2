// SPDX-License-Identifier: Apache-2.0
// Precompiled header: the headers that nearly all sources of this room include. Each source still includes what it
// uses, so that -Db_pch=false builds it without this header.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>
