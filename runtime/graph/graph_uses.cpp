// SPDX-License-Identifier: Apache-2.0
// GraphUses: counts readers and writers.
#include "graph_uses.hpp"

#include "kernel_argument.hpp"

#include <algorithm>
#include <functional>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Readers and writers may run in any order: read_write. Concurrent only without any other use.
ArgumentUse use_of(const GraphUses::Entry& entry) noexcept {
    if (entry.concurrents > 0) {
        return entry.readers + entry.writers == 0 ? ArgumentUse::concurrent : ArgumentUse::read_write;
    }
    if (entry.writers == 0) return ArgumentUse::read;
    return entry.readers == 0 ? ArgumentUse::write : ArgumentUse::read_write;
}

void count(GraphUses::Entry& entry, ArgumentUse use, std::ptrdiff_t by) noexcept {
    const auto step = static_cast<std::size_t>(by);  // −1 wraps around, as the sum does
    if (use == ArgumentUse::concurrent) {
        entry.concurrents += step;
        return;
    }
    if (reads(use)) entry.readers += step;
    if (writes(use)) entry.writers += step;
}

}  // namespace

std::vector<GraphUses::Entry>::iterator GraphUses::place_of(const BufferState& buffer) {
    return std::lower_bound(
        entries_.begin(), entries_.end(), &buffer,
        [](const Entry& entry, const BufferState* sought) { return std::less<>()(entry.held.buffer.get(), sought); });
}

void GraphUses::add(const std::shared_ptr<BufferState>& buffer, ArgumentUse use) {
    auto place = place_of(*buffer);
    if (place == entries_.end() || place->held.buffer != buffer) {
        place = entries_.insert(place, Entry{RecordedUse(buffer, use)});
    }
    count(*place, use, 1);
    place->held.use = use_of(*place);
}

void GraphUses::remove(const BufferState& buffer, ArgumentUse use, std::vector<RecordedUse>& let_go) {
    const auto place = place_of(buffer);
    if (place == entries_.end() || place->held.buffer.get() != &buffer) return;
    count(*place, use, -1);
    if (place->readers + place->writers + place->concurrents == 0) {
        let_go.push_back(std::move(place->held));
        entries_.erase(place);
    } else {
        place->held.use = use_of(*place);
    }
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
