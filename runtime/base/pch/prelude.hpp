// SPDX-License-Identifier: Apache-2.0
// Precompiled for the sources of this room, most of which include it anyway. Each source still includes what it uses;
// -Db_pch=false builds without this header.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
