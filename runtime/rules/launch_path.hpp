// SPDX-License-Identifier: Apache-2.0
// capabilities × kind → what a launch does with an argument of that kind. Pure. Looked up once, when a device is
// opened.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/sharing_use.hpp>

#include <array>
#include <string_view>

namespace isthmus::rules {

struct PathAnswer {
    LaunchPath path = LaunchPath::refuse;
    std::string_view reason;  // static storage
    bool once = false;        // prefetch: before the first use only
};
PathAnswer launch_path(const Capabilities& device, MemoryKind kind);

}  // namespace isthmus::rules
