// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of this room, nearly all of which include it anyway. Sources still name what they use;
// -Db_pch=false builds them without it.
#include "device_session.hpp"
#include "order_book.hpp"
#include "ledger.hpp"

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
