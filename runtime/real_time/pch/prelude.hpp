// SPDX-License-Identifier: Apache-2.0
// Compiled once for the sources of this room, which nearly all include it anyway. Sources name what they use all the
// same; -Db_pch=false builds them without.
#include <isthmus/device.hpp>
#include <isthmus/result.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
