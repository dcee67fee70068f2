// SPDX-License-Identifier: Apache-2.0
// capabilities × kind × path → what the runtime does with a hint on this machine. Pure.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/hints.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstdint>
#include <string_view>

namespace isthmus::rules {

enum class HintAction : std::uint8_t {
    none,    // `report` says why
    tell,    // pass it to the driver
    attach,  // to the stream (89=0)
    detach,  // back to the host (89=0)
    upload,  // bring the device's side of a staged buffer up to date
};
struct HintPlan {
    HintAction action = HintAction::none;
    HintReport report;  // if the action succeeds
};

struct HintQuestion {
    MemoryKind kind = MemoryKind::unknown;
    LaunchPath path = LaunchPath::pass;
    bool own = true;  // this device owns the memory
    bool to_host = false;
};
HintPlan plan_prefetch(const Capabilities& device, const HintQuestion& question);
// For advice, the path (but for `staged`) and the place do not matter.
HintPlan plan_advice(const Capabilities& device, MemoryKind kind, bool staged);
// For asking which advice is in force. HintAction::tell: ask the driver.
HintPlan plan_advice_query(const Capabilities& device, MemoryKind kind, bool staged);
// For the end of the content.
// `shares_pages`: with other buffers, whose content a discard of its pages might end.
HintPlan plan_discard(const Capabilities& device, MemoryKind kind, bool staged, bool shares_pages = false);

}  // namespace isthmus::rules
