// SPDX-License-Identifier: Apache-2.0
// Precompiled header of the simulator's sources (-Db_pch=false builds without it).
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
