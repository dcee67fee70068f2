// SPDX-License-Identifier: Apache-2.0
// Applies the rules for loads and stores by both sides to a buffer's memory, and names uses in texts.
#include "sharing_rules.hpp"

#include "atomic_rules.hpp"
#include "composed.hpp"

namespace isthmus::rules {

AccessAnswer concurrent_view(const Capabilities& owner, MemoryKind kind, LaunchPath path, bool io_memory) {
    if (path == LaunchPath::stage) {
        return {Verdict::no,
                "the buffer is staged: the host and the device each have a side of their own, copied between launches",
                "ask allocate_shared for pinned memory (.kind = MemoryKind::pinned), which both sides use in place"};
    }
    AccessAnswer answer = shared_load_store(owner, {.kind = kind, .width_bytes = 8, .io_memory = io_memory});
    // The general remedy recommends a host view between launches. The caller asked for concurrent use, so pinned memory
    // is named first.
    const bool managed = kind == MemoryKind::managed || kind == MemoryKind::managed_pool;
    if (managed && !answer) answer.remedy = "use pinned memory, or a plain host view between launches";
    return answer;
}

void join(SpanUses& uses) {
    for (std::size_t at = uses.size(); at-- > 0;) {
        if (uses[at].span.begin >= uses[at].span.end) uses.erase(uses.begin() + at);
    }
    for (std::size_t at = 0; at < uses.size();) {
        const auto other = std::find_if(uses.begin() + at + 1, uses.end(),
                                        [&](const SpanUse& one) { return overlap(one.span, uses[at].span); });
        if (other == uses.end()) {
            ++at;
            continue;
        }
        SpanUse& grown = uses[at];
        grown.span = {std::min(grown.span.begin, other->span.begin), std::max(grown.span.end, other->span.end)};
        if (grown.use != other->use) grown.use = ArgumentUse::read_write;
        uses.erase(other);
        at = 0;  // the grown range may overlap entries that it did not overlap before
    }
}

Words text(const ByteSpan& span, std::string_view buffer) {
    if (span.whole()) return Words().append(buffer);
    return worded("bytes {} to {} of {}", span.begin, span.end - 1, buffer);
}

std::string_view purpose(ArgumentUse use) noexcept {
    if (use == ArgumentUse::concurrent) return "concurrent use";
    return writes(use) ? "writing" : "reading";
}

std::string_view deed(ArgumentUse use) noexcept {
    if (use == ArgumentUse::concurrent) return "uses concurrently";
    return writes(use) ? "writes" : "reads";
}

}  // namespace isthmus::rules
