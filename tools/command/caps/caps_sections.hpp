// SPDX-License-Identifier: Apache-2.0
// The tables of `isthmus caps` and docs/machines.md.
#pragma once

#include "caps_render.hpp"
#include "text/table_text.hpp"

#include <allocation_policy.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/profile.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools {

// A device as one column of a comparison.
struct Column {
    std::string title;  // "orin", "station 1"
    const MachineView* machine = nullptr;
    const DeviceView* device = nullptr;
};
// One column for each GPU of these machines. The CPU devices are the same everywhere and share one column, the first.
std::vector<Column> columns_of(const std::vector<MachineView>& views);
// One column for each capability row, a second one for discrete, with phase-guarded managed memory, and one for c2c
// with hidden memory.
std::vector<Column> representatives(const std::vector<Column>& columns);

// Whether all answers for the two devices are equal.
bool behave_alike(const Capabilities& a, const Capabilities& b);

// The kinds that the tables list: those that a user can allocate or register.
inline constexpr std::array<MemoryKind, 8> listed_kinds = {
    MemoryKind::host,    MemoryKind::pinned, MemoryKind::registered, MemoryKind::write_combined,
    MemoryKind::managed, MemoryKind::device, MemoryKind::pool,       MemoryKind::vmm};

std::string who(const Capabilities& capabilities, MemoryKind kind);      // "CPU", "GPU", "both", "by turns", …
std::string atomics(const Capabilities& capabilities, MemoryKind kind);  // "yes", "no", "some", "?"
std::string path(const Capabilities& capabilities, MemoryKind kind);
std::string path_reason(const Capabilities& capabilities, MemoryKind kind);

// What findings of `isthmus litmus` refuse for this kind, and what the trials observed; empty without such findings.
struct Narrowing {
    std::string refused;
    std::string reason;
    std::string remedy;
};
std::vector<Narrowing> narrowings(const Capabilities& capabilities, MemoryKind kind);

Section axes_section(const std::vector<Column>& columns);
Section features_section(const std::vector<Column>& columns);
Section who_section(const std::vector<Column>& columns);
Section atomics_section(const std::vector<Column>& columns);
// Has no rows where no finding refuses anything.
Section trials_section(const std::vector<Column>& columns);
Section paths_section(const std::vector<Column>& columns);
// Each launch path with its reason, for one machine.
Section path_reasons_section(const std::vector<Column>& columns);
// Every available kind, by agent: the verdict, the deciding fact, and what works instead.
Section access_section(const Column& column);
// What one GPU may do with memory of another, by the kind of connection between them.
Section peers_section(const Column& column);
Section policy_section(const std::vector<Column>& columns);

// Typical uses of a shared buffer, for tables.
struct DeclaredUse {
    std::string_view what;      // "frames in"
    std::string_view declared;  // as a program writes it, in Markdown
    SharedUse use;
};
inline constexpr std::size_t typical_uses = 6;  // the first of declared_uses(), the last of which is of one side alone
const std::array<DeclaredUse, typical_uses + 1>& declared_uses();
// "device, staged", "host, near the device"
std::string choice_text(const rules::AllocationPlan& plan);
// The choices for this use from one size to the next, each with the size from which it holds; the first from 0 on.
struct ChoiceBySize {
    std::size_t from_bytes = 0;
    rules::AllocationPlan plan;
};
std::vector<ChoiceBySize> choices_by_size(const Capabilities& device, const SharedUse& use);
// "from 256 KiB on, for 16 passes or more (assumed)"; "measured here on 2026-11-24"; empty: no copy pays.
std::string border_text(const Capabilities& device, const SharedUse& use);

}  // namespace isthmus::tools
