// SPDX-License-Identifier: Apache-2.0
// Precompiled header of the command's sources (-Db_pch=false builds without it).
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>
