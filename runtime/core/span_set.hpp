// SPDX-License-Identifier: Apache-2.0
// SpanSet: a set of bytes of a buffer. Pure.
#pragma once

#include "few.hpp"
#include "sharing_rules.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace isthmus::rules {

// Ascending, without overlaps. Bounded: above `most` spans, the gap between two neighbours is included, so that the set
// may hold more bytes than were added, and never fewer.
class SpanSet {
public:
    static constexpr std::size_t most = 64;
    using Spans = detail::Few<ByteSpan, 2>;

    SpanSet() = default;
    SpanSet(const SpanSet& other) {
        for (const ByteSpan& one : other.spans_) spans_.push_back(one);
    }
    SpanSet(SpanSet&&) noexcept = default;
    SpanSet& operator=(SpanSet&&) noexcept = default;
    ~SpanSet() = default;

    bool meets(const ByteSpan& span) const noexcept {
        return std::any_of(spans_.begin(), spans_.end(), [&](const ByteSpan& one) { return overlap(one, span); });
    }
    void add(ByteSpan span) {
        if (span.begin >= span.end) return;
        spans_.erase_if([&](const ByteSpan& one) {
            if (one.end < span.begin || span.end < one.begin) return false;  // spans that touch are merged
            span = {std::min(one.begin, span.begin), std::max(one.end, span.end)};
            return true;
        });
        spans_.push_back(span);
        for (std::size_t at = spans_.size() - 1; at > 0 && spans_[at - 1].begin > span.begin; --at) {
            std::swap(spans_[at - 1], spans_[at]);
        }
        if (spans_.size() > most) join_nearest();
    }
    void remove(const ByteSpan& span) {
        Spans left;
        for (const ByteSpan& one : spans_) {
            if (!overlap(one, span)) {
                left.push_back(one);
                continue;
            }
            if (one.begin < span.begin) left.push_back({one.begin, span.begin});
            if (span.end < one.end) left.push_back({span.end, one.end});
        }
        spans_ = std::move(left);
        while (spans_.size() > most) join_nearest();
    }
    const Spans& spans() const noexcept { return spans_; }
    // Whether add() may need memory from the heap.
    bool full() const noexcept { return spans_.full(); }

private:
    void join_nearest() {
        std::size_t nearest = 0;
        for (std::size_t at = 1; at + 1 < spans_.size(); ++at) {
            const auto gap = [&](std::size_t first) { return spans_[first + 1].begin - spans_[first].end; };
            if (gap(at) < gap(nearest)) nearest = at;
        }
        spans_[nearest].end = spans_[nearest + 1].end;
        spans_.erase(spans_.begin() + nearest + 1);
    }
    Spans spans_;
};

}  // namespace isthmus::rules
