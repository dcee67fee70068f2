// SPDX-License-Identifier: Apache-2.0
// CompletionQueue: operations by stream and position.
#include <isthmus/completion_queue.hpp>

#include <algorithm>

namespace isthmus {
inline namespace v0 {

void CompletionQueue::add(const Stream& stream, std::uint64_t position, std::uint64_t tag) {
    // Searches from the back: streams are few, and the last one is most often used again.
    auto lane = std::find_if(lanes_.rbegin(), lanes_.rend(),
                             [&](const Lane& known) { return known.stream.state() == stream.state(); });
    if (lane == lanes_.rend()) {
        lanes_.push_back({stream, {}, 0});
        lane = lanes_.rbegin();
    }
    std::vector<Operation>& operations = lane->operations;
    const auto later = [](std::uint64_t wanted, const Operation& known) { return wanted < known.position; };
    const auto first = operations.begin() + static_cast<std::ptrdiff_t>(lane->first);
    const bool rising = operations.empty() || operations.back().position <= position;
    const auto place = rising ? operations.end() : std::upper_bound(first, operations.end(), position, later);
    operations.insert(place, {position, tag});
    ++outstanding_;
}

Result<void> CompletionQueue::collect_from(Lane& lane, std::vector<std::uint64_t>& finished) {
    std::vector<Operation>& operations = lane.operations;
    Result<void> polled;
    if (!lane.stream.completed(operations.back().position)) {
        if (Result<std::uint64_t> reached = lane.stream.poll(); !reached) polled = std::move(reached).error();
    }
    // Also after an error: reports the operations that were already known to have finished.
    const std::size_t before = lane.first;
    while (lane.first < operations.size() && lane.stream.completed(operations[lane.first].position)) {
        finished.push_back(operations[lane.first++].tag);
    }
    outstanding_ -= lane.first - before;
    if (lane.first > operations.size() / 2) {  // at most one move for each operation removed
        operations.erase(operations.begin(), operations.begin() + static_cast<std::ptrdiff_t>(lane.first));
        lane.first = 0;
    }
    return polled;
}

Result<std::size_t> CompletionQueue::collect(std::vector<std::uint64_t>& finished) {
    const std::size_t before = finished.size();
    Result<void> outcome;
    for (Lane& lane : lanes_) {
        if (lane.operations.empty()) continue;
        Result<void> collected = collect_from(lane, finished);
        if (!collected && outcome) outcome = std::move(collected);
    }
    std::erase_if(lanes_, [](const Lane& lane) { return lane.operations.empty(); });
    if (!outcome) return std::move(outcome).error();
    return finished.size() - before;
}

void CompletionQueue::abandon(const Stream& stream, std::vector<std::uint64_t>& unfinished) {
    const auto lane = std::find_if(lanes_.begin(), lanes_.end(),
                                   [&](const Lane& known) { return known.stream.state() == stream.state(); });
    if (lane == lanes_.end()) return;
    for (std::size_t at = lane->first; at < lane->operations.size(); ++at) {
        unfinished.push_back(lane->operations[at].tag);
    }
    outstanding_ -= lane->operations.size() - lane->first;
    lanes_.erase(lane);
}

}  // namespace v0
}  // namespace isthmus
