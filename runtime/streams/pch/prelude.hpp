// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of this room, which nearly all include it anyway. Sources name what they use all the
// same; -Db_pch=false builds them without.
#include "device_state.hpp"
#include "stream_state.hpp"

#include <isthmus/stream.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>
