// SPDX-License-Identifier: Apache-2.0
// The tables that `isthmus caps` and docs/machines.md are made of.
#pragma once

#include "caps_render.hpp"
#include "text/table_text.hpp"

#include <isthmus/memory_kind.hpp>

#include <array>

namespace isthmus::tools {

// A device as one column of a comparison.
struct Column {
    std::string title;  // "orin", "station 1"
    const MachineView* machine = nullptr;
    const DeviceView* device = nullptr;
};
// Every device of these machines but their CPU devices, which are the same everywhere: one stands for all, first.
std::vector<Column> columns_of(const std::vector<MachineView>& views);
// One machine for each way of behaving: the rows, and discrete once more where managed memory is phase-guarded.
std::vector<Column> representatives(const std::vector<Column>& columns);

// Whether two devices of one machine answer every question alike.
bool behave_alike(const Capabilities& a, const Capabilities& b);

// The kinds that the tables list: how a user can come by memory.
inline constexpr std::array<MemoryKind, 8> listed_kinds = {
    MemoryKind::host,    MemoryKind::pinned, MemoryKind::registered, MemoryKind::write_combined,
    MemoryKind::managed, MemoryKind::device, MemoryKind::pool,       MemoryKind::vmm};

std::string who(const Capabilities& capabilities, MemoryKind kind);      // "CPU", "GPU", "both", "by turns", …
std::string atomics(const Capabilities& capabilities, MemoryKind kind);  // "yes", "no", "some", "?"
std::string path(const Capabilities& capabilities, MemoryKind kind);
std::string path_reason(const Capabilities& capabilities, MemoryKind kind);

// What trials (`isthmus litmus`) took away from this kind, and what they saw; empty where nothing.
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
// Without rows where no trial took anything away.
Section trials_section(const std::vector<Column>& columns);
Section paths_section(const std::vector<Column>& columns);
// Each path with its reason, for one machine.
Section path_reasons_section(const std::vector<Column>& columns);
// Every kind that may occur, by agent: the verdict, which fact decided, and what works instead.
Section access_section(const Column& column);
// What one GPU may do with memory of another one, by what is switched between them.
Section peers_section(const Column& column);
Section policy_section(const std::vector<Column>& columns);

}  // namespace isthmus::tools
