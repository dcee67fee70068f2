// SPDX-License-Identifier: Apache-2.0
// Hints by ranges, which are split where a hint begins and ends.
#include "regions.hpp"

#include <iterator>

namespace isthmus::sim {

namespace {
constexpr std::size_t page_bytes = 4096;
}

void HintMap::split(std::size_t offset_bytes) {
    const auto after = from_.upper_bound(offset_bytes);
    from_.emplace(offset_bytes, std::prev(after)->second);
}

void HintMap::apply(std::size_t offset_bytes, std::size_t bytes, const std::function<void(Hints&)>& change) {
    const std::size_t begin = offset_bytes / page_bytes * page_bytes;
    const std::size_t end = (offset_bytes + bytes + page_bytes - 1) / page_bytes * page_bytes;
    split(begin);
    split(end);
    for (auto range = from_.find(begin); range->first != end; ++range) change(range->second);
}

void HintMap::visit(std::size_t offset_bytes, std::size_t bytes, const std::function<void(const Hints&)>& look) const {
    for (auto range = std::prev(from_.upper_bound(offset_bytes));
         range != from_.end() && range->first < offset_bytes + bytes; ++range) {
        look(range->second);
    }
}

}  // namespace isthmus::sim
