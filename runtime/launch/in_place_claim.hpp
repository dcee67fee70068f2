// SPDX-License-Identifier: Apache-2.0
// Claims of buffers that the host may view and that are used in place: what the short ways of launches and of work of
// other code have in common. Inline, because a driver call fills the caches.
#pragma once

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
    static constexpr std::size_t most = 8;  // of one operation
};

// true: the host may view the buffer, and it is used in place: memory of the launch device that needs no judgement,
// copy, attachment, prefetch or order. Once true, it stays true.
inline bool used_in_place(const BufferState& buffer, ArgumentUse use, const DeviceState& device) noexcept {
    const StorageFacts& facts = *buffer.memory.operator->();
    return buffer.device.get() == &device && facts.host != nullptr && facts.path == LaunchPath::pass &&
           facts.bytes > 0 && facts.recorded_in == 0 && !facts.in_several && device.reaches(facts.kind) &&
           !(facts.read_only && rules::writes(use)) && use != ArgumentUse::concurrent && !buffer.uses.ordered();
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
inline bool claim_in_place(StreamState& stream, const InPlaceClaim* claims, std::size_t count) {
    for (std::size_t at = 0; at < count; ++at) {
        const std::lock_guard lock(claims[at].buffer->views);
        if (claims[at].buffer->views.released() || claims[at].buffer->views.open_against(claims[at].use)) {
            if (at > 0) stream.advance("a refused operation");
            return false;
        }
        claims[at].buffer->touch(stream, stream.issued + 1, claims[at].use);
    }
    return true;
}

// Called after the operation: the next one that does not use these buffers owes a fence.
inline void join_tail(StreamState& stream, const InPlaceClaim* claims, std::size_t count) {
    std::vector<BufferState*>& tail = stream.tail;
    for (std::size_t at = 0; at < count; ++at) {
        if (at < tail.size() && tail[at] == claims[at].buffer) continue;
        if (std::find(tail.begin(), tail.end(), claims[at].buffer) == tail.end()) tail.push_back(claims[at].buffer);
    }
    stream.tail_parts = 0;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
