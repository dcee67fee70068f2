// SPDX-License-Identifier: Apache-2.0
// Precompiled for the sources of this room, most of which include it anyway. Each source still includes what it uses;
// -Db_pch=false builds without this header.
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
