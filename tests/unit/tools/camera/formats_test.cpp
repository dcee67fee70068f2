// SPDX-License-Identifier: Apache-2.0
// Readers of every format: valid input, input cut at every byte, invalid or absurd input.
#include "read_frames.hpp"

#include "camera/panning.hpp"
#include "camera/picture_config.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace isthmus::tools::camera {
namespace {

const std::string mono_header = "YUV4MPEG2 W3 H2 F30:1 Ip A0:0 Cmono\n";
std::string mono_video() {
    return mono_header + "FRAME\n" + counted_bytes(6) + "FRAME Ip\n" + counted_bytes(6, 100);
}

// Input may be cut before a frame only.
void expect_cuts_to_be_found(const std::string& whole, const std::vector<std::size_t>& good_ends,
                             const InputOptions& options = {}) {
    for (std::size_t end = 0; end < whole.size(); ++end) {
        const Result<ReadFrames> read = read_frames(std::string_view(whole).substr(0, end), options);
        const bool good = std::find(good_ends.begin(), good_ends.end(), end) != good_ends.end();
        EXPECT_EQ(read.ok(), good) << "cut at " << end << ": " << (read.ok() ? "accepted" : read.error().text());
        EXPECT_TRUE(good || read.code() == Code::invalid_argument) << end;
    }
}

void expect_refusal(std::string_view bytes, std::string_view part, const InputOptions& options = {}) {
    const Result<ReadFrames> read = read_frames(bytes, options);
    ASSERT_FALSE(read.ok()) << bytes.substr(0, 60);
    EXPECT_EQ(read.code(), Code::invalid_argument);
    EXPECT_NE(read.error().message().find(part), std::string_view::npos) << read.error().text();
    EXPECT_EQ(read.error().text().find('\n'), std::string::npos) << "one line";
}

TEST(Y4m, GivesTheFramesOfAMonoVideo) {
    const Result<ReadFrames> read = read_frames(mono_video());
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(read->shape.format, PixelFormat::gray);
    EXPECT_EQ(read->shape.width, 3u);
    EXPECT_EQ(read->shape.height, 2u);
    EXPECT_EQ(read->rate.numerator, 30u);
    ASSERT_EQ(read->frames.size(), 2u);
    EXPECT_EQ(read->frames[0], (Frame{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(read->frames[1], (Frame{100, 101, 102, 103, 104, 105}));
}

TEST(Y4m, GivesWholeFramesWithColourOfEvery420Kind) {
    for (const char* colour : {"", " C420", " C420jpeg", " C420mpeg2", " C420paldv"}) {
        const std::string video =
            std::string("YUV4MPEG2 W3 H3 F25:1") + colour + " XYSCSS=420\nFRAME\n" + counted_bytes(9 + 8);
        const Result<ReadFrames> read = read_frames(video);
        ASSERT_TRUE(read.ok()) << colour << read.error().text();
        EXPECT_EQ(read->shape.format, PixelFormat::i420);
        ASSERT_EQ(read->frames.size(), 1u);
        EXPECT_EQ(read->frames[0].size(), 17u);
        EXPECT_EQ(read->frames[0][16], 16);
    }
}

TEST(Y4m, FindsEveryCut) {
    expect_cuts_to_be_found(mono_video(), {mono_header.size(), mono_header.size() + 12});
}

TEST(Y4m, RefusesWhatItsHeaderCannotMean) {
    expect_refusal("YUV4MPEG3 W3 H2\n", "YUV4MPEG2");
    expect_refusal("YUV4MPEG2W3 H2\n", "YUV4MPEG2");
    expect_refusal("YUV4MPEG2\n", "0x0");
    expect_refusal("YUV4MPEG2 W0 H2 Cmono\n", "0x2");
    expect_refusal("YUV4MPEG2 W3 Cmono\n", "3x0");
    expect_refusal("YUV4MPEG2 W-3 H2 Cmono\n", "-3");
    expect_refusal("YUV4MPEG2 W3x H2 Cmono\n", "3x");
    expect_refusal("YUV4MPEG2 W H2 Cmono\n", "width");
    expect_refusal("YUV4MPEG2 W70000 H2 Cmono\n", "too large");
    expect_refusal("YUV4MPEG2 W65535 H65535 Cmono\n", "too large");
    expect_refusal("YUV4MPEG2 W4294967299 H2 Cmono\n", "too large");
    expect_refusal("YUV4MPEG2 W99999999999999999999999 H2 Cmono\n", "width");
    expect_refusal("YUV4MPEG2 W3 H2 F30 Cmono\n", "frame rate");
    expect_refusal("YUV4MPEG2 W3 H2 F30:x Cmono\n", "frame rate");
    expect_refusal("YUV4MPEG2 W3 H2 C444\n", "444");
    expect_refusal("YUV4MPEG2 W3 H2 C420p10\n", "420p10");
    expect_refusal("YUV4MPEG2 W3 H2 " + std::string(2000, 'X') + "\n", "header line");
}

TEST(Y4m, RefusesFramesWithoutTheirLine) {
    expect_refusal(mono_header + "FRAMES\n" + counted_bytes(6), "FRAME line");
    expect_refusal(mono_header + "FRAME\n" + counted_bytes(6) + "\nFRAME\n" + counted_bytes(6), "FRAME line");
    expect_refusal(mono_header + std::string(5000, 'F'), "header line");
}

TEST(Y4m, KeepsTheUsualRateWhereTheHeaderSaysUnknown) {
    const Result<ReadFrames> read = read_frames("YUV4MPEG2 W3 H2 F0:0 Cmono\n");
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(read->rate.numerator, 25u);
    EXPECT_EQ(read->rate.denominator, 1u);
}

TEST(Pnm, GivesGrayPicturesWithCommentsAndAnyWhiteSpace) {
    const Result<ReadFrames> read = read_frames("P5 # gray\n# of 3 by 2\n\t3\r\n2\n255\n" + counted_bytes(6, 7));
    ASSERT_TRUE(read.ok()) << read.error().text();
    ASSERT_EQ(read->frames.size(), 1u);
    EXPECT_EQ(read->frames[0], (Frame{7, 8, 9, 10, 11, 12}));
}

TEST(Pnm, MakesLumaOfColour) {
    const std::string colours("\0\0\0\xff\xff\xff\xff\0\0\0\xff\0\0\0\xff", 15);
    const Result<ReadFrames> read = read_frames("P6\n5 1\n255\n" + colours);
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(read->frames.at(0), (Frame{0, 255, 77, 149, 29}));
}

TEST(Pnm, SaysWhatThePictureIs) {
    for (const std::uint64_t frames : {0u, 3u}) {
        InputOptions options;
        options.frames = frames;
        const std::string file = "P6\n16 8\n255\n" + counted_bytes(3 * 16 * 8);
        Result<std::unique_ptr<FrameReader>> reader = open_frames(from_memory("input", file), options);
        ASSERT_TRUE(reader.ok());
        ASSERT_TRUE((*reader)->picture().has_value());
        EXPECT_EQ((*reader)->picture()->format, "PPM");
        EXPECT_TRUE((*reader)->picture()->colour);
        EXPECT_EQ((*reader)->picture()->width, 16u);
        EXPECT_EQ((*reader)->shape().width, frames == 0 ? 16u : 14u);
    }
}

TEST(Pnm, SpreadsSmallerRangesOverTheWholeOne) {
    const Result<ReadFrames> read = read_frames(std::string("P5\n4 1\n15\n") + std::string("\x00\x0f\x07\xff", 4));
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(read->frames.at(0), (Frame{0, 255, 119, 255}));
}

TEST(Pnm, GivesSeveralPicturesAsAStream) {
    const std::string picture = "P5\n2 2\n255\n" + counted_bytes(4);
    const Result<ReadFrames> read = read_frames(picture + picture + picture);
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(read->frames.size(), 3u);
    expect_cuts_to_be_found(picture + picture, {picture.size()});
    expect_cuts_to_be_found("P6\n2 1\n255\n" + counted_bytes(6), {});
    expect_refusal(picture + "P5\n2 3\n255\n" + counted_bytes(6), "different sizes");
    expect_refusal(picture + "rest", "P5 or P6");
}

TEST(Pnm, RefusesWhatItsHeaderCannotMean) {
    expect_refusal("P2\n2 2\n255\n1 2 3 4\n", "P5 or P6");
    expect_refusal("P5\n0 2\n255\n", "0x2");
    expect_refusal("P5\n2 0\n255\n", "2x0");
    expect_refusal("P5\n-2 2\n255\n", "number");
    expect_refusal("P5\n2 2\n0\n....", "greatest value");
    expect_refusal("P5\n2 2\n65535\n........", "greatest value");
    expect_refusal("P5\n70000 2\n255\n", "too large");
    expect_refusal("P5\n65535 65535\n255\n", "too large");
    expect_refusal("P5\n99999999999999999999 2\n255\n", "absurdly large");
    expect_refusal("P5\n2 2\n255x....", "number");
    expect_refusal("P5\n2,2\n255\n....", "number");
}

TEST(Input, IsRefusedWhereItsFormatIsUnknown) {
    expect_refusal("", "empty");
    expect_refusal("GIF89a....", "neither");
    expect_refusal("\x01\x02", "neither");
}

TEST(Input, SaysWhatThisBuildCannotRead) {
    if (with_jpeg && with_png) GTEST_SKIP() << "built with libjpeg and libpng";
    for (const auto& [known, bytes, library] :
         {std::tuple{with_jpeg, "\xff\xd8\xff\xe0", "libjpeg"}, std::tuple{with_png, "\x89PNG\r\n\x1a\n", "libpng"}}) {
        const Result<ReadFrames> read = read_frames(bytes);
        ASSERT_FALSE(read.ok());
        if (known) continue;
        EXPECT_EQ(read.code(), Code::unsupported);
        EXPECT_NE(read.error().message().find(library), std::string_view::npos) << read.error().text();
        EXPECT_FALSE(read.error().remedy().empty());
    }
}

TEST(RawFrames, ComeOneAfterTheOtherInTheStatedShape) {
    InputOptions options;
    options.raw = make_frame_shape(PixelFormat::yuyv, 2, 2, 6).value();
    const std::string bytes = counted_bytes(24);
    const Result<ReadFrames> read = read_frames(bytes, options);
    ASSERT_TRUE(read.ok()) << read.error().text();
    ASSERT_EQ(read->frames.size(), 2u);
    EXPECT_EQ(read->frames[1][0], 12);
    expect_cuts_to_be_found(bytes, {0, 12}, options);
}

TEST(RawFrames, MayLookLikeAnything) {
    InputOptions options;
    options.raw = make_frame_shape(PixelFormat::gray, 3, 1).value();
    const Result<ReadFrames> read = read_frames("P5\nYUV", options);
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(read->frames.size(), 2u);
}

TEST(FrameLimit, EndsAStreamEarlyAndNeverAddsToIt) {
    for (const std::uint64_t frames : {1u, 2u, 3u}) {
        InputOptions options;
        options.frames = frames;
        const Result<ReadFrames> read = read_frames(mono_video(), options);
        ASSERT_TRUE(read.ok()) << read.error().text();
        EXPECT_EQ(read->frames.size(), std::min<std::uint64_t>(frames, 2));
    }
}

TEST(Panning, MakesAStreamOfOnePictureTheSameWayEveryTime) {
    const std::string picture = "P5\n16 16\n255\n" + counted_bytes(256);
    InputOptions options;
    options.frames = 5;
    const Result<ReadFrames> first = read_frames(picture, options);
    const Result<ReadFrames> second = read_frames(picture, options);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first->shape.width, 14u);
    EXPECT_EQ(first->shape.height, 14u);
    ASSERT_EQ(first->frames.size(), 5u);
    EXPECT_EQ(first->frames, second->frames);
    for (std::uint64_t frame = 0; frame < 5; ++frame) {
        const WindowPlace place = window_place(frame, 2, 2);
        EXPECT_EQ(first->frames[frame][0], place.y * 16 + place.x) << frame;
        EXPECT_EQ(first->frames[frame].back(), (place.y + 13) * 16 + place.x + 13) << frame;
    }
}

TEST(Panning, StaysInsideAndComesBackFromEveryEdge) {
    std::uint32_t max_x = 0, max_y = 0;
    for (std::uint64_t frame = 0; frame < 1000; ++frame) {
        const WindowPlace place = window_place(frame, 30, 8);
        ASSERT_LE(place.x, 30u);
        ASSERT_LE(place.y, 8u);
        max_x = std::max(max_x, place.x);
        max_y = std::max(max_y, place.y);
    }
    EXPECT_EQ(max_x, 30u);
    EXPECT_EQ(max_y, 8u);
    EXPECT_EQ(window_place(11, 30, 8).x, 27u);  // 33 is 3 beyond the edge
    const WindowPlace still = window_place(123, 0, 0);
    EXPECT_EQ(still.x + still.y, 0u);
}

TEST(Panning, LeavesTinyPicturesWhole) {
    InputOptions options;
    options.frames = 3;
    const Result<ReadFrames> read = read_frames("P5\n1 1\n255\nx", options);
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(read->frames, (std::vector<Frame>{{'x'}, {'x'}, {'x'}}));
}

}  // namespace
}  // namespace isthmus::tools::camera
