// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of this room, nearly all of which include it anyway. Sources still name what they use;
// -Db_pch=false builds them without it.
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "operation.hpp"
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
