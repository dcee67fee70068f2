// GraphUses: counting who reads and who writes.
#include "graph_uses.hpp"

#include "kernel_argument.hpp"

#include <algorithm>
#include <functional>

namespace isthmus::inline v0::detail {
namespace {

// Who reads and who writes may come in any order: then both.
ArgumentUse use_of(const GraphUses::Entry& entry) noexcept {
    if (entry.writers == 0) return ArgumentUse::read;
    return entry.readers == 0 ? ArgumentUse::write : ArgumentUse::read_write;
}

}  // namespace

std::vector<GraphUses::Entry>::iterator GraphUses::place_of(const BufferState& buffer) {
    return std::lower_bound(
        entries_.begin(), entries_.end(), &buffer,
        [](const Entry& entry, const BufferState* sought) { return std::less<>()(entry.held.buffer.get(), sought); });
}

void GraphUses::add(BufferState& buffer, ArgumentUse use) {
    auto place = place_of(buffer);
    if (place == entries_.end() || place->held.buffer.get() != &buffer) {
        place = entries_.insert(place, Entry{RecordedUse(buffer.shared_from_this(), use)});
    }
    if (reads(use)) ++place->readers;
    if (writes(use)) ++place->writers;
    place->held.use = use_of(*place);
}

void GraphUses::remove(const BufferState& buffer, ArgumentUse use, std::vector<RecordedUse>& let_go) {
    const auto place = place_of(buffer);
    if (place == entries_.end() || place->held.buffer.get() != &buffer) return;
    if (reads(use)) --place->readers;
    if (writes(use)) --place->writers;
    if (place->readers == 0 && place->writers == 0) {
        let_go.push_back(std::move(place->held));
        entries_.erase(place);
    } else {
        place->held.use = use_of(*place);
    }
}

}  // namespace isthmus::inline v0::detail
