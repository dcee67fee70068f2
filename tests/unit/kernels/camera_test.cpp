// SPDX-License-Identifier: Apache-2.0
// The camera kernels' CPU twins against plain references, on random pictures of awkward sizes.
#include "run_twin.hpp"

#include <isthmus/kernels/camera.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::kernels;
using Bytes = std::vector<std::uint8_t>;
constexpr std::uint8_t untouched = 0xA5;

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}
    std::uint32_t operator()() { return static_cast<std::uint32_t>(engine_()); }

private:
    std::mt19937 engine_;
};

struct Shape {
    Plane plane;
    unsigned seed;
};
void PrintTo(const Shape& s, std::ostream* out) {
    *out << s.plane.width << "x" << s.plane.height << " pitch " << s.plane.pitch << " seed " << s.seed;
}

Bytes random_bytes(std::uint64_t size, unsigned seed) {
    Random random(seed);
    Bytes bytes(size);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
    return bytes;
}

// Rectangles of random brightness: pictures with real corners, and ties where areas are flat.
Bytes random_scene(const Plane& plane, unsigned seed) {
    Random random(seed);
    Bytes picture(size_of(plane), 40);
    for (int n = 0; n < 30; ++n) {
        const std::uint32_t left = random() % plane.width, top = random() % plane.height;
        const std::uint32_t right = std::min<std::uint32_t>(plane.width, left + random() % 20),
                            bottom = std::min<std::uint32_t>(plane.height, top + random() % 20);
        const auto level = static_cast<std::uint8_t>(random());
        for (std::uint32_t y = top; y < bottom; ++y)
            for (std::uint32_t x = left; x < right; ++x) picture[y * plane.pitch + x] = level;
    }
    return picture;
}

// A picture that may be read anywhere, in wide integers.
struct Reference {
    int width, height;
    std::vector<long long> values;
    template <class T>
    Reference(const Plane& plane, const std::vector<T>& picture)
        : width(static_cast<int>(plane.width)), height(static_cast<int>(plane.height)) {
        for (std::uint32_t y = 0; y < plane.height; ++y)
            for (std::uint32_t x = 0; x < plane.width; ++x) values.push_back(picture[y * plane.pitch + x]);
    }
    long long at(int x, int y) const {
        const auto row = static_cast<std::size_t>(std::clamp(y, 0, height - 1));
        const auto column = static_cast<std::size_t>(std::clamp(x, 0, width - 1));
        return values[row * static_cast<std::size_t>(width) + column];
    }
};

class Camera : public testing::TestWithParam<Shape> {
protected:
    Plane plane = GetParam().plane;
    unsigned seed = GetParam().seed;
    Extent2 extent{plane.width, plane.height};

    template <class T, class F>
    void expect_picture(const std::vector<T>& got, const T& outside, F expected) const {
        for (std::uint32_t y = 0; y < plane.height; ++y) {
            for (std::uint32_t x = 0; x < plane.pitch; ++x) {
                const T& value = got[y * plane.pitch + x];
                if (x < plane.width)
                    ASSERT_EQ(value, expected(static_cast<int>(x), static_cast<int>(y))) << x << "," << y;
                else
                    ASSERT_EQ(value, outside) << "written beyond the width at " << x << "," << y;
            }
        }
    }

    std::vector<std::int32_t> responses(const Bytes& gray) const {
        std::vector<Gradient> gradient(size_of(plane));
        std::vector<std::int32_t> response(size_of(plane));
        run_twin(gradients, extent, {gradient.data(), gradient.size()}, {gray.data(), gray.size()}, plane);
        run_twin(corner_response, extent, {response.data(), response.size()}, {gradient.data(), gradient.size()},
                 plane);
        return response;
    }
};

TEST_P(Camera, TakesLumaOutOfEveryFormat) {
    for (const PixelFormat format : {PixelFormat::gray, PixelFormat::nv12, PixelFormat::i420, PixelFormat::yuyv,
                                     PixelFormat::uyvy, PixelFormat::bayer8}) {
        const bool packed = format == PixelFormat::yuyv || format == PixelFormat::uyvy;
        const std::uint32_t pitch = plane.width * (packed ? 2 : 1) + 5;
        const std::uint64_t planes = format == PixelFormat::nv12 || format == PixelFormat::i420 ? 2 : 1;
        const Bytes frame = random_bytes(std::uint64_t{pitch} * plane.height * planes, seed);
        Bytes gray(size_of(plane), untouched);
        run_twin(to_gray, extent, {gray.data(), gray.size()}, plane, {frame.data(), frame.size()},
                 luma_layout(format, pitch));
        expect_picture(gray, untouched, [&](int x, int y) {
            const int column = format == PixelFormat::yuyv ? 2 * x : format == PixelFormat::uyvy ? 2 * x + 1 : x;
            return frame[static_cast<std::size_t>(y) * pitch + static_cast<std::size_t>(column)];
        });
    }
}

// Rows of both that begin at multiples of 16, where a GPU takes runs of pixels, and others.
TEST_P(Camera, CopiesLumaInRunsOutOfEveryFormat) {
    for (const PixelFormat format : {PixelFormat::gray, PixelFormat::yuyv, PixelFormat::uyvy}) {
        const std::uint32_t step = format == PixelFormat::gray ? 1 : 2;
        for (const bool even : {true, false}) {
            Plane to = plane;
            to.pitch = even ? (plane.width + 15) / 16 * 16 + 16 : plane.width + 3;
            const std::uint32_t pitch = even ? (plane.width * step + 15) / 16 * 16 : plane.width * step + 5;
            // Ends with the last pixel: nothing behind it may be read.
            const Bytes frame = random_bytes(std::uint64_t{pitch} * (plane.height - 1) + plane.width * step, seed);
            Bytes gray(size_of(to), untouched);
            run_twin(copy_luma, luma_runs(to), {gray.data(), gray.size()}, to, {frame.data(), frame.size()},
                     luma_layout(format, pitch));
            for (std::uint32_t y = 0; y < to.height; ++y) {
                for (std::uint32_t x = 0; x < to.pitch; ++x) {
                    const std::size_t at = std::size_t{y} * pitch + x * step + (format == PixelFormat::uyvy ? 1 : 0);
                    ASSERT_EQ(gray[y * to.pitch + x], x < to.width ? frame[at] : untouched) << x << "," << y;
                }
            }
        }
    }
}

TEST_P(Camera, SmoothsAsTwoPassesOfFiveWeights) {
    const Bytes gray = random_bytes(size_of(plane), seed);
    Bytes smoothed(size_of(plane), untouched);
    run_twin(smooth, extent, {smoothed.data(), smoothed.size()}, {gray.data(), gray.size()}, plane);
    const Reference picture(plane, gray);
    expect_picture(smoothed, untouched, [&](int x, int y) {
        const auto across = [&](int row) {
            return picture.at(x - 2, row) + 4 * picture.at(x - 1, row) + 6 * picture.at(x, row) +
                   4 * picture.at(x + 1, row) + picture.at(x + 2, row);
        };
        const long long sum = across(y - 2) + 4 * across(y - 1) + 6 * across(y) + 4 * across(y + 1) + across(y + 2);
        return static_cast<std::uint8_t>((sum + 128) / 256);
    });
}

TEST_P(Camera, RespondsAsHarrisInWideIntegers) {
    for (const Bytes& gray : {random_bytes(size_of(plane), seed), random_scene(plane, seed)}) {
        const std::vector<std::int32_t> response = responses(gray);
        const Reference picture(plane, gray);
        const auto sobel_x = [&](int x, int y) {
            return picture.at(x + 1, y - 1) + 2 * picture.at(x + 1, y) + picture.at(x + 1, y + 1) -
                   picture.at(x - 1, y - 1) - 2 * picture.at(x - 1, y) - picture.at(x - 1, y + 1);
        };
        const auto sobel_y = [&](int x, int y) {
            return picture.at(x - 1, y + 1) + 2 * picture.at(x, y + 1) + picture.at(x + 1, y + 1) -
                   picture.at(x - 1, y - 1) - 2 * picture.at(x, y - 1) - picture.at(x + 1, y - 1);
        };
        expect_picture(response, std::int32_t{0}, [&](int x, int y) {
            long long xx = 0, yy = 0, xy = 0;
            for (int dy = -2; dy <= 2; ++dy) {
                for (int dx = -2; dx <= 2; ++dx) {  // outside, the gradient of the nearest pixel counts
                    const int u = std::clamp(x + dx, 0, picture.width - 1),
                              v = std::clamp(y + dy, 0, picture.height - 1);
                    xx += sobel_x(u, v) * sobel_x(u, v);
                    yy += sobel_y(u, v) * sobel_y(u, v);
                    xy += sobel_x(u, v) * sobel_y(u, v);
                }
            }
            const long long value = 25 * (xx * yy - xy * xy) - (xx + yy) * (xx + yy);
            const long long unit = 1 << 23;
            return static_cast<std::int32_t>(value >= 0 ? value / unit : -((-value + unit - 1) / unit));
        });
    }
}

struct Found {
    std::vector<Corner> corners;
    CornerCount count;
};
Found list_all(const Plane& plane, const std::vector<std::int32_t>& response, CornerRule rule, std::size_t capacity) {
    Bytes mark(size_of(plane), untouched);
    std::vector<std::uint32_t> rows(plane.height, 77);
    Found found{std::vector<Corner>(capacity + 1, Corner{9, 9, -9}), {7, 7}};
    run_twin(mark_corners, {plane.width, plane.height}, {mark.data(), mark.size()}, {response.data(), response.size()},
             plane, rule);
    run_twin(count_corners, plane.height, {rows.data(), rows.size()}, {mark.data(), mark.size()}, plane);
    run_twin(place_corners, 1, {rows.data(), rows.size()}, {&found.count, 1}, static_cast<std::uint32_t>(capacity));
    run_twin(list_corners, plane.height, {found.corners.data(), capacity}, {rows.data(), rows.size()},
             {mark.data(), mark.size()}, {response.data(), response.size()}, plane);
    return found;
}

// The definition, literally: sort all by score, then order; keep those without a better neighbour.
std::vector<Corner> expected_corners(const Plane& plane, const std::vector<std::int32_t>& response, CornerRule rule) {
    const Reference picture(plane, response);
    std::vector<Corner> corners;
    for (int y = 0; y < picture.height; ++y) {
        for (int x = 0; x < picture.width; ++x) {
            const auto own = picture.at(x, y);
            const int edge = std::min({x, y, picture.width - 1 - x, picture.height - 1 - y});
            bool best = own > rule.threshold && edge >= static_cast<int>(rule.border);
            const int r = static_cast<int>(rule.radius);
            for (int v = std::max(0, y - r); v <= std::min(picture.height - 1, y + r); ++v)
                for (int u = std::max(0, x - r); u <= std::min(picture.width - 1, x + r); ++u)
                    if (picture.at(u, v) > own || (picture.at(u, v) == own && std::pair(v, u) < std::pair(y, x)))
                        best = false;
            if (best)
                corners.push_back(
                    {static_cast<std::uint16_t>(x), static_cast<std::uint16_t>(y), static_cast<std::int32_t>(own)});
        }
    }
    return corners;
}

bool same(const Corner& a, const Corner& b) {
    return a.x == b.x && a.y == b.y && a.score == b.score;
}

TEST_P(Camera, ListsCornersInOrderAndSaysHowManyDidNotFit) {
    Random random(seed);
    // Few different values: many ties.
    std::vector<std::int32_t> noise(size_of(plane));
    for (auto& v : noise) v = static_cast<std::int32_t>(random() % 50) - 10;
    for (const auto& response : {noise, responses(random_scene(plane, seed))}) {
        for (const CornerRule rule :
             {CornerRule{0, 1, 0}, CornerRule{20, 2, 1}, CornerRule{5, 4, 3}, CornerRule{-20, 0, 0}}) {
            const std::vector<Corner> expected = expected_corners(plane, response, rule);
            for (const std::size_t capacity :
                 {expected.size() + 3, expected.size(), expected.size() / 2, std::size_t{0}}) {
                const Found found = list_all(plane, response, rule, capacity);
                EXPECT_EQ(found.count.found, expected.size());
                EXPECT_EQ(found.count.listed, std::min(expected.size(), capacity));
                for (std::size_t n = 0; n < found.count.listed; ++n)
                    ASSERT_TRUE(same(found.corners[n], expected[n])) << "corner " << n << " of " << expected.size();
                for (std::size_t n = found.count.listed; n < found.corners.size(); ++n)
                    ASSERT_TRUE(same(found.corners[n], Corner{9, 9, -9})) << "written beyond the list";
            }
        }
    }
}

// The tiles' edges lie inside these pictures, and pictures inside one tile.
TEST_P(Camera, TilesGiveTheResponsesOfTheFourStepsForEveryFormat) {
    for (const PixelFormat format : {PixelFormat::gray, PixelFormat::nv12, PixelFormat::yuyv, PixelFormat::uyvy}) {
        const bool packed = format == PixelFormat::yuyv || format == PixelFormat::uyvy;
        for (const std::uint32_t gap : {0u, 1u, 8u}) {
            const std::uint32_t pitch = plane.width * (packed ? 2 : 1) + gap;
            Bytes frame = random_bytes(std::uint64_t{pitch} * plane.height, seed);
            for (std::uint64_t at = 0; at + 40 < frame.size(); at += 7) frame[at + at % 31] = 250;
            const LumaLayout layout = luma_layout(format, pitch);
            Bytes gray(size_of(plane)), smoothed(size_of(plane));
            run_twin(to_gray, extent, {gray.data(), gray.size()}, plane, {frame.data(), frame.size()}, layout);
            run_twin(smooth, extent, {smoothed.data(), smoothed.size()}, {gray.data(), gray.size()}, plane);
            const std::vector<std::int32_t> expected = responses(smoothed);
            std::vector<std::int32_t> response(size_of(plane), -77);
            run_twin(frame_response, response_tiles(plane), {response.data(), response.size()}, plane,
                     {frame.data(), frame.size()}, layout);
            expect_picture(response, -77, [&](int x, int y) {
                return expected[static_cast<std::size_t>(y) * plane.pitch + static_cast<std::size_t>(x)];
            });
        }
    }
    // A layout of the caller's own: the green of pixels with three bytes.
    const LumaLayout green{1, plane.width * 3, 3};
    const Bytes frame = random_bytes(std::uint64_t{green.pitch_bytes} * plane.height, seed);
    Bytes gray(size_of(plane)), smoothed(size_of(plane));
    run_twin(to_gray, extent, {gray.data(), gray.size()}, plane, {frame.data(), frame.size()}, green);
    run_twin(smooth, extent, {smoothed.data(), smoothed.size()}, {gray.data(), gray.size()}, plane);
    const std::vector<std::int32_t> expected = responses(smoothed);
    std::vector<std::int32_t> response(size_of(plane), -77);
    run_twin(frame_response, response_tiles(plane), {response.data(), response.size()}, plane,
             {frame.data(), frame.size()}, green);
    expect_picture(response, -77, [&](int x, int y) {
        return expected[static_cast<std::size_t>(y) * plane.pitch + static_cast<std::size_t>(x)];
    });
}

TEST_P(Camera, RowsAndJoinListTheSameCorners) {
    Random random(seed);
    std::vector<std::int32_t> noise(size_of(plane));
    for (auto& v : noise) v = static_cast<std::int32_t>(random() % 50) - 10;
    for (const auto& response : {noise, responses(random_scene(plane, seed))}) {
        for (const CornerRule rule : {CornerRule{0, 1, 0}, CornerRule{20, 2, 1}, CornerRule{5, 4, 3},
                                      CornerRule{-20, 0, 0}, CornerRule{5, 64, 0}, CornerRule{0, 1, 70000}}) {
            const std::vector<Corner> expected = expected_corners(plane, response, rule);
            for (const std::size_t capacity :
                 {expected.size() + 3, expected.size(), expected.size() / 2, std::size_t{0}}) {
                std::vector<std::uint32_t> rows(plane.height, 77);
                std::vector<std::uint16_t> columns(size_of(plane));
                std::vector<Corner> corners(capacity + 1, Corner{9, 9, -9});
                CornerCount count{7, 7};
                run_twin(row_corners, plane.height, {rows.data(), rows.size()}, {columns.data(), columns.size()},
                         {response.data(), response.size()}, plane, rule);
                run_twin(join_corners, row_groups(plane), {corners.data(), capacity}, {&count, 1},
                         {rows.data(), rows.size()}, {columns.data(), columns.size()},
                         {response.data(), response.size()}, plane);
                EXPECT_EQ(count.found, expected.size());
                EXPECT_EQ(count.listed, std::min(expected.size(), capacity));
                for (std::size_t n = 0; n < count.listed; ++n)
                    ASSERT_TRUE(same(corners[n], expected[n])) << "corner " << n << " of " << expected.size();
                for (std::size_t n = count.listed; n < corners.size(); ++n)
                    ASSERT_TRUE(same(corners[n], Corner{9, 9, -9})) << "written beyond the list";
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Camera,
                         testing::Values(Shape{{1, 1, 1}, 1}, Shape{{1, 1, 7}, 2}, Shape{{1, 33, 1}, 3},
                                         Shape{{33, 1, 40}, 4}, Shape{{2, 2, 2}, 5}, Shape{{5, 5, 5}, 6},
                                         Shape{{3, 17, 4}, 7}, Shape{{64, 48, 64}, 8}, Shape{{63, 47, 80}, 9},
                                         Shape{{300, 7, 301}, 10}, Shape{{7, 300, 16}, 11}, Shape{{513, 20, 520}, 12}));

TEST(CameraExtremes, StrongestPossibleResponsesDoNotOverflow) {
    // The steepest gradients, turned by a right angle from pixel to pixel.
    const Plane plane{24, 24, 24};
    std::vector<Gradient> strongest(size_of(plane));
    for (std::uint32_t n = 0; n < strongest.size(); ++n)
        strongest[n] = (n / 24 + n % 24) % 2 != 0 ? Gradient{1020, 0} : Gradient{0, 1020};
    std::vector<std::int32_t> response(size_of(plane));
    run_twin(corner_response, {24, 24}, {response.data(), response.size()}, {strongest.data(), strongest.size()},
             plane);
    // 13 of the one and 12 of the other: 25 · 13 · 12 · 1020⁴ − 25² · 1020⁴, over 2²³.
    const long long unit = 1020LL * 1020;
    EXPECT_EQ(response[12 * 24 + 12], (25 * 13 * 12 * unit * unit - 625 * unit * unit) >> 23);
    for (auto& g : strongest) g = {1020, 1020};
    run_twin(corner_response, {24, 24}, {response.data(), response.size()}, {strongest.data(), strongest.size()},
             plane);
    EXPECT_EQ(response[12 * 24 + 12], (-4 * 625 * unit * unit) >> 23);
}

TEST(CameraExtremes, FlatPicturesHaveNoCorners) {
    const Plane plane{40, 30, 48};
    const std::vector<std::int32_t> flat(size_of(plane), 5);
    EXPECT_EQ(list_all(plane, flat, CornerRule{5, 3, 0}, 10).count.found, 0u);
    // Above the threshold all scores are equal: only the very first pixel has no earlier neighbour that beats it.
    const Found found = list_all(plane, flat, CornerRule{4, 3, 0}, 10);
    ASSERT_EQ(found.count.found, 1u);
    EXPECT_TRUE(same(found.corners[0], Corner{0, 0, 5}));
}

TEST(CameraExtremes, PlacesRowsOfTallPictures) {
    std::vector<std::uint32_t> rows(1000);
    Random random(3);
    for (auto& r : rows) r = random() % 40;
    const std::vector<std::uint32_t> counts = rows;
    CornerCount count{};
    run_twin(place_corners, 1, {rows.data(), rows.size()}, {&count, 1}, 100);
    std::uint32_t next = 0;
    for (std::size_t y = 0; y < rows.size(); ++y) {
        EXPECT_EQ(rows[y], next);
        next += counts[y];
    }
    EXPECT_EQ(count.found, next);
    EXPECT_EQ(count.listed, 100u);
}

}  // namespace
