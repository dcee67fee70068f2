// SPDX-License-Identifier: Apache-2.0
// capabilities × declared use → plan. Pure. It reads axes, capability bits and numbers of the capability table, never a
// row's name. Each plan is explained in a sentence, which ends with the origin of what decided; SharedUse::kind
// overrides it.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>
#include <platform/capability_table.hpp>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::rules {

struct AllocationPlan {
    MemoryKind kind = MemoryKind::pinned;       // the memory that the device uses
    LaunchPath path = LaunchPath::pass;         // stage: `kind` is device memory, and the host uses host_kind
    MemoryKind host_kind = MemoryKind::pinned;  // the memory that the host uses; equals `kind` unless path is stage
    HostPlacement placement{};                  // of host memory; near_device where the machine gains by it
    std::string_view reason;                    // one sentence, static storage
};
// For an unknown size: large enough for everything whose benefit grows with the bytes.
inline constexpr std::size_t any_size = std::numeric_limits<std::size_t>::max();

// The elements of a buffer that both sides update.
struct SharedWord {
    int width_bytes = 4;
    bool is_signed = false;
};

// Refuses (Code::unsupported, Code::not_accessible) a requested kind that this machine cannot share, and updates by
// both sides that are atomic in no memory, or not in the requested kind.
Result<AllocationPlan> plan_allocation(const Capabilities& device, const SharedUse& use, std::size_t bytes = any_size,
                                       const SharedWord& word = {});

// The plan instead of one with memory that the policy would register and that the driver refused to register, although
// HOST_REGISTER (99) says that it does (reported of GB10): ordinary memory in the same place. nullopt: the plan has no
// such memory, the caller asked for this kind, or the device or the updates need it registered.
std::optional<AllocationPlan> without_registering(const Capabilities& device, const SharedUse& use,
                                                  const AllocationPlan& plan, const SharedWord& word = {});
// Whether an error of allocating registered memory says that it cannot be registered; not that memory is short, that
// the device is lost or that the call came at the wrong time.
bool cannot_register(Code code) noexcept;

// The size in bytes from which, for this use and its number of passes, device memory with a copy at each hand-over is
// cheaper than accesses to host memory, with its origin; nullptr: at no size. A device that both reads and writes needs
// copies both ways: the border with the larger size of the two. Valid for good.
const platform::CopyBorder* copy_border(const Capabilities& device, const SharedUse& use);
// Its size alone.
std::optional<std::size_t> copy_pays_from_bytes(const Capabilities& device, const SharedUse& use);
bool copy_pays(const Capabilities& device, const SharedUse& use, std::size_t bytes);

// The sizes at which the choice for this use may change, ascending, without 0: those of the profile, otherwise the
// border.
std::vector<std::size_t> sizes_that_decide(const Capabilities& device, const SharedUse& use);

// "32 KiB", "16 MiB"; rounded to a tenth where it is no whole number of them: "3.4 MiB".
std::string size_text(std::size_t bytes);
// "assumed", "measured on a machine of this class: H200": for texts.
std::string origin_text(platform::ValueOrigin origin, std::string_view source);

}  // namespace isthmus::rules
