// SPDX-License-Identifier: Apache-2.0
// PNG pictures: every kind as its shown luma; damaged and hostile files refused; written files complete.
#include "camera/picture_config.hpp"
#include "made_png.hpp"
#include "read_frames.hpp"

#include <gtest/gtest.h>

namespace isthmus::tools::camera {
namespace {

class Png : public ::testing::Test {
protected:
    void SetUp() override {
        if (!with_png) GTEST_SKIP() << "built without libpng";
    }
    static Frame frame_of(std::string_view file) {
        const Result<ReadFrames> read = read_frames(file);
        EXPECT_TRUE(read.ok()) << read.error().text();
        return read.ok() && read->frames.size() == 1 ? read->frames[0] : Frame();
    }
    static void expect_refusal(std::string_view file, std::string_view part) {
        const Result<ReadFrames> read = read_frames(file);
        ASSERT_FALSE(read.ok()) << part;
        EXPECT_EQ(read.code(), Code::invalid_argument);
        EXPECT_NE(read.error().message().find(part), std::string_view::npos) << read.error().text();
        EXPECT_EQ(read.error().text().find('\n'), std::string::npos) << "one line";
    }
};

std::string noise(std::size_t count) {
    std::string bytes;
    std::uint32_t state = 7;
    for (std::size_t at = 0; at < count; ++at) {
        state = state * 1664525u + 1013904223u;
        bytes.push_back(static_cast<char>(state >> 24));
    }
    return bytes;
}

TEST_F(Png, GivesWhatTheSamePpmAndPgmGive) {
    const std::string colours = noise(3 * 13 * 11), grays = noise(13 * 11);
    const Frame of_ppm = frame_of("P6\n13 11\n255\n" + colours), of_pgm = frame_of("P5\n13 11\n255\n" + grays);
    for (const bool interlaced : {false, true}) {
        const PngKind colour{.width = 13, .height = 11, .colour = 2, .interlaced = interlaced};
        EXPECT_EQ(frame_of(png_of(colour, png_rows(colour, colours))), of_ppm) << interlaced;
        const PngKind gray{.width = 13, .height = 11, .interlaced = interlaced};
        EXPECT_EQ(frame_of(png_of(gray, png_rows(gray, grays))), of_pgm) << interlaced;
    }
}

TEST_F(Png, WeavesInterlacedPicturesOfEverySmallSize) {
    for (std::uint32_t width = 1; width < 10; ++width) {
        for (std::uint32_t height = 1; height < 10; ++height) {
            const std::string grays = noise(width * height);
            const PngKind kind{.width = width, .height = height, .interlaced = true};
            EXPECT_EQ(frame_of(png_of(kind, png_rows(kind, grays))), Frame(grays.begin(), grays.end()))
                << width << "x" << height;
        }
    }
}

TEST_F(Png, SpreadsFewBitsAndRoundsMany) {
    EXPECT_EQ(frame_of(png_of({.width = 4, .height = 1, .depth = 1}, std::string("\0\x50", 2))),
              (Frame{0, 255, 0, 255}));
    EXPECT_EQ(frame_of(png_of({.width = 4, .height = 1, .depth = 2}, std::string("\0\x1b", 2))),
              (Frame{0, 85, 170, 255}));
    EXPECT_EQ(frame_of(png_of({.width = 2, .height = 1, .depth = 4}, std::string("\0\x1f", 2))), (Frame{17, 255}));
    EXPECT_EQ(
        frame_of(png_of({.width = 4, .height = 1, .depth = 16}, std::string("\0\0\0\x80\x7f\x80\x81\xff\xff", 9))),
        (Frame{0, 128, 128, 255}));
    EXPECT_EQ(
        frame_of(png_of({.width = 1, .height = 1, .depth = 16, .colour = 2}, std::string("\0\xff\xff\0\0\0\0", 7))),
        (Frame{77}));
}

TEST_F(Png, TakesTheColoursOfPalettes) {
    PngKind kind{.width = 3, .height = 1, .depth = 2, .colour = 3};
    kind.before_pixels = png_chunk("PLTE", std::string("\xff\0\0\0\xff\0\0\0\xff", 9));
    EXPECT_EQ(frame_of(png_of(kind, std::string("\0\x18", 2))), (Frame{77, 149, 29}));
    kind.before_pixels += png_chunk("tRNS", std::string("\xff\0", 2));  // the second entry is transparent
    EXPECT_EQ(frame_of(png_of(kind, std::string("\0\x18", 2))), (Frame{77, 255, 29}));
}

TEST_F(Png, ShowsWhiteBehindWhatIsTransparent) {
    EXPECT_EQ(frame_of(png_of({.width = 3, .height = 1, .colour = 4}, std::string("\0\x64\xff\x64\0\x64\x80", 7))),
              (Frame{100, 255, 177}));
    EXPECT_EQ(frame_of(png_of({.width = 2, .height = 1, .colour = 6}, std::string("\0\xff\0\0\xff\xff\0\0\0", 9))),
              (Frame{77, 255}));
    PngKind keyed{.width = 2, .height = 1};
    keyed.before_pixels = png_chunk("tRNS", std::string("\0\x64", 2));
    EXPECT_EQ(frame_of(png_of(keyed, std::string("\0\x64\x65", 3))), (Frame{255, 101}));
}

TEST_F(Png, TakesSamplesAsTheyAreWhateverIsSaidOfGamma) {
    PngKind kind{.width = 2, .height = 1, .colour = 2};
    const std::string rows("\0\x10\x20\x30\x80\x90\xa0", 7);
    const Frame plain = frame_of(png_of(kind, rows));
    kind.before_pixels = png_chunk("gAMA", big_endian(100000)) + png_chunk("sRGB", std::string(1, '\0')) +
                         png_chunk("cHRM", std::string(32, '\x01'));
    EXPECT_EQ(frame_of(png_of(kind, rows)), plain);
}

TEST_F(Png, IsOnePictureThatCanBePannedAndSaysWhatItIs) {
    const std::string grays = noise(16 * 16);
    const PngKind kind{.width = 16, .height = 16};
    const std::string file = png_of(kind, png_rows(kind, grays));
    InputOptions options;
    options.frames = 4;
    const Result<ReadFrames> png = read_frames(file, options), pgm = read_frames("P5\n16 16\n255\n" + grays, options);
    ASSERT_TRUE(png.ok() && pgm.ok());
    EXPECT_EQ(png->frames, pgm->frames);
    EXPECT_EQ(png->frames.size(), 4u);
    EXPECT_EQ(frame_of(file + "whatever follows"), frame_of(file));
    for (const std::uint64_t frames : {0u, 4u}) {
        options.frames = frames;
        Result<std::unique_ptr<FrameReader>> reader = open_frames(from_memory("input", file), options);
        ASSERT_TRUE(reader.ok());
        const std::optional<PictureFacts> facts = (*reader)->picture();
        ASSERT_TRUE(facts.has_value());
        EXPECT_EQ(facts->format, "PNG");
        EXPECT_FALSE(facts->colour);
        EXPECT_EQ(facts->width, 16u);
    }
}

TEST_F(Png, FindsEveryCut) {
    for (const bool interlaced : {false, true}) {
        const PngKind kind{.width = 9, .height = 5, .colour = 2, .interlaced = interlaced};
        const std::string file = png_of(kind, png_rows(kind, noise(3 * 9 * 5)));
        for (std::size_t end = 1; end < file.size(); ++end) {
            const Result<ReadFrames> read = read_frames(std::string_view(file).substr(0, end));
            ASSERT_FALSE(read.ok()) << "cut at " << end;
            EXPECT_EQ(read.code(), Code::invalid_argument);
        }
        expect_refusal(file.substr(0, file.size() - 1), "truncated");
    }
}

TEST_F(Png, RefusesDamage) {
    const PngKind kind{.width = 9, .height = 5};
    std::string file = png_of(kind, png_rows(kind, noise(9 * 5)));
    file[file.size() - 20] = static_cast<char>(file[file.size() - 20] ^ 1);  // in the pixels: the checksum detects it
    expect_refusal(file, "no PNG picture that can be read");
    expect_refusal("\x89PNG\r\n\x1a\n", "truncated");
    expect_refusal("\x89nothing of the kind", "no PNG picture that can be read");
    expect_refusal(png_header(kind) + png_chunk("IEND", ""), "no PNG picture that can be read");
    expect_refusal(png_of({.width = 9, .height = 5}, noise(10)), "no PNG picture that can be read");
    expect_refusal(png_of({.width = 1, .height = 1, .depth = 7}, std::string(2, '\0')), "no PNG picture");
    expect_refusal(png_of({.width = 1, .height = 1, .colour = 3}, std::string(2, '\0')), "no PNG picture");
}

TEST_F(Png, RefusesSizesThatNoFrameHasBeforeItReadsPixels) {
    expect_refusal(png_header({.width = 65536, .height = 1}) + png_chunk("IDAT", ""), "too large");
    expect_refusal(png_header({.width = 65535, .height = 65535}) + png_chunk("IDAT", ""), "too large");
    expect_refusal(png_header({.width = 0x7fffffff, .height = 0x7fffffff}) + png_chunk("IDAT", ""), "");
    expect_refusal(png_header({.width = 0, .height = 4}) + png_chunk("IDAT", ""), "");
    // The largest allowed frame, and nothing after the header: no memory is allocated for it.
    for (const bool interlaced : {false, true}) {
        expect_refusal(png_header({.width = 65535, .height = 2048, .interlaced = interlaced}) + png_chunk("IDAT", ""),
                       "");
    }
}

}  // namespace
}  // namespace isthmus::tools::camera
