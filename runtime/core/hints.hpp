// SPDX-License-Identifier: Apache-2.0
// HintCounters: counts the outcomes of a runtime's hints.
#pragma once

#include <isthmus/hints.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Thread-safe.
class HintCounters {
public:
    HintReport count(const HintReport& report) noexcept {
        counts_[static_cast<std::size_t>(report.outcome)].fetch_add(1, std::memory_order_relaxed);
        return report;
    }
    HintCounts counts() const noexcept { return {of(0), of(1), of(2)}; }

private:
    std::uint64_t of(std::size_t outcome) const noexcept { return counts_[outcome].load(std::memory_order_relaxed); }
    std::array<std::atomic<std::uint64_t>, 3> counts_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
