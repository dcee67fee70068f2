// SPDX-License-Identifier: Apache-2.0
// Selects the trials of a device by the rules that guard the same memory.
#include "plan.hpp"

#include <atomic_rules.hpp>

#include <algorithm>
#include <iterator>

namespace isthmus::tools::litmus {

std::vector<Row> plan_rows(const Capabilities& device, const Request& request, std::vector<std::string>& left_out) {
    // Ignores earlier findings: a new finding must come from the machine.
    Capabilities fresh = device;
    fresh.disordered_kinds = fresh.torn_kinds = fresh.lossy_kinds = 0;
    std::vector<MemoryKind> kinds = request.kinds;
    if (kinds.empty()) kinds.assign(std::begin(tried_kinds), std::end(tried_kinds));
    std::vector<Row> rows;
    for (const MemoryKind kind : kinds) {
        const AccessAnswer both = rules::shared_load_store(fresh, kind, 4);
        if (!both) {
            left_out.push_back(std::string(name(kind)) + ": " + std::string(both.reason));
            continue;
        }
        for (int code = 0; code < litmus_shape_count; ++code) {
            const auto shape = static_cast<LitmusShape>(code);
            const auto& wanted = request.shapes;
            if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), shape) == wanted.end()) continue;
            Row row;
            row.kind = kind;
            row.shape = shape;
            if (!request.mutant.empty()) {
                row.role = Role::mutant;
            } else if (shape == LitmusShape::lost_updates && !rules::shared_atomic(fresh, {.kind = kind})) {
                row.role = Role::refused;
            } else if (words_of(shape) == 4) {
                const AccessAnswer whole = rules::shared_load_store(
                    fresh, {.kind = kind, .width_bytes = 16, .host_has_16 = request.host_has_16});
                if (!whole) {
                    left_out.push_back(std::string(name(kind)) + ", " + std::string(name(shape)) + ": " +
                                       std::string(whole.reason));
                    continue;
                }
            }
            rows.push_back(row);
        }
    }
    return rows;
}

std::uint64_t control_instances(std::uint64_t of_test) noexcept {
    return std::clamp<std::uint64_t>(of_test / 4, 1, std::uint64_t{1} << 24);
}

}  // namespace isthmus::tools::litmus
