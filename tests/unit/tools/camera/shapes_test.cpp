// SPDX-License-Identifier: Apache-2.0
// Formats, sizes and pitches of frames: what is accepted, what is refused, where luma lies.
#include "camera/frame_shape.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace isthmus::tools::camera {
namespace {

constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

struct Expected {
    PixelFormat format;
    std::uint64_t width, height, pitch;
    std::uint32_t pitch_bytes;
    std::size_t size_bytes;
};

TEST(FrameShape, TakesTheBytesThatTheFormatsHave) {
    const Expected expected[] = {
        {PixelFormat::gray, 5, 3, 0, 5, 15},
        {PixelFormat::gray, 5, 3, 8, 8, 24},
        {PixelFormat::bayer8, 4, 4, 0, 4, 16},
        {PixelFormat::i420, 4, 4, 0, 4, 16 + 2 * 4},
        {PixelFormat::i420, 5, 3, 0, 5, 15 + 2 * 3 * 2},
        {PixelFormat::i420, 5, 3, 8, 8, 24 + 2 * 4 * 2},
        {PixelFormat::nv12, 4, 4, 0, 4, 16 + 8},
        {PixelFormat::nv12, 5, 3, 0, 6, 18 + 12},
        {PixelFormat::yuyv, 4, 2, 0, 8, 16},
        {PixelFormat::yuyv, 5, 2, 0, 12, 24},
        {PixelFormat::uyvy, 2, 2, 16, 16, 32},
    };
    for (const Expected& each : expected) {
        const Result<FrameShape> shape = make_frame_shape(each.format, each.width, each.height, each.pitch);
        ASSERT_TRUE(shape.ok()) << shape.error().text();
        EXPECT_EQ(shape->pitch_bytes, each.pitch_bytes) << name(each.format) << " " << each.width;
        EXPECT_EQ(shape->size_bytes, each.size_bytes) << name(each.format) << " " << each.width;
    }
}

TEST(FrameShape, RefusesSizesThatHaveNoPictureOrAreAbsurd) {
    const std::uint64_t sizes[][2] = {{0, 4},
                                      {4, 0},
                                      {0, 0},
                                      {65536, 1},
                                      {1, 65536},
                                      {65535, 65535},
                                      {1ull << 32, 4},
                                      {4, 1ull << 32},
                                      {huge, huge},
                                      {huge, 1},
                                      {1ull << 33, 1ull << 31}};
    for (const auto& size : sizes) {
        const Result<FrameShape> shape = make_frame_shape(PixelFormat::gray, size[0], size[1]);
        ASSERT_FALSE(shape.ok()) << size[0] << "x" << size[1];
        EXPECT_EQ(shape.code(), Code::invalid_argument);
        EXPECT_NE(shape.error().message().find(std::to_string(size[0]) + "x"), std::string_view::npos);
        EXPECT_FALSE(shape.error().remedy().empty());
    }
}

TEST(FrameShape, RefusesPitchesThatAreShorterThanARowOrAbsurd) {
    EXPECT_TRUE(make_frame_shape(PixelFormat::yuyv, 5, 2, 12).ok());
    EXPECT_FALSE(make_frame_shape(PixelFormat::yuyv, 5, 2, 11).ok());
    EXPECT_FALSE(make_frame_shape(PixelFormat::nv12, 5, 2, 5).ok());
    EXPECT_FALSE(make_frame_shape(PixelFormat::gray, 5, 2, 4).ok());
    EXPECT_FALSE(make_frame_shape(PixelFormat::gray, 5, 2, huge).ok());
    EXPECT_FALSE(make_frame_shape(PixelFormat::gray, 1, 65535, max_pitch_bytes).ok());
}

TEST(FrameShape, NamesEveryFormatAndKnowsThemByTheirNames) {
    for (const PixelFormat format : {PixelFormat::gray, PixelFormat::nv12, PixelFormat::i420, PixelFormat::yuyv,
                                     PixelFormat::uyvy, PixelFormat::bayer8}) {
        EXPECT_EQ(pixel_format(name(format)), format);
    }
    EXPECT_EQ(pixel_format("rgb"), std::nullopt);
    EXPECT_EQ(pixel_format(""), std::nullopt);
}

TEST(FrameShape, FindsLumaBetweenColourAndBehindPitch) {
    const std::uint8_t packed[] = {1, 90, 2, 91, 3, 92, 4, 93, 0, 0, 5, 90, 6, 91, 7, 92, 8, 93, 0, 0};
    const FrameShape yuyv = make_frame_shape(PixelFormat::yuyv, 4, 2, 10).value();
    EXPECT_EQ(luma(yuyv, packed, 0, 0), 1);
    EXPECT_EQ(luma(yuyv, packed, 3, 0), 4);
    EXPECT_EQ(luma(yuyv, packed, 2, 1), 7);
    const FrameShape uyvy = make_frame_shape(PixelFormat::uyvy, 4, 2, 10).value();
    EXPECT_EQ(luma(uyvy, packed, 3, 1), 93);
    const FrameShape nv12 = make_frame_shape(PixelFormat::nv12, 4, 2, 10).value();
    EXPECT_EQ(luma(nv12, packed, 3, 1), 91);
}

}  // namespace
}  // namespace isthmus::tools::camera
