// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of this room, nearly all of which include it anyway. Sources still name what they use;
// -Db_pch=false builds them without it.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
