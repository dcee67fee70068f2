// SPDX-License-Identifier: Apache-2.0
// StreamUses: adds and removes streams, and keeps the order of an allocation.
#include "stream_uses.hpp"

#include "stream_state.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

bool StreamUses::ended(const StreamUse& use, std::uint64_t position) noexcept {
    return use.stream->reached(position);
}

LastUse& StreamUses::add(StreamState& stream) {
    uses_.push_back(StreamUse{{}, stream.weak_from_this().lock()});
    stream.standing.fetch_add(1, std::memory_order_relaxed);
    return uses_.back();
}

std::vector<std::shared_ptr<StreamState>> StreamUses::forget_ended(const std::array<const StreamState*, 3>& named) {
    std::vector<std::shared_ptr<StreamState>> forgotten;
    for (StreamUse* use = uses_.begin(); use != uses_.end();) {
        StreamState* const stream = use->stream.get();
        const bool ended = stream->reached(use->last) &&
                           use->stream.use_count() <= stream->standing.load(std::memory_order_relaxed) &&
                           stream != ordered_on_.load(std::memory_order_relaxed) &&
                           std::find(named.begin(), named.end(), stream) == named.end();
        if (!ended) {
            ++use;
            continue;
        }
        stream->standing.fetch_sub(1, std::memory_order_relaxed);
        forgotten.push_back(std::move(use->stream));
        uses_.erase(use);  // the next one is here now
    }
    return forgotten;
}

StreamUses::Uses StreamUses::take_all() noexcept {
    for (const StreamUse& use : uses_) use.stream->standing.fetch_sub(1, std::memory_order_relaxed);
    ordered_on_.store(nullptr, std::memory_order_relaxed);
    return std::exchange(uses_, {});
}

StreamUses::Allocated StreamUses::allocation_before(const StreamState& stream) noexcept {
    const StreamState* const maker = ordered_on_.load(std::memory_order_relaxed);
    if (maker == nullptr || maker == &stream) return {};
    if (maker->reached(ordered_position_)) {
        ordered_on_.store(nullptr, std::memory_order_relaxed);
        return {};
    }
    if (find(stream) != nullptr) return {};   // ordered by its first use
    return {held(maker), ordered_position_};  // held: another thread may remove it meanwhile
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
