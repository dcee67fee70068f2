// SPDX-License-Identifier: Apache-2.0
// Writes the generated parts of docs/sharing.md: where CPU and GPU may update the same word, and why not elsewhere.
#include "caps_sections.hpp"

#include <atomic_rules.hpp>

#include <algorithm>
#include <utility>

namespace isthmus::tools {

namespace {

std::string text(std::string_view view) {
    return std::string(view);
}

constexpr std::array shared_kinds = {MemoryKind::host,           MemoryKind::host_numa, MemoryKind::pinned,
                                     MemoryKind::registered,     MemoryKind::managed,   MemoryKind::managed_pool,
                                     MemoryKind::write_combined, MemoryKind::device,    MemoryKind::pool};

std::string in_cell(const Capabilities& c, MemoryKind kind) {
    std::string updates = atomics(c, kind);
    if (updates != "no") return updates;
    if (rules::shared_load_store(c, kind, 8)) return "loads and stores";
    return rules::kernel_atomic(c, {.kind = kind}, true) ? "kernels alone" : "no";
}

Section updates_section(const std::vector<Column>& rows) {
    Section section{"Where CPU and GPU may update one word",
                    "\"yes\": every update by both sides. \"some\": what the driver reports, per operation, width "
                    "and sign. \"loads and stores\": no updates, but each side sees the other's stores. \"kernels "
                    "alone\": updates by the threads of one GPU, invisible to the CPU.",
                    {"memory"}};
    for (const Column& row : rows) section.header.push_back(row.title);
    for (const MemoryKind kind : shared_kinds) {
        std::vector<std::string> cells = {text(name(kind))};
        for (const Column& row : rows) cells.push_back(in_cell(row.device->capabilities, kind));
        section.rows.push_back(std::move(cells));
    }
    return section;
}

// Lists each reason once, with its memory kinds and machines.
Section reasons_section(const std::vector<Column>& rows) {
    Section section{"Why",
                    "What an error says about an addition to an unsigned 4-byte word, and what works there.",
                    {"memory", "because", "what works instead", "machines"}};
    for (const MemoryKind kind : shared_kinds) {
        const std::size_t first = section.rows.size();
        for (const Column& row : rows) {
            const AccessAnswer answer = rules::shared_atomic(row.device->capabilities, {.kind = kind});
            bool known = false;
            for (std::size_t line = first; line < section.rows.size(); ++line) {
                if (section.rows[line][1] != answer.reason) continue;
                section.rows[line][3] += ", " + row.title;
                known = true;
            }
            if (known) continue;
            section.rows.push_back(
                {text(name(kind)), text(answer.reason), answer ? "it is granted" : text(answer.remedy), row.title});
        }
    }
    // Kinds with equal answers on the same machines share a row.
    Section grouped{section.title, section.text, section.header};
    for (const auto& row : section.rows) {
        const auto alike = std::find_if(grouped.rows.begin(), grouped.rows.end(), [&](const auto& known) {
            return std::equal(known.begin() + 1, known.end(), row.begin() + 1, row.end());
        });
        if (alike == grouped.rows.end()) {
            grouped.rows.push_back(row);
        } else {
            (*alike)[0] += ", " + row[0];
        }
    }
    return grouped;
}

}  // namespace

std::string sharing_page(std::string_view page) {
    const std::vector<MachineView> views = known_machine_views();
    const std::vector<Column> rows = representatives(columns_of(views));
    return with_generated(page, {{"updates", updates_section(rows)}, {"refusals", reasons_section(rows)}}, 3);
}

}  // namespace isthmus::tools
