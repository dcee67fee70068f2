// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of the command (-Db_pch=false builds them without).
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>
