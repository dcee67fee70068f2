// SPDX-License-Identifier: Apache-2.0
// Writes the generated parts of docs/memory.md: the memory for each declared use, and which agent may access which
// kind, for each capability row. The rest of the page is written by hand and is not changed.
#include "caps_sections.hpp"

#include <allocation_policy.hpp>
#include <launch_path.hpp>

#include <utility>

namespace isthmus::tools {

namespace {

std::string text(std::string_view view) {
    return std::string(view);
}

// The choice for the smallest buffer and, where it differs, for larger ones.
std::string choices(const Capabilities& device, const SharedUse& use) {
    const auto small = rules::plan_allocation(device, use, 1);
    const auto large = rules::plan_allocation(device, use);
    if (!small || !large) return "refused: " + text((small ? large : small).error().message());
    const auto from = rules::copy_pays_from_bytes(device, use);
    if (!from || choice_text(*small) == choice_text(*large)) return choice_text(*large);
    return choice_text(*small) + "; from " + rules::size_text(*from) + " on " + choice_text(*large);
}

Section uses_section(const std::vector<Column>& rows) {
    Section section{"Which memory a declared use gets",
                    "What `allocate_shared` chooses for each declared use. \"staged\": pinned memory for the host and "
                    "device memory, copied when the other side is newer, at sizes where that is faster. The uses:\n",
                    {"machine"}};
    for (const DeclaredUse& each : declared_uses()) {
        section.header.push_back(text(each.what));
        section.text += "\n* " + text(each.what) + ": " + text(each.declared);
    }
    for (const Column& row : rows) {
        std::vector<std::string> cells = {row.title};
        for (const DeclaredUse& each : declared_uses()) {
            cells.push_back(choices(row.device->capabilities, each.use));
        }
        section.rows.push_back(std::move(cells));
    }
    return section;
}

// Lists each reason that Buffer::explain() gives for these uses, with the machines that give it.
Section reasons_section(const std::vector<Column>& rows) {
    Section section{"Why", "What `Buffer::explain()` says about these choices.", {"choice", "because", "machines"}};
    const auto tell = [&](const Column& row, const rules::AllocationPlan& plan) {
        const std::string chosen = choice_text(plan);
        const std::string because = text(plan.reason);
        for (auto& line : section.rows) {
            if (line[0] != chosen || line[1] != because) continue;
            if (line[2].find(row.title) == std::string::npos) line[2] += ", " + row.title;
            return;
        }
        section.rows.push_back({chosen, because, row.title});
    };
    for (const DeclaredUse& each : declared_uses()) {
        for (const Column& row : rows) {
            for (const std::size_t bytes : {std::size_t{1}, rules::any_size}) {
                const auto plan = rules::plan_allocation(row.device->capabilities, each.use, bytes);
                if (plan) tell(row, *plan);
            }
        }
    }
    return section;
}

// "both, pass". A kind without evidence has no agent.
std::string who_and_path(const Capabilities& c, MemoryKind kind) {
    if (rules::launch_path(c, kind).path == LaunchPath::refuse) return "not available";
    std::string agent = who(c, kind);
    if (agent == "ask the range" && kind != MemoryKind::vmm) agent = "not verified";
    return agent + ", " + path(c, kind);
}

Section kinds_section(const std::vector<Column>& rows) {
    Section section{
        "Who may touch which kind",
        "The number of a kind stands behind its name. A cell says which side may touch the memory, and what a launch "
        "does with it. \"pass\": uses it in place; \"prefetch\": the same, with a prefetch first where the host "
        "opened it; \"attach\": attaches it to the stream and back, because only one side at a time may use it; "
        "\"stage\": uses a copy. \"by turns\": one side at a time. \"ask the range\": access is granted per "
        "mapping. Reasons: [access.md](access.md).",
        {"kind"}};
    for (const Column& row : rows) section.header.push_back(row.title);
    for (int each = 0; each < memory_kind_count; ++each) {
        const auto kind = static_cast<MemoryKind>(each);
        std::vector<std::string> cells = {text(name(kind)) + " (" + std::to_string(each) + ")"};
        for (const Column& row : rows) cells.push_back(who_and_path(row.device->capabilities, kind));
        section.rows.push_back(std::move(cells));
    }
    return section;
}

}  // namespace

std::string memory_page(std::string_view page) {
    const std::vector<MachineView> views = known_machine_views();
    const std::vector<Column> rows = representatives(columns_of(views));
    const std::vector<std::pair<std::string_view, Section>> parts = {
        {"uses", uses_section(rows)},
        {"reasons", reasons_section(rows)},
        {"kinds", kinds_section(rows)},
    };
    return with_generated(page, parts);
}

}  // namespace isthmus::tools
