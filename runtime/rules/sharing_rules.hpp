// SPDX-License-Identifier: Apache-2.0
// Which uses of the same bytes may coexist, and where the host may access memory while a device does. Pure.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/sharing_use.hpp>

#include "composed.hpp"
#include "few.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>

namespace isthmus::rules {

constexpr bool reads(ArgumentUse use) noexcept {
    return use == ArgumentUse::read || use == ArgumentUse::read_write || use == ArgumentUse::concurrent;
}
constexpr bool writes(ArgumentUse use) noexcept {
    return use == ArgumentUse::write || use == ArgumentUse::read_write || use == ArgumentUse::concurrent;
}

// May two uses of the same bytes coexist? Readers with readers, and concurrent uses with concurrent uses, because those
// are restricted to atomics. A plain reader beside a concurrent use could read half of a value.
constexpr bool together(ArgumentUse one, ArgumentUse other) noexcept {
    const bool both_read = one == ArgumentUse::read && other == ArgumentUse::read;
    return both_read || (one == ArgumentUse::concurrent && other == ArgumentUse::concurrent);
}

// A range of bytes of a buffer in use; by default all bytes.
struct ByteSpan {
    static constexpr std::size_t to_the_end = std::numeric_limits<std::size_t>::max();
    std::size_t begin = 0;
    std::size_t end = to_the_end;

    constexpr bool whole() const noexcept { return begin == 0 && end == to_the_end; }
    friend constexpr bool operator==(const ByteSpan&, const ByteSpan&) noexcept = default;
};
constexpr bool overlap(const ByteSpan& one, const ByteSpan& other) noexcept {
    return std::max(one.begin, other.begin) < std::min(one.end, other.end);
}

// One use of some bytes.
struct SpanUse {
    ByteSpan span;
    ArgumentUse use = ArgumentUse::read;
};
// Merges overlapping uses, so that opening them one after the other does not conflict with itself. Uses of no byte are
// dropped.
using SpanUses = detail::Few<SpanUse, 8>;
void join(SpanUses& uses);

// May the CPU access memory of this kind, owned by a device with these capabilities, while that device accesses it?
// `path`: what a launch of the owner does with the memory. `io_memory`: it is device memory (IOMEMORY).
AccessAnswer concurrent_view(const Capabilities& owner, MemoryKind kind, LaunchPath path, bool io_memory = false);
// Does such memory belong to one side at a time, as a whole, so that parts are not independent and uses exclude each
// other?
constexpr bool by_turns(LaunchPath path) noexcept {
    return path == LaunchPath::stage || path == LaunchPath::attach;
}
// The claim for `use` of a part. Staged and attached memory is exclusive. A write of only a part keeps the other bytes,
// so it claims reading too.
constexpr ArgumentUse claimed_use(ArgumentUse use, LaunchPath path, const ByteSpan& span = {}) noexcept {
    if (!by_turns(path)) return use;
    const bool all = use != ArgumentUse::concurrent && (use != ArgumentUse::write || span.whole());
    return all ? use : ArgumentUse::read_write;
}
constexpr ByteSpan claimed_span(LaunchPath path, const ByteSpan& span) noexcept {
    return by_turns(path) && span.begin < span.end ? ByteSpan{} : span;
}
// What a native scope keeps others away from. Memory that belongs to one side at a time is the scope's alone; reading
// scopes of other memory go beside readers.
constexpr ArgumentUse scope_use(ArgumentUse use, LaunchPath path) noexcept {
    return by_turns(path) || writes(use) ? ArgumentUse::read_write : ArgumentUse::read;
}
// The claim of a graph, which claims whole buffers.
constexpr ArgumentUse recorded_use(ArgumentUse use, const ByteSpan& span) noexcept {
    return use == ArgumentUse::write && !span.whole() ? ArgumentUse::read_write : use;
}

// "reading", "writing", "concurrent use": the purpose for which memory is open.
std::string_view purpose(ArgumentUse use) noexcept;
// "reads", "writes", "uses concurrently": what an operation does with memory.
std::string_view deed(ArgumentUse use) noexcept;
// "a buffer", or "bytes 0 to 99 of a buffer".
Words text(const ByteSpan& span, std::string_view buffer);

}  // namespace isthmus::rules
