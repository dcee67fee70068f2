// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of this room, which nearly all include it anyway. Sources name what they use all the
// same; -Db_pch=false builds them without.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
