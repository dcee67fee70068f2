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

// One use more of a kind that there is already (`least` 1, `by` 1), or less of one that then still is (2, −1): the
// combined use stays as it is. false: nothing was done.
bool recounted(GraphUses::Entry& entry, ArgumentUse use, std::size_t least, std::ptrdiff_t by) noexcept {
    const auto step = static_cast<std::size_t>(by);  // −1 wraps around, as the sum does
    if (use == ArgumentUse::concurrent) {
        if (entry.concurrents < least) return false;
        entry.concurrents += step;
        return true;
    }
    if ((reads(use) && entry.readers < least) || (writes(use) && entry.writers < least)) return false;
    if (reads(use)) entry.readers += step;
    if (writes(use)) entry.writers += step;
    return true;
}

}  // namespace

// A graph's nodes often get the same buffer one after the other: place_of() looks first where the last one was found.
GraphUses::Entry* GraphUses::find(const BufferState& buffer, std::size_t& last) noexcept {
    const auto place = std::lower_bound(
        entries_.begin(), entries_.end(), &buffer,
        [](const Entry& entry, const BufferState* sought) { return std::less<>()(entry.held.buffer.get(), sought); });
    last = static_cast<std::size_t>(place - entries_.begin());
    return entries_.data() + last;
}

void GraphUses::add(const std::shared_ptr<BufferState>& buffer, ArgumentUse use) {
    Entry* place = place_of(*buffer, added_);
    if (place == entries_.data() + entries_.size() || place->held.buffer != buffer) {
        const auto before = entries_.begin() + (place - entries_.data());
        place = &*entries_.insert(before, Entry{RecordedUse(buffer, use)});
    } else if (recounted(*place, use, 1, 1)) {
        return;
    }
    count(*place, use, 1);
    place->held.use = use_of(*place);
}

void GraphUses::remove(const BufferState& buffer, ArgumentUse use, LetGo& let_go) {
    Entry* const place = place_of(buffer, removed_);
    if (place == entries_.data() + entries_.size() || place->held.buffer.get() != &buffer) return;
    if (recounted(*place, use, 2, -1)) return;
    count(*place, use, -1);
    if (place->readers + place->writers + place->concurrents == 0) {
        let_go.push_back(std::move(place->held));
        entries_.erase(entries_.begin() + (place - entries_.data()));
    } else {
        place->held.use = use_of(*place);
    }
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
