// SPDX-License-Identifier: Apache-2.0
// Matches corners by their patches: of the nearby corners, the one with the smallest difference.
#include "corner_tracker.hpp"

#include <algorithm>
#include <cstdlib>

namespace isthmus::tools::camera {
namespace {

struct Candidate {
    std::int32_t index = -1;
    std::uint32_t difference = 0;
};

Candidate best_of(std::span<const MatchItem> before, const MatchItem& item, const MatchRule& rule) {
    const auto radius = static_cast<std::int64_t>(rule.radius);
    const auto row_first =
        std::lower_bound(before.begin(), before.end(), std::int64_t{item.corner.y} - radius,
                         [](const MatchItem& other, std::int64_t y) { return std::int64_t{other.corner.y} < y; });
    Candidate best;
    for (auto other = row_first; other != before.end() && other->corner.y <= item.corner.y + radius; ++other) {
        if (std::abs(std::int64_t{other->corner.x} - item.corner.x) > radius) continue;
        const std::uint32_t found = difference(other->patch, item.patch);
        if (found > rule.max_difference || (best.index >= 0 && found >= best.difference)) continue;
        best = {static_cast<std::int32_t>(other - before.begin()), found};
    }
    return best;
}

}  // namespace

Patch patch_around(const FrameShape& shape, const std::uint8_t* frame, const Corner& corner) noexcept {
    Patch patch;
    std::size_t at = 0;
    for (std::uint32_t y = 0; y < patch_side; ++y) {
        for (std::uint32_t x = 0; x < patch_side; ++x)
            patch[at++] = luma(shape, frame, corner.x - patch_margin + x, corner.y - patch_margin + y);
    }
    return patch;
}

std::uint32_t difference(const Patch& a, const Patch& b) noexcept {
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < a.size(); ++at) sum += static_cast<std::uint32_t>(std::abs(int{a[at]} - int{b[at]}));
    return sum;
}

std::vector<std::int32_t> match(std::span<const MatchItem> before, std::span<const MatchItem> now,
                                const MatchRule& rule) {
    std::vector<std::int32_t> matches(now.size(), -1);
    struct Claim {
        std::int32_t by = -1;
        std::uint32_t difference = 0;
    };
    std::vector<Claim> claims(before.size());
    for (std::size_t at = 0; at < now.size(); ++at) {
        const Candidate best = best_of(before, now[at], rule);
        if (best.index < 0) continue;
        Claim& claim = claims[static_cast<std::size_t>(best.index)];
        if (claim.by >= 0 && claim.difference <= best.difference) continue;  // on a tie the earlier claim keeps it
        if (claim.by >= 0) matches[static_cast<std::size_t>(claim.by)] = -1;
        claim = {static_cast<std::int32_t>(at), best.difference};
        matches[at] = best.index;
    }
    return matches;
}

const std::vector<TrackedCorner>& CornerTracker::follow(const FrameShape& shape, const std::uint8_t* frame,
                                                        std::span<const Corner> corners) {
    std::vector<MatchItem> items;
    items.reserve(corners.size());
    for (const Corner& corner : corners) items.push_back({corner, patch_around(shape, frame, corner)});
    const std::vector<std::int32_t> matches = match(items_, items, rule_);

    std::vector<TrackedCorner> next(items.size());
    for (std::size_t at = 0; at < items.size(); ++at) {
        TrackedCorner& corner = next[at];
        corner.item = items[at];
        corner.previous = matches[at];
        if (corner.previous < 0) {
            corner.track = next_track_++;
            continue;
        }
        const TrackedCorner& was = corners_[static_cast<std::size_t>(corner.previous)];
        corner.track = was.track;
        corner.trail[0] = {was.item.corner.x, was.item.corner.y};
        corner.trail_length = std::min(was.trail_length + 1, static_cast<std::uint32_t>(corner.trail.size()));
        std::copy_n(was.trail.begin(), corner.trail_length - 1, corner.trail.begin() + 1);
    }
    corners_ = std::move(next);
    items_ = std::move(items);
    return corners_;
}

}  // namespace isthmus::tools::camera
