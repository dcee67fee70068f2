// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of the simulator (-Db_pch=false builds them without).
#include "../access.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>
