// capabilities × declared use → plan. Pure, explainable in a sentence, overridable by SharedUse::kind.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace isthmus::rules {

struct AllocationPlan {
    MemoryKind kind = MemoryKind::pinned;       // what the device is given
    LaunchPath path = LaunchPath::pass;         // stage: `kind` is device memory, and the host side is host_kind
    MemoryKind host_kind = MemoryKind::pinned;  // what the host sees; = kind where path is not stage
    HostPlacement placement{};                  // of host memory; near_device where the row gains by it
    std::string_view reason;                    // one sentence, static storage
};
// Of a size that nobody says: large enough for everything that pays by the byte.
inline constexpr std::size_t any_size = std::numeric_limits<std::size_t>::max();

// The elements, for those that both sides update.
struct SharedWord {
    int width_bytes = 4;
    bool is_signed = false;
};

// Refuses (Code::unsupported, Code::not_accessible) a kind asked for that this machine cannot share, and updates by
// both sides that are atomic in no memory, or not in the kind asked for.
Result<AllocationPlan> plan_allocation(const Capabilities& device, const SharedUse& use, std::size_t bytes = any_size,
                                       const SharedWord& word = {});

// From so many bytes on the device's own memory, with a copy at each hand-over, is cheaper for this use than the way to
// host memory for every touch; nullopt: at no size. Whoever both reads and writes copies both ways: the larger of the
// two sizes.
std::optional<std::size_t> copy_pays_from_bytes(const Capabilities& device, const SharedUse& use);
bool copy_pays(const Capabilities& device, const SharedUse& use, std::size_t bytes);

// "32 KiB", "16 MiB": of whole KiB.
std::string size_text(std::size_t bytes);

}  // namespace isthmus::rules
