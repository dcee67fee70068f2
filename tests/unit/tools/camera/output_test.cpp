// SPDX-License-Identifier: Apache-2.0
// The output of a run: drawings, videos, pictures and lists, as complete files or not at all.
#include "camera/atomic_file.hpp"
#include "camera/canvas.hpp"
#include "camera/corner_list_writer.hpp"
#include "camera/overlay_writer.hpp"
#include "camera/picture_config.hpp"
#include "camera/picture_encoders.hpp"
#include "camera/progress.hpp"
#include "camera/stage_times.hpp"
#include "camera/summary.hpp"
#include "read_frames.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

namespace isthmus::tools::camera {
namespace {

namespace fs = std::filesystem;

class Output : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "isthmus-output-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { fs::remove_all(folder_); }

    std::string path(const char* name) const { return (folder_ / name).string(); }
    static std::string content(const std::string& path) {
        std::stringstream text;
        text << std::ifstream(path, std::ios::binary).rdbuf();
        return text.str();
    }
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
            names.push_back(entry.path().filename().string());
        std::sort(names.begin(), names.end());
        return names;
    }
    static Result<void> commit(Result<AtomicFile>& file) {
        OutputFiles files;
        if (Result<void> added = files.add(std::move(*file)); !added) return added;
        return files.commit();
    }
    static Result<std::vector<std::string>> commit(OverlayWriter& writer) {
        OutputFiles files;
        Result<std::vector<std::string>> names = writer.finish(files);
        if (!names) return names;
        if (Result<void> done = files.commit(); !done) return std::move(done).error();
        return names;
    }
    fs::path folder_;
};
using Names = std::vector<std::string>;

Colour at(const Canvas& canvas, std::uint32_t x, std::uint32_t y) {
    return canvas.pixels()[std::size_t{y} * canvas.width() + x];
}
bool same(Colour a, Colour b) {
    return a.red == b.red && a.green == b.green && a.blue == b.blue;
}
constexpr Colour black{0, 0, 0}, red{255, 0, 0};

TEST(Canvas, ShowsTheLumaOfAFrame) {
    const FrameShape shape = make_frame_shape(PixelFormat::yuyv, 2, 2).value();
    const std::uint8_t frame[] = {10, 0, 20, 0, 30, 0, 40, 0};
    Canvas canvas(2, 2);
    canvas.show(shape, frame);
    EXPECT_TRUE(same(at(canvas, 1, 0), {20, 20, 20}));
    EXPECT_TRUE(same(at(canvas, 0, 1), {30, 30, 30}));
}

TEST(Canvas, DrawsSquaresAndLinesAndLeavesOutWhatLiesOutside) {
    Canvas canvas(9, 9);
    canvas.square({4, 4}, 2, red);
    for (std::uint32_t y = 0; y < 9; ++y) {
        for (std::uint32_t x = 0; x < 9; ++x) {
            const bool inside = x >= 2 && x <= 6 && y >= 2 && y <= 6;
            const bool edge = inside && (x == 2 || x == 6 || y == 2 || y == 6);
            EXPECT_TRUE(same(at(canvas, x, y), edge ? red : black)) << x << "," << y;
        }
    }
    Canvas corner(3, 3);
    corner.square({0, 0}, 1, red);
    corner.square({200, 200}, 3, red);
    EXPECT_TRUE(same(at(corner, 1, 1), red));
    EXPECT_TRUE(same(at(corner, 0, 0), black));
    Canvas lines(5, 5);
    lines.line({0, 4}, {4, 0}, red);
    lines.line({0, 0}, {0, 0}, red);
    for (std::uint32_t step = 0; step < 5; ++step) EXPECT_TRUE(same(at(lines, step, 4 - step), red)) << step;
    EXPECT_TRUE(same(at(lines, 0, 0), red));
}

TEST(Canvas, TellsNewCornersFromTrackedOnes) {
    TrackedCorner fresh, tracked;
    fresh.item.corner = {8, 8, 1};
    tracked.item.corner = {24, 8, 1};
    tracked.previous = 0;
    tracked.trail_length = 1;
    tracked.trail[0] = {24, 20};
    Canvas canvas(32, 32);
    draw_corners(canvas, std::vector{fresh, tracked});
    EXPECT_FALSE(same(at(canvas, 5, 5), black));
    EXPECT_FALSE(same(at(canvas, 5, 5), at(canvas, 21, 5)));
    EXPECT_FALSE(same(at(canvas, 24, 16), black)) << "the trail";
    EXPECT_TRUE(same(at(canvas, 8, 16), black)) << "no trail behind a new corner";
}

TEST_F(Output, AppearsWhenCommittedAndNotBefore) {
    Result<AtomicFile> file = AtomicFile::create(path("a.txt"));
    ASSERT_TRUE(file.ok()) << file.error().text();
    ASSERT_TRUE(file->write("hello").ok());
    EXPECT_FALSE(fs::exists(path("a.txt")));
    ASSERT_TRUE(commit(file).ok());
    EXPECT_EQ(content(path("a.txt")), "hello");
    EXPECT_EQ(files(), Names{"a.txt"});
    struct stat facts {};
    ASSERT_EQ(::stat(path("a.txt").c_str(), &facts), 0);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    EXPECT_EQ(facts.st_mode & 0777, 0666u & ~mask) << "as readable as any other file";
}

TEST_F(Output, LeavesTheOldFileWhereItIsNotCommitted) {
    std::ofstream(path("a.txt")) << "old";
    {
        Result<AtomicFile> file = AtomicFile::create(path("a.txt"));
        ASSERT_TRUE(file.ok());
        ASSERT_TRUE(file->write(std::string(1 << 20, 'x')).ok());
    }
    EXPECT_EQ(content(path("a.txt")), "old");
    EXPECT_EQ(files(), Names{"a.txt"});
}

TEST_F(Output, ReplacesTheFileThatALinkNamesAndKeepsTheLink) {
    std::ofstream(path("a.txt")) << "old";
    fs::create_symlink("a.txt", path("link"));
    Result<AtomicFile> file = AtomicFile::create(path("link"));
    ASSERT_TRUE(file.ok() && file->write("new").ok() && commit(file).ok());
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_EQ(content(path("a.txt")), "new");
}

TEST_F(Output, GoesStraightIntoDevicesAndReportsFullOnes) {
    if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
    Result<AtomicFile> null = AtomicFile::create("/dev/null");
    ASSERT_TRUE(null.ok() && null->write("gone").ok() && commit(null).ok());
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    Result<AtomicFile> full = AtomicFile::create("/dev/full");
    ASSERT_TRUE(full.ok() && full->write("more").ok());
    const Result<void> done = commit(full);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().driver_code(), ENOSPC);
}

TEST_F(Output, KeepsTheModeOfTheFileThatItReplaces) {
    for (const mode_t mode : {mode_t{0600}, mode_t{0640}, mode_t{0666}}) {
        std::ofstream(path("a.txt")) << "old";
        ASSERT_EQ(::chmod(path("a.txt").c_str(), mode), 0);
        Result<AtomicFile> file = AtomicFile::create(path("a.txt"));
        ASSERT_TRUE(file.ok() && file->write("new").ok() && commit(file).ok());
        struct stat facts {};
        ASSERT_EQ(::stat(path("a.txt").c_str(), &facts), 0);
        EXPECT_EQ(facts.st_mode & 0777, mode);
        EXPECT_EQ(content(path("a.txt")), "new");
    }
}

TEST_F(Output, GoesWhereALinkLeadsAlsoToWhereNothingIsYet) {
    fs::create_symlink("later.txt", path("link"));
    Result<AtomicFile> file = AtomicFile::create(path("link"));
    ASSERT_TRUE(file.ok() && file->write("new").ok() && commit(file).ok());
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_EQ(content(path("later.txt")), "new");
    EXPECT_EQ(files(), (Names{"later.txt", "link"}));
}

// If one of several files cannot get its name, the others stay as they were before.
TEST_F(Output, OfSeveralFilesIsWholeOrNotAtAll) {
    std::ofstream(path("b.txt")) << "old";
    OutputFiles output;
    for (const char* name : {"a.txt", "b.txt", "c.txt"}) {
        Result<AtomicFile> file = AtomicFile::create(path(name));
        ASSERT_TRUE(file.ok() && file->write("new").ok());
        if (name[0] == 'a') {
            ASSERT_TRUE(file->finish().ok());
        }
        ASSERT_TRUE(output.add(std::move(*file)).ok());
    }
    fs::create_directory(path("c.txt"));
    const Result<void> done = output.commit();
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().driver_code(), EISDIR);
    EXPECT_EQ(files(), (Names{"b.txt", "c.txt"}));
    EXPECT_EQ(content(path("b.txt")), "old");
    EXPECT_TRUE(fs::is_directory(path("c.txt")));
}

TEST_F(Output, OfSeveralFilesRefusesTheSameFileTwice) {
    std::ofstream(path("a.txt")) << "old";
    fs::create_symlink("a.txt", path("link"));
    OutputFiles output;
    for (const char* name : {"a.txt", "b.txt"}) {
        Result<AtomicFile> file = AtomicFile::create(path(name));
        ASSERT_TRUE(file.ok() && output.add(std::move(*file)).ok());
    }
    for (const char* name : {"a.txt", "link", "./b.txt"}) {
        Result<AtomicFile> file = AtomicFile::create(path(name));
        ASSERT_TRUE(file.ok());
        EXPECT_EQ(output.add(std::move(*file)).code(), Code::invalid_argument) << name;
    }
    ASSERT_TRUE(output.commit().ok());
    EXPECT_EQ(files(), (Names{"a.txt", "b.txt", "link"}));
    EXPECT_EQ(content(path("a.txt")), "");
}

TEST_F(Output, IsRefusedWhereItIsADirectory) {
    const Result<AtomicFile> file = AtomicFile::create(folder_.string());
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.code(), Code::invalid_argument);
}

TEST_F(Output, IsRefusedWhereTheFolderIsMissing) {
    const Result<AtomicFile> file = AtomicFile::create(path("missing/a.txt"));
    ASSERT_FALSE(file.ok());
    EXPECT_NE(file.error().message().find("missing/a.txt"), std::string_view::npos);
}

TEST_F(Output, IsAVideoThatReadsBack) {
    Result<std::unique_ptr<OverlayWriter>> writer = open_overlay(path("v.y4m"), 2, 1, {30, 2});
    ASSERT_TRUE(writer.ok()) << writer.error().text();
    Canvas canvas(2, 1);
    canvas.dot(0, 0, {255, 255, 255});
    canvas.dot(1, 0, red);
    ASSERT_TRUE((*writer)->write(canvas).ok());
    ASSERT_TRUE((*writer)->write(Canvas(2, 1)).ok());
    const Result<Names> names = commit(**writer);
    ASSERT_TRUE(names.ok());
    EXPECT_EQ(*names, Names{path("v.y4m")});
    EXPECT_EQ(content(path("v.y4m")), std::string("YUV4MPEG2 W2 H1 F30:2 Ip A1:1 C444 XCOLORRANGE=FULL\n"
                                                  "FRAME\n\xff\x4c\x80\x55\x80\xff"
                                                  "FRAME\n\0\0\x80\x80\x80\x80",
                                                  52 + 12 + 12));
}

TEST_F(Output, IsOnePictureOfThatNameOrManyNumberedOnes) {
    Canvas canvas(2, 1);
    canvas.dot(1, 0, red);
    for (const int frames : {1, 3}) {
        Result<std::unique_ptr<OverlayWriter>> writer = open_overlay(path("p.ppm"), 2, 1, {});
        ASSERT_TRUE(writer.ok()) << writer.error().text();
        for (int frame = 0; frame < frames; ++frame) ASSERT_TRUE((*writer)->write(canvas).ok());
        const Result<Names> names = commit(**writer);
        ASSERT_TRUE(names.ok());
        EXPECT_EQ(names->size(), static_cast<std::size_t>(frames));
        for (const std::string& name : *names)
            EXPECT_EQ(content(name), std::string("P6\n2 1\n255\n\0\0\0\xff\0\0", 17));
    }
    EXPECT_EQ(files(), (Names{"p-0000.ppm", "p-0001.ppm", "p-0002.ppm", "p.ppm"}));
}

TEST_F(Output, IsGrayInPgmFiles) {
    Result<std::unique_ptr<OverlayWriter>> writer = open_overlay(path("p.pgm"), 2, 1, {});
    ASSERT_TRUE(writer.ok()) << writer.error().text();
    Canvas canvas(2, 1);
    canvas.dot(0, 0, {9, 9, 9});
    canvas.dot(1, 0, red);
    ASSERT_TRUE((*writer)->write(canvas).ok() && commit(**writer).ok());
    const Result<ReadFrames> read = read_frames(content(path("p.pgm")));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->frames.at(0), (Frame{9, 76}));
}

TEST_F(Output, IsAPngPictureThatReadsBackToTheBit) {
    if (!with_png) GTEST_SKIP() << "built without libpng";
    Canvas canvas(37, 19);
    for (std::int32_t at = 0; at < 19; ++at) canvas.line({0, 0}, {36, static_cast<std::uint16_t>(at)}, {9, 200, 77});
    for (const char* name : {"a.png", "a.ppm", "b.PNG"}) {
        Result<std::unique_ptr<OverlayWriter>> writer = open_overlay(path(name), 37, 19, {});
        ASSERT_TRUE(writer.ok()) << writer.error().text();
        ASSERT_TRUE((*writer)->write(canvas).ok() && commit(**writer).ok());
    }
    const Result<ReadFrames> png = read_frames(content(path("a.png"))), ppm = read_frames(content(path("a.ppm")));
    ASSERT_TRUE(png.ok() && ppm.ok());
    EXPECT_EQ(png->frames, ppm->frames);
    EXPECT_EQ(content(path("b.PNG")), content(path("a.png")));
    EXPECT_EQ(files(), (Names{"a.png", "a.ppm", "b.PNG"}));
}

TEST_F(Output, IsAJpegPictureThatReadsBackNearly) {
    if (!with_jpeg) GTEST_SKIP() << "built without libjpeg";
    Canvas canvas(37, 19);
    for (std::uint16_t at = 0; at < 37; ++at) canvas.line({at, 0}, {at, 18}, {200, 100, 50});
    for (int frame = 0; frame < 2; ++frame) {
        Result<std::unique_ptr<OverlayWriter>> writer = open_overlay(path("a.jpeg"), 37, 19, {});
        ASSERT_TRUE(writer.ok()) << writer.error().text();
        for (int at = 0; at <= frame; ++at) ASSERT_TRUE((*writer)->write(canvas).ok());
        ASSERT_TRUE(commit(**writer).ok());
    }
    EXPECT_EQ(files(), (Names{"a-0000.jpeg", "a-0001.jpeg", "a.jpeg"}));
    const Result<ReadFrames> read = read_frames(content(path("a.jpeg")));
    ASSERT_TRUE(read.ok()) << read.error().text();
    ASSERT_EQ(read->frames.at(0).size(), 37u * 19u);
    for (const std::uint8_t pixel : read->frames[0]) EXPECT_NEAR(pixel, luma_of_rgb(200, 100, 50), 2);
}

// The image library's own error path, caused by an error of the disk.
TEST_F(Output, TellsOfAFullDiskInEveryFormat) {
    if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
    Canvas canvas(300, 300);
    std::uint32_t state = 1;
    for (std::int32_t y = 0; y < 300; ++y) {
        for (std::int32_t x = 0; x < 300; ++x) {
            state = state * 1664525u + 1013904223u;
            canvas.dot(x, y, {static_cast<std::uint8_t>(state >> 24), static_cast<std::uint8_t>(state >> 16), 0});
        }
    }
    for (const char* name : {"f.ppm", "f.pgm", "f.png", "f.jpg"}) {
        const Result<PictureEncoder> encoder = picture_encoder(name);
        if (!encoder.ok() && encoder.code() == Code::unsupported) continue;
        Result<AtomicFile> file = AtomicFile::create("/dev/full");
        ASSERT_TRUE(file.ok());
        Result<void> written = encoder->encode(canvas, *file);
        if (written) written = commit(file);
        ASSERT_FALSE(written.ok()) << name;
        EXPECT_EQ(written.error().driver_code(), ENOSPC) << name;
    }
}

TEST_F(Output, SaysWhatThisBuildCannotWrite) {
    for (const auto& [known, name] : {std::pair{with_jpeg, "o.jpg"}, std::pair{with_png, "o.png"}}) {
        const Result<void> good = check_overlay_name(name);
        EXPECT_EQ(good.ok(), known) << name;
        EXPECT_TRUE(known || good.error().code() == Code::unsupported) << name;
    }
    EXPECT_EQ(check_overlay_name("o.gif").error().code(), Code::invalid_argument);
    EXPECT_EQ(check_overlay_name("jpg").error().code(), Code::invalid_argument);
}

TEST_F(Output, IsNothingWithoutFramesOrCommit) {
    for (const char* name : {"v.y4m", "p.ppm"}) {
        Result<std::unique_ptr<OverlayWriter>> writer = open_overlay(path(name), 2, 1, {});
        ASSERT_TRUE(writer.ok() && commit(**writer).ok());
        writer = open_overlay(path(name), 2, 1, {});
        ASSERT_TRUE(writer.ok() && (*writer)->write(Canvas(2, 1)).ok() && (*writer)->write(Canvas(2, 1)).ok());
    }
    EXPECT_EQ(files(), Names{});
    EXPECT_FALSE(open_overlay(path("v.avi"), 2, 1, {}).ok());
}

TEST_F(Output, ListsCornersAsJson) {
    Result<CornerListWriter> writer = CornerListWriter::create(path("c.json"), 30, 20);
    ASSERT_TRUE(writer.ok()) << writer.error().text();
    TrackedCorner corner;
    corner.item.corner = {5, 6, 70000};
    corner.track = 3;
    ASSERT_TRUE(writer->write(std::vector{corner, corner}).ok() && writer->write({}).ok());
    OutputFiles files;
    ASSERT_TRUE(writer->finish("aa", "bb", files).ok() && files.commit().ok());
    const nlohmann::json document = nlohmann::json::parse(content(path("c.json")));
    EXPECT_EQ(document["width"], 30);
    ASSERT_EQ(document["frames"].size(), 2u);
    EXPECT_EQ(document["frames"][0]["corners"][1], nlohmann::json({5, 6, 70000, 3, -1}));
    EXPECT_EQ(document["frames"][1]["frame"], 1);
    EXPECT_TRUE(document["frames"][1]["corners"].empty());
    EXPECT_EQ(document["corners_digest"], "aa");
    EXPECT_EQ(document["tracks_digest"], "bb");
}

TEST(Percentile, IsTheNearestRank) {
    EXPECT_EQ(percentile({}, 50), 0u);
    EXPECT_EQ(percentile({7}, 99), 7u);
    EXPECT_EQ(percentile({4, 1, 3, 2}, 50), 2u);
    EXPECT_EQ(percentile({4, 1, 3, 2}, 99), 4u);
    std::vector<std::uint64_t> hundred;
    for (std::uint64_t value = 100; value > 0; --value) hundred.push_back(value);
    EXPECT_EQ(percentile(hundred, 99), 99u);
    EXPECT_EQ(percentile(hundred, 0), 1u);
}

TEST(Summary, SaysTheSameAsTextAndAsJson) {
    Summary summary;
    summary.where = {"1", "Some GPU", "discrete", true, "h200"};
    summary.input = "odd \xff name";  // invalid UTF-8
    summary.shape = make_frame_shape(PixelFormat::nv12, 64, 48).value();
    summary.buffers = {{"frame", "device", "pinned", "stage", "because"}};
    summary.frames = 2;
    summary.corners = 12;
    summary.tracks = 5;
    summary.matched = 7;
    summary.corners_digest = "0123";
    summary.stages = {{"read", "CPU", {1'500'000, 2'500'000}}};
    summary.bytes_copied.values = {100, 300};
    summary.files = {"a", "b", "c", "d"};
    summary.signal = 15;
    const std::string text = as_text(summary);
    for (const char* part : {"1: Some GPU (discrete), simulated: h200", "mean nothing", "64x48 nv12",
                             "5; 7 of 12 corners continue one from the frame before", "pinned + device, stage: because",
                             "ended by SIGTERM", "1.500", "2.500", "100 bytes per frame (p50), 300 (p99), 400 in all",
                             "digest 0123", "a to d"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
    const nlohmann::json document = nlohmann::json::parse(as_json(summary));
    EXPECT_EQ(document["machine"], "h200");
    EXPECT_EQ(document["simulated"], true);
    EXPECT_EQ(document["device"]["number"], "1");
    EXPECT_EQ(document["buffers"][0]["path"], "stage");
    EXPECT_EQ(document["stages"][0]["p99_ns"], 2'500'000);
    EXPECT_EQ(document["bytes_copied"]["total"], 400);
    EXPECT_EQ(document["corners"]["digest"], "0123");
    EXPECT_EQ(document["ended_by"], "SIGTERM");
    EXPECT_EQ(document["files"].size(), 4u);
}

TEST(Summary, SaysOfTimesOnlyWhereTheyWereMeasured) {
    EXPECT_EQ(as_text(RanOn{"0", "GPU", "discrete", false, ""}), "device     0: GPU (discrete)\n");
    const std::string played = as_text(RanOn{"cpu", "CPU", "cpu", true, "orin"});
    EXPECT_NE(played.find("simulated: orin"), std::string::npos) << played;
    EXPECT_NE(played.find("mean nothing"), std::string::npos) << played;
    EXPECT_NE(as_text(RanOn{"0", "GPU", "discrete", true, ""}).find("simulated\n"), std::string::npos)
        << "a machine that the environment plays";
}

TEST(Summary, TellsAPictureFromTheFramesThatAreMadeOfIt) {
    Summary summary;
    summary.input = "p.ppm";
    summary.shape = make_frame_shape(PixelFormat::gray, 512, 600).value();
    summary.picture = PictureFacts{"PPM", true, 512, 600};
    std::string text = as_text(summary);
    EXPECT_NE(text.find("PPM of 512x600 in colour, of which the luma is used\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("window"), std::string::npos) << text;
    summary.shape = make_frame_shape(PixelFormat::gray, 448, 525).value();
    text = as_text(summary);
    EXPECT_NE(text.find("frames of 448x525: a window that moves over the picture"), std::string::npos) << text;
    summary.picture->colour = false;
    EXPECT_NE(as_text(summary).find("PPM of 512x600 in gray\n"), std::string::npos);
    const nlohmann::json document = nlohmann::json::parse(as_json(summary));
    EXPECT_EQ(document["input"]["picture"]["width"], 512);
    EXPECT_EQ(document["input"]["width"], 448);
}

TEST(Progress, SaysHowFarHowFastAndHowLong) {
    using std::chrono::milliseconds, std::chrono::seconds;
    EXPECT_EQ(progress_line(97, 900, seconds(2), 80),
              "[##                      ] frame 97 of 900, 48.5 frames/s, 17 s left");
    EXPECT_EQ(progress_line(900, 900, seconds(2), 80),
              "[########################] frame 900 of 900, 450.0 frames/s, 0 s left");
    EXPECT_EQ(progress_line(1, 900, milliseconds(100), 80), "[                        ] frame 1 of 900")
        << "too early to tell";
    EXPECT_EQ(progress_line(30, 0, seconds(3), 80), "frame 30, 10.0 frames/s") << "nobody knows the end";
    EXPECT_EQ(progress_line(1, 601, seconds(1), 80).substr(26), " frame 1 of 601, 1.0 frames/s, 10 min 00 s left");
    EXPECT_NE(progress_line(1, 100000, seconds(1), 80).find("27.8 h left"), std::string::npos);
    EXPECT_EQ(progress_line(31, 30, seconds(3), 80), "frame 31, 10.3 frames/s") << "more than was expected";
}

// A line as wide as the terminal wraps, and cannot be cleared.
TEST(Progress, IsNarrowerThanTheTerminal) {
    for (std::size_t columns = 0; columns < 120; ++columns) {
        const std::string line = progress_line(123456789, std::uint64_t{1} << 40, std::chrono::hours(100), columns);
        EXPECT_LE(line.size() + 1, std::max<std::size_t>(columns, 1)) << line;
    }
}

}  // namespace
}  // namespace isthmus::tools::camera
