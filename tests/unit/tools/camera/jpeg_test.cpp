// SPDX-License-Identifier: Apache-2.0
// JPEG pictures: the stored luma, in the right orientation; damaged and hostile files are refused.
#include "camera/digest.hpp"
#include "camera/exif.hpp"
#include "made_jpeg.hpp"
#include "read_frames.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <numeric>

namespace isthmus::tools::camera {
namespace {

std::string pattern(std::uint32_t width, std::uint32_t height) {
    std::string bytes;
    for (std::uint32_t y = 0; y < height; ++y) {
        for (std::uint32_t x = 0; x < width; ++x) bytes.push_back(static_cast<char>(40 + 7 * x + 3 * y + x * y / 4));
    }
    return bytes;
}

Frame frame_of(std::string_view file) {
    const Result<ReadFrames> read = read_frames(file);
    EXPECT_TRUE(read.ok()) << read.error().text();
    return read.ok() && read->frames.size() == 1 ? read->frames[0] : Frame();
}

void expect_refusal(std::string_view file, std::string_view part) {
    const Result<ReadFrames> read = read_frames(file);
    ASSERT_FALSE(read.ok()) << part;
    EXPECT_EQ(read.code(), Code::invalid_argument);
    EXPECT_NE(read.error().message().find(part), std::string_view::npos) << read.error().text();
    EXPECT_EQ(read.error().text().find('\n'), std::string::npos) << "one line";
}

TEST(Jpeg, GivesAGrayPictureNearlyAsItWas) {
    const std::string grays = pattern(21, 13);
    const Frame frame = frame_of(jpeg_of({.width = 21, .height = 13}, grays));
    ASSERT_EQ(frame.size(), grays.size());
    for (std::size_t at = 0; at < frame.size(); ++at)
        EXPECT_NEAR(frame[at], static_cast<std::uint8_t>(grays[at]), 2) << at;
}

// The colour beside it changes nothing, at any resolution: corners need no upsampling and no conversion.
TEST(Jpeg, TakesTheLumaThatIsStored) {
    const std::string grays = pattern(21, 13);
    const Frame of_gray = frame_of(jpeg_of({.width = 21, .height = 13}, grays));
    std::string colours;
    for (const char gray : grays) colours += {gray, static_cast<char>(gray * 3), static_cast<char>(255 - gray)};
    for (const int subsampling : {1, 2}) {
        const JpegKind kind{
            .width = 21, .height = 13, .samples = JCS_YCbCr, .stored = JCS_YCbCr, .subsampling = subsampling};
        EXPECT_EQ(frame_of(jpeg_of(kind, colours)), of_gray) << subsampling;
    }
}

TEST(Jpeg, ReadsProgressiveFilesAsTheOthers) {
    const std::string grays = pattern(21, 13);
    JpegKind kind{.width = 21, .height = 13, .quality = 80};
    const Frame sequential = frame_of(jpeg_of(kind, grays));
    kind.progressive = true;
    EXPECT_EQ(frame_of(jpeg_of(kind, grays)), sequential);
}

TEST(Jpeg, ComputesTheLumaOfStoredRgb) {
    std::string colours;
    for (int pixel = 0; pixel < 64; ++pixel) colours += {'\xc8', '\x64', '\x32'};
    const Frame frame = frame_of(jpeg_of({.width = 8, .height = 8, .samples = JCS_RGB, .stored = JCS_RGB}, colours));
    EXPECT_EQ(frame, Frame(64, luma_of_rgb(200, 100, 50)));
}

TEST(Jpeg, RefusesPicturesForPrintPlainly) {
    const std::string inks(8 * 8 * 4, '\x40');
    for (const J_COLOR_SPACE stored : {JCS_CMYK, JCS_YCCK})
        expect_refusal(jpeg_of({.width = 8, .height = 8, .samples = JCS_CMYK, .stored = stored}, inks), "CMYK");
}

TEST(Jpeg, IsTurnedTheRightWayUp) {
    const std::string grays = pattern(16, 8);
    const Frame stored = frame_of(jpeg_of({.width = 16, .height = 8}, grays));
    for (int number = 1; number <= 8; ++number) {
        for (const bool little : {true, false}) {
            const std::string file = jpeg_of({.width = 16, .height = 8, .app1 = exif_segment(number, little)}, grays);
            PictureFacts facts{"JPEG", false, 16, 8};
            const Frame turned = made_upright(facts, stored, static_cast<Orientation>(number));
            const Result<ReadFrames> read = read_frames(file);
            ASSERT_TRUE(read.ok());
            EXPECT_EQ(read->frames.at(0), turned) << number;
            EXPECT_EQ(read->shape.width, number < 5 ? 16u : 8u) << number;
        }
    }
}

TEST(Orientation, PutsEveryPixelWhereExifSays) {
    // Stored as "ab / cd / ef"; the shown picture, row by row.
    const char* const looks[] = {"abcdef", "badcfe", "fedcba", "efcdab", "acebdf", "ecafdb", "fdbeca", "bdface"};
    for (int number = 1; number <= 8; ++number) {
        PictureFacts facts{"JPEG", false, 2, 3};
        const Frame turned = made_upright(facts, {'a', 'b', 'c', 'd', 'e', 'f'}, static_cast<Orientation>(number));
        EXPECT_EQ(std::string(turned.begin(), turned.end()), looks[number - 1]) << number;
        EXPECT_EQ(facts.width, number < 5 ? 2u : 3u);
        EXPECT_EQ(facts.height, number < 5 ? 3u : 2u);
    }
}

TEST(Orientation, IsUprightWhereTheSegmentSaysNothingThatHolds) {
    const auto of = [](std::string_view text) {
        return exif_orientation({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    };
    for (const bool little : {true, false}) {
        const std::string good = exif_segment(6, little);
        EXPECT_EQ(of(good), Orientation::quarter_turn);
        for (std::size_t end = 0; end < good.size() - 8; ++end)
            EXPECT_EQ(of(std::string_view(good).substr(0, end)), Orientation::upright) << end;
        EXPECT_EQ(of(exif_segment(0, little)), Orientation::upright);
        EXPECT_EQ(of(exif_segment(9, little)), Orientation::upright);
    }
    EXPECT_EQ(of(std::string("Exif\0\0II*\0\xff\xff\xff\xff", 14)), Orientation::upright) << "beyond the end";
    EXPECT_EQ(of("http://ns.adobe.com/xap/1.0/"), Orientation::upright);
}

TEST(Jpeg, IsOnePictureWhateverFollows) {
    const std::string file = jpeg_of({.width = 16, .height = 16}, pattern(16, 16));
    EXPECT_EQ(frame_of(file + file), frame_of(file));
    InputOptions options;
    options.frames = 3;
    const Result<ReadFrames> panned = read_frames(file, options);
    ASSERT_TRUE(panned.ok());
    EXPECT_EQ(panned->frames.size(), 3u);
    EXPECT_EQ(panned->shape.width, 14u);
}

TEST(Jpeg, FindsEveryCut) {
    for (const bool progressive : {false, true}) {
        const std::string file = jpeg_of({.width = 21, .height = 13, .progressive = progressive}, pattern(21, 13));
        for (std::size_t end = 1; end < file.size(); ++end) {
            const Result<ReadFrames> read = read_frames(std::string_view(file).substr(0, end));
            ASSERT_FALSE(read.ok()) << "cut at " << end;
            EXPECT_EQ(read.code(), Code::invalid_argument);
        }
        expect_refusal(file.substr(0, file.size() - 1), "truncated");
    }
}

TEST(Jpeg, RefusesDamageAndAcceptsWhatHarmsNoPixel) {
    const std::string grays = pattern(24, 24);
    const JpegKind kind{.width = 24, .height = 24, .restart_rows = 1};
    const std::string file = jpeg_of(kind, grays);
    std::string damaged = file;
    const std::size_t restart = damaged.find("\xff\xd0");
    ASSERT_NE(restart, std::string::npos);
    expect_refusal(damaged.erase(restart, 2), "can be read: ");
    std::string padded = file;
    padded.insert(padded.size() - 2, 2, '\0');  // as some cameras write it
    EXPECT_EQ(frame_of(padded), frame_of(file));
    expect_refusal("\xff\xd8\xff\xd9", "can be read: ");
    expect_refusal("\xff\xfe nothing of the kind", "can be read: ");
    std::string twelve_bits = file;
    const std::size_t frame_header = file.find("\xff\xc0");
    ASSERT_NE(frame_header, std::string::npos);
    twelve_bits[frame_header + 4] = 12;
    expect_refusal(twelve_bits, "12");
}

TEST(Jpeg, RefusesSizesThatNoFrameHas) {
    std::string file = jpeg_of({.width = 8, .height = 8}, pattern(8, 8));
    const std::size_t header = file.find("\xff\xc0");
    ASSERT_NE(header, std::string::npos);
    file.replace(header + 5, 4, "\xff\x00\xff\x00", 4);  // 65280 × 65280
    expect_refusal(file, "too large");
    file.replace(header + 5, 4, "\x08\x00\xff\x00", 4);  // the largest allowed frame: then truncated
    expect_refusal(file, "");
    file.replace(header + 5, 4, std::string(4, '\0'));
    expect_refusal(file, "");
}

// Each scan of a few bytes covers all pixels, so that a small file could take hours.
TEST(Jpeg, RefusesScansWithoutEnd) {
    const auto in_scans = [](bool refined) {
        std::vector<jpeg_scan_info> script;
        script.push_back({1, {0}, 0, 0, 0, 0});
        for (int at = 1; at < 64; ++at) script.push_back({1, {0}, at, at, 0, refined ? 1 : 0});
        for (int at = 1; refined && at < 64; ++at) script.push_back({1, {0}, at, at, 1, 0});
        return jpeg_of({.width = 16, .height = 16, .script = script}, pattern(16, 16));
    };
    EXPECT_EQ(frame_of(in_scans(false)), frame_of(jpeg_of({.width = 16, .height = 16}, pattern(16, 16))));
    expect_refusal(in_scans(true), "more than 100 scans");
}

// keeps what `isthmus run` says of itself: the same bits on every machine and with every libjpeg
TEST(Jpeg, GivesTheseBitsEverywhere) {
    const struct {
        const char* file;
        const char* digest;
    } known[] = {{"jpeg_colour", "2081a97f8321014f"}, {"jpeg_progressive", "2081a97f8321014f"}};
    for (const auto& each : known) {
        std::ifstream stream(std::string(ISTHMUS_CORPUS_FOLDER "/") + each.file, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
        ASSERT_FALSE(bytes.empty()) << each.file;
        Digest digest;
        for (const std::uint8_t pixel : frame_of(std::string_view(bytes).substr(1))) digest.add(pixel);
        EXPECT_EQ(digest.text(), each.digest) << each.file;
    }
}

}  // namespace
}  // namespace isthmus::tools::camera
