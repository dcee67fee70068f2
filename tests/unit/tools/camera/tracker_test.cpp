// SPDX-License-Identifier: Apache-2.0
// The identity of corners: on pictures that move in a known way, and where candidates are equally good.
#include "camera/corner_tracker.hpp"
#include "camera/digest.hpp"

#include <gtest/gtest.h>

namespace isthmus::tools::camera {
namespace {

// In noise, places are easiest to tell apart; the same on every machine.
struct NoisePicture {
    FrameShape shape = make_frame_shape(PixelFormat::gray, 128, 96).value();
    std::vector<std::uint8_t> frame = std::vector<std::uint8_t>(shape.size_bytes);

    NoisePicture(int shift_x, int shift_y) {
        for (int y = 0; y < 96; ++y) {
            for (int x = 0; x < 128; ++x) {
                std::uint32_t hash = static_cast<std::uint32_t>(x - shift_x) * 73856093u ^
                                     static_cast<std::uint32_t>(y - shift_y) * 19349663u;
                hash = (hash ^ (hash >> 13)) * 0x5bd1e995u;
                frame[static_cast<std::size_t>(y) * 128 + static_cast<std::size_t>(x)] =
                    static_cast<std::uint8_t>(hash >> 24);
            }
        }
    }
};

std::vector<Corner> lattice(int shift_x, int shift_y) {
    std::vector<Corner> corners;
    for (int y = 30; y <= 66; y += 9)
        for (int x = 30; x <= 98; x += 9)
            corners.push_back({static_cast<std::uint16_t>(x + shift_x), static_cast<std::uint16_t>(y + shift_y), 1});
    return corners;
}

TEST(CornerTracker, FollowsEveryCornerOfAPictureThatMoves) {
    CornerTracker tracker(MatchRule{});
    const NoisePicture scene(0, 0);
    const std::size_t count = lattice(0, 0).size();
    tracker.follow(scene.shape, scene.frame.data(), lattice(0, 0));
    int x = 0, y = 0;
    for (const auto& [step_x, step_y] : {std::pair(5, -3), std::pair(-12, 4), std::pair(0, 0), std::pair(16, 16)}) {
        x += step_x;
        y += step_y;
        const NoisePicture moved(x, y);
        const auto& corners = tracker.follow(moved.shape, moved.frame.data(), lattice(x, y));
        ASSERT_EQ(corners.size(), count);
        for (std::size_t at = 0; at < count; ++at) {
            EXPECT_EQ(corners[at].previous, static_cast<std::int32_t>(at));
            EXPECT_EQ(corners[at].track, at);
            EXPECT_EQ(corners[at].trail[0].x, corners[at].item.corner.x - step_x);
            EXPECT_EQ(corners[at].trail[0].y, corners[at].item.corner.y - step_y);
        }
    }
    EXPECT_EQ(tracker.tracks(), count);
}

TEST(CornerTracker, BeginsNewTracksWhereCornersMoveFartherThanTheRadius) {
    CornerTracker tracker(MatchRule{.radius = 6});
    const NoisePicture scene(0, 0), moved(7, 0);
    tracker.follow(scene.shape, scene.frame.data(), lattice(0, 0));
    for (const TrackedCorner& corner : tracker.follow(moved.shape, moved.frame.data(), lattice(7, 0))) {
        EXPECT_EQ(corner.previous, -1);
        EXPECT_EQ(corner.trail_length, 0u);
    }
    EXPECT_EQ(tracker.tracks(), 2 * lattice(0, 0).size());
}

TEST(CornerTracker, KeepsTheLastSixteenPlacesOfACorner) {
    CornerTracker tracker(MatchRule{});
    std::vector<TrackedCorner> last;
    for (int step = 0; step < 20; ++step) {
        const NoisePicture scene(step, 0);
        const Corner corner{static_cast<std::uint16_t>(40 + step), 40, 1};
        last = tracker.follow(scene.shape, scene.frame.data(), {&corner, 1});
    }
    ASSERT_EQ(last.size(), 1u);
    EXPECT_EQ(last[0].trail_length, 16u);
    for (std::uint16_t at = 0; at < 16; ++at) EXPECT_EQ(last[0].trail[at].x, 58 - at);
}

TEST(CornerTracker, ForgetsCornersThatAreAbsentForAFrame) {
    CornerTracker tracker(MatchRule{});
    const NoisePicture scene(0, 0);
    const Corner corner{40, 40, 1};
    tracker.follow(scene.shape, scene.frame.data(), {&corner, 1});
    EXPECT_TRUE(tracker.follow(scene.shape, scene.frame.data(), {}).empty());
    EXPECT_EQ(tracker.follow(scene.shape, scene.frame.data(), {&corner, 1}).at(0).previous, -1);
}

MatchItem flat(std::uint16_t x, std::uint16_t y, std::uint8_t value) {
    MatchItem item{{x, y, 1}, {}};
    item.patch.fill(value);
    return item;
}

TEST(Match, TakesTheFirstOfEquallyGoodCandidates) {
    const std::vector<MatchItem> before{flat(12, 10, 50), flat(10, 11, 50), flat(8, 12, 50)};
    const std::vector<MatchItem> now{flat(10, 11, 50)};
    EXPECT_EQ(match(before, now, {}), (std::vector<std::int32_t>{0}));
}

TEST(Match, LetsTheBetterOfTwoKeepACorner) {
    const std::vector<MatchItem> before{flat(10, 10, 50)};
    EXPECT_EQ(match(before, std::vector{flat(9, 10, 52), flat(11, 10, 51)}, {}), (std::vector<std::int32_t>{-1, 0}));
    EXPECT_EQ(match(before, std::vector{flat(9, 10, 51), flat(11, 10, 52)}, {}), (std::vector<std::int32_t>{0, -1}));
    EXPECT_EQ(match(before, std::vector{flat(9, 10, 51), flat(11, 10, 49)}, {}), (std::vector<std::int32_t>{0, -1}));
}

TEST(Match, KeepsToRadiusAndDifferenceExactly) {
    const MatchRule rule{.radius = 5, .max_difference = 64};
    const std::vector<MatchItem> before{flat(100, 100, 50)};
    const auto matches = [&](const MatchItem& item) { return match(before, std::vector{item}, rule).at(0) == 0; };
    EXPECT_TRUE(matches(flat(105, 95, 51)));
    EXPECT_FALSE(matches(flat(106, 100, 51)));
    EXPECT_FALSE(matches(flat(94, 100, 51)));
    EXPECT_FALSE(matches(flat(100, 106, 51)));
    EXPECT_FALSE(matches(flat(100, 94, 51)));
    EXPECT_FALSE(matches(flat(100, 100, 52)));
}

TEST(Match, AnswersForEmptyLists) {
    EXPECT_TRUE(match({}, {}, {}).empty());
    EXPECT_EQ(match({}, std::vector{flat(1, 1, 1)}, {}), (std::vector<std::int32_t>{-1}));
    EXPECT_TRUE(match(std::vector{flat(1, 1, 1)}, {}, {}).empty());
}

TEST(Patch, IsTheLumaAroundACornerInEveryFormat) {
    const FrameShape gray = make_frame_shape(PixelFormat::gray, 16, 16).value();
    const FrameShape packed = make_frame_shape(PixelFormat::uyvy, 16, 16, 40).value();
    std::vector<std::uint8_t> plain(gray.size_bytes), mixed(packed.size_bytes, 7);
    for (std::uint32_t at = 0; at < 256; ++at) {
        plain[at] = static_cast<std::uint8_t>(at);
        mixed[at / 16 * 40 + at % 16 * 2 + 1] = static_cast<std::uint8_t>(at);
    }
    const Patch patch = patch_around(gray, plain.data(), {8, 9, 0});
    EXPECT_EQ(patch[0], 5 * 16 + 4);
    EXPECT_EQ(patch[63], 12 * 16 + 11);
    EXPECT_EQ(patch, patch_around(packed, mixed.data(), {8, 9, 0}));
    EXPECT_EQ(difference(patch, patch), 0u);
    EXPECT_EQ(difference(flat(0, 0, 0).patch, flat(0, 0, 255).patch), 255u * 64);
}

TEST(Digest, ChangesWithEveryNumberAndIsTheSameOnEveryMachine) {
    EXPECT_EQ(Digest().text(), "cbf29ce484222325");
    const auto of = [](std::vector<Corner> corners) {
        Digest digest;
        digest.add_corners(corners);
        return digest.text();
    };
    EXPECT_EQ(of({{1, 2, 3}}), "8c6b178abbf5e364");
    EXPECT_NE(of({{1, 2, 3}}), of({{2, 2, 3}}));
    EXPECT_NE(of({{1, 2, 3}}), of({{1, 3, 3}}));
    EXPECT_NE(of({{1, 2, 3}}), of({{1, 2, -3}}));
    EXPECT_NE(of({{1, 2, 3}}), of({{1, 2, 3}, {1, 2, 3}}));
    EXPECT_NE(of({}), Digest().text());
}

}  // namespace
}  // namespace isthmus::tools::camera
