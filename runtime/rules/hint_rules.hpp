// capabilities × kind × path → what a hint becomes on this machine. Pure.
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
    tell,    // the driver is told
    attach,  // to the stream (89=0)
    detach,  // back to the host (89=0)
    upload,  // the device's side of a staged buffer is brought up to date
};
struct HintPlan {
    HintAction action = HintAction::none;
    HintReport report;  // if it goes well
};

struct HintQuestion {
    MemoryKind kind = MemoryKind::unknown;
    LaunchPath path = LaunchPath::pass;
    bool own = true;  // the memory was made by this device
    bool to_host = false;
};
HintPlan plan_prefetch(const Capabilities& device, const HintQuestion& question);
// The path and the place of an advice do not matter.
HintPlan plan_advice(const Capabilities& device, MemoryKind kind, bool staged);

}  // namespace isthmus::rules
