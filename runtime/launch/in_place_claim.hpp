// SPDX-License-Identifier: Apache-2.0
// Claims of buffers that the host may view and that are used in place: what the short ways of launches and of work of
// other code have in common. Inline, because a driver call fills the caches.
#pragma once

#include <isthmus/detail/host_fence.hpp>

#include "buffer_state.hpp"
#include "device_state.hpp"
#include "sharing_rules.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct InPlaceClaim {
    BufferState* buffer;
    ArgumentUse use;
    static constexpr std::size_t most = 64;  // of one operation
};

// true: the host may view the buffer, and it is used in place: memory of the launch device that needs no judgement,
// copy, attachment, prefetch or order. Once true, it stays true.
inline bool used_in_place(const BufferState& buffer, ArgumentUse use, const DeviceState& device) noexcept {
    const StorageFacts& facts = *buffer.memory.operator->();
    return buffer.device.get() == &device && facts.host != nullptr && facts.path == LaunchPath::pass &&
           facts.bytes > 0 && !facts.of_graph && !facts.in_several && device.reaches(facts.kind) &&
           !(facts.read_only && rules::writes(use)) && use != ArgumentUse::concurrent && !buffer.ordered();
}

// Whether it can be claimed in place; asked before anything is claimed. What was claimed so before stays so.
inline bool claimable(const BufferState& buffer, ArgumentUse use, const StreamState& stream,
                      const DeviceState& device) noexcept {
    if (buffer.uses_again(stream, use)) return true;
    return used_in_place(buffer, use, device) && !buffer.views.seen().any_open();
}

// The following functions expect the stream's lock.
// true: the preceding operations use no other viewable buffers than these, so no fence is owed.
inline bool stays(const StreamState& stream, const InPlaceClaim* claims, std::size_t count) noexcept {
    const std::vector<BufferState*>& tail = stream.tail;
    if (tail.empty()) return true;
    if (stream.tail_parts != 0 || tail.size() > count) return false;
    return std::equal(tail.begin(), tail.end(), claims,
                      [](const BufferState* left, const InPlaceClaim& claim) { return left == claim.buffer; });
}

// Enters the uses at the position of the next operation. false: another thread opened or released one of the buffers. A
// position that buffers already name is used up then, as by a refused operation.
// The first use of a buffer takes its lock. Later ones of the same sort by the same stream store the position, and look
// for a lock or a view behind one fence for all of them: a view that opens at the same time either sees the position
// and waits for this operation, or is seen (BufferState::enter_first_use() has the other fence; tests/protocols).
inline bool claim_in_place(StreamState& stream, const InPlaceClaim* claims, std::size_t count) {
    const std::uint64_t position = stream.issued + 1;
    std::uint64_t stored = 0;  // which of them: one bit each
    static_assert(InPlaceClaim::most <= 64);
    for (std::size_t at = 0; at < count; ++at) {
        BufferState& buffer = *claims[at].buffer;
        if (buffer.uses_again(stream, claims[at].use)) {
            buffer.first_use.raise(position);
            stored |= std::uint64_t{1} << at;
            continue;
        }
        const std::lock_guard lock(buffer.views);
        if (buffer.views.released() || buffer.views.open_against(claims[at].use)) {
            if (at > 0) stream.advance("a refused operation");
            return false;
        }
        buffer.touch_viewable(stream, position, claims[at].use);
    }
    if (stored == 0) return true;
    host_fence<std::memory_order_seq_cst>();
    for (std::size_t at = 0; at < count; ++at) {
        const BufferState& buffer = *claims[at].buffer;
        const bool alone = buffer.views.seen().claimed_again() && !buffer.views.released();
        if ((stored >> at & 1) == 0 || alone) continue;
        stream.advance("a refused operation");
        return false;
    }
    return true;
}

// Called after the operation: the next one that does not use these buffers owes a fence. Expects stays(), so that the
// tail names the first of them.
inline void join_tail(StreamState& stream, const InPlaceClaim* claims, std::size_t count) {
    std::vector<BufferState*>& tail = stream.tail;
    for (std::size_t at = tail.size(); at < count; ++at) {
        if (std::find(tail.begin(), tail.end(), claims[at].buffer) == tail.end()) tail.push_back(claims[at].buffer);
    }
    stream.tail_parts = 0;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
