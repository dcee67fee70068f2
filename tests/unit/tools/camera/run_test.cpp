// SPDX-License-Identifier: Apache-2.0
// The main job, from files to corners, on one machine: its results equal the reference's, to the bit.
#include "command.hpp"
#include "generated.hpp"
#include "reference.hpp"

#include "camera/corner_tracker.hpp"
#include "camera/digest.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>

namespace isthmus::tools::camera {
namespace {

using nlohmann::json;
constexpr kernels::CornerRule rule{.threshold = 2000, .radius = 5, .border = 8};

struct Expectation {
    json frames = json::array();
    Digest corners{};
    Digest tracks{};
    std::size_t count = 0;
    std::size_t matched = 0;
};

Expectation expected_of(const FrameShape& shape, const std::vector<Frame>& frames) {
    Expectation expected;
    CornerTracker tracker(MatchRule{});
    for (const Frame& frame : frames) {
        const std::vector<Corner> corners = reference_corners(gray_of(shape, frame), rule);
        expected.corners.add_corners(corners);
        expected.count += corners.size();
        expected.tracks.add(static_cast<std::uint32_t>(corners.size()));
        json list = json::array();
        for (const TrackedCorner& corner : tracker.follow(shape, frame.data(), corners)) {
            if (corner.previous >= 0) ++expected.matched;
            expected.tracks.add(corner.track);
            expected.tracks.add(static_cast<std::uint32_t>(corner.previous));
            list.push_back(
                {corner.item.corner.x, corner.item.corner.y, corner.item.corner.score, corner.track, corner.previous});
        }
        expected.frames.push_back({{"frame", expected.frames.size()}, {"corners", list}});
    }
    return expected;
}

class Run : public CommandTest {
protected:
    json run_as_json(std::vector<std::string> arguments, const std::string& input = {}) const {
        arguments.push_back("--json");
        const Ended ended = run(std::move(arguments), input);
        EXPECT_EQ(ended.code, 0) << ended.err;
        EXPECT_EQ(ended.err, "");
        return json::parse(ended.out, nullptr, false);
    }
};

TEST_F(Run, FindsTheCornersOfTheReferenceAndFollowsThem) {
    const FrameShape shape = make_frame_shape(PixelFormat::gray, 149, 97).value();
    const std::vector<Frame> frames = generated_frames(shape, 4);
    const Expectation expected = expected_of(shape, frames);
    ASSERT_GT(expected.count, 100u) << "frames without corners prove nothing";
    ASSERT_GT(expected.matched, 50u);
    const json report =
        run_as_json({file("in.y4m", video_of(shape, frames)), "--corners", path("c.json"), "-o", path("out.y4m")});
    ASSERT_TRUE(report.is_object());
    const char* machine = std::getenv("ISTHMUS_TEST_MACHINE");
    if (machine && *machine) {
        const bool without_gpu = std::string_view("cpu no-gpu old-driver").find(machine) != std::string_view::npos;
        EXPECT_EQ(report["device"]["model"] == "cpu", without_gpu) << "it ran on another device than it was to";
    } else if (std::getenv("ISTHMUS_TEST_REAL") != nullptr) {
        EXPECT_NE(report["device"]["model"], "cpu") << "--setup real is for machines with a GPU of their own";
    }
    EXPECT_EQ(report["frames"], 4);
    EXPECT_EQ(report["corners"]["count"], expected.count);
    EXPECT_EQ(report["corners"]["digest"], expected.corners.text());
    EXPECT_EQ(report["tracks"]["digest"], expected.tracks.text());
    EXPECT_EQ(report["tracks"]["matched"], expected.matched);
    const json list = json::parse(content(path("c.json")), nullptr, false);
    EXPECT_EQ(list["frames"], expected.frames);
    EXPECT_EQ(list["corners_digest"], expected.corners.text());
    EXPECT_EQ(content(path("out.y4m")).size(), content(path("out.y4m")).find('\n') + 1 + 4 * (6 + 3 * 149 * 97));
    EXPECT_EQ(files(), (std::vector<std::string>{"c.json", "in.y4m", "out.y4m"}));
}

TEST_F(Run, TakesTheLumaOfEveryFormatWhateverItsPitch) {
    const struct {
        PixelFormat format;
        std::uint64_t pitch;
    } inputs[] = {{PixelFormat::gray, 80}, {PixelFormat::bayer8, 0}, {PixelFormat::nv12, 96},
                  {PixelFormat::i420, 71}, {PixelFormat::yuyv, 160}, {PixelFormat::uyvy, 0}};
    const FrameShape plain = make_frame_shape(PixelFormat::gray, 69, 53).value();
    const Expectation expected = expected_of(plain, generated_frames(plain, 2));
    ASSERT_GT(expected.count, 20u);
    for (const auto& each : inputs) {
        const FrameShape shape = make_frame_shape(each.format, 69, 53, each.pitch).value();
        std::vector<std::string> arguments{"-",        "--format", std::string(name(each.format)), "--width", "69",
                                           "--height", "53"};
        if (each.pitch != 0) arguments.insert(arguments.end(), {"--pitch", std::to_string(each.pitch)});
        const json report = run_as_json(arguments, bytes_of(generated_frames(shape, 2)));
        EXPECT_EQ(report["corners"]["digest"], expected.corners.text()) << name(each.format);
        EXPECT_EQ(report["tracks"]["digest"], expected.tracks.text()) << name(each.format);
    }
    const FrameShape i420 = make_frame_shape(PixelFormat::i420, 69, 53).value();
    const json report = run_as_json({"-"}, video_of(i420, generated_frames(i420, 2)));
    EXPECT_EQ(report["corners"]["digest"], expected.corners.text());
}

TEST_F(Run, PansASinglePictureIntoAStream) {
    const FrameShape shape = make_frame_shape(PixelFormat::gray, 96, 80).value();
    const std::string picture = "P5\n96 80\n255\n" + bytes_of(generated_frames(shape, 1));
    InputOptions options;
    options.frames = 3;
    const Result<ReadFrames> panned = read_frames(picture, options);
    ASSERT_TRUE(panned.ok());
    const Expectation expected = expected_of(panned->shape, panned->frames);
    ASSERT_GT(expected.matched, 20u);
    const json report = run_as_json({file("p.pgm", picture), "--frames", "3", "-o", path("out.ppm")});
    EXPECT_EQ(report["corners"]["digest"], expected.corners.text());
    EXPECT_EQ(report["tracks"]["digest"], expected.tracks.text());
    EXPECT_EQ(files(), (std::vector<std::string>{"out-0000.ppm", "out-0001.ppm", "out-0002.ppm", "p.pgm"}));
}

// keeps G11: the choice can be overridden, is explained, and never changes what is computed
TEST_F(Run, FindsTheSameWhateverMemoryIsChosen) {
    const FrameShape shape = make_frame_shape(PixelFormat::gray, 69, 53).value();
    const std::vector<Frame> frames = generated_frames(shape, 3);
    const Expectation expected = expected_of(shape, frames);
    const std::string video = file("in.y4m", video_of(shape, frames));
    int worked = 0;
    for (const char* kind : {"host", "pinned", "registered", "managed", "device", "write_combined"}) {
        const Ended ended = run({video, "--json", "--memory", kind});
        if (ended.code != 0) {
            EXPECT_EQ(ended.code, 3) << kind << ended.err;
            EXPECT_NE(ended.err.find(kind), std::string::npos) << ended.err;
            continue;
        }
        ++worked;
        const json report = json::parse(ended.out, nullptr, false);
        EXPECT_EQ(report["corners"]["digest"], expected.corners.text()) << kind;
        EXPECT_EQ(report["tracks"]["digest"], expected.tracks.text()) << kind;
        const bool staged = report["buffers"][0]["path"] == "stage";
        // A frame is uploaded; the list, at its full capacity, and its count are copied back.
        const std::uint64_t bytes =
            staged ? shape.size_bytes + 4096 * sizeof(Corner) + sizeof(kernels::CornerCount) : 0;
        EXPECT_EQ(report["bytes_copied"]["p50"], bytes) << kind;
        EXPECT_EQ(report["bytes_copied"]["total"], 3 * bytes) << kind;
        EXPECT_FALSE(report["buffers"][0]["reason"].get<std::string>().empty());
    }
    EXPECT_GE(worked, 2);
}

// keeps L16: large enough that every kernel is shared out
TEST_F(Run, FindsTheSameOnAnyNumberOfThreads) {
    const FrameShape shape = make_frame_shape(PixelFormat::gray, 391, 203).value();
    const std::vector<Frame> frames = generated_frames(shape, 2);
    const Expectation expected = expected_of(shape, frames);
    const std::string video = file("in.y4m", video_of(shape, frames));
    for (const char* threads : {"1", "3"}) {
        const json report = run_as_json({video, "--cpu-threads", threads});  // without effect on a GPU
        EXPECT_EQ(report["corners"]["digest"], expected.corners.text()) << threads;
        EXPECT_EQ(report["tracks"]["digest"], expected.tracks.text()) << threads;
    }
}

// keeps S2: frames in flight overlap, and come out in their order
TEST_F(Run, FindsTheSameHoweverManyFramesAreInFlight) {
    const FrameShape shape = make_frame_shape(PixelFormat::gray, 69, 53).value();
    const std::vector<Frame> frames = generated_frames(shape, 5);
    const Expectation expected = expected_of(shape, frames);
    const std::string video = file("in.y4m", video_of(shape, frames));
    for (const char* in_flight : {"1", "3", "8"}) {  // fewer than there are frames, and more
        const json report = run_as_json({video, "--in-flight", in_flight});
        EXPECT_EQ(report["frames"], 5) << in_flight;
        EXPECT_EQ(report["corners"]["digest"], expected.corners.text()) << in_flight;
        EXPECT_EQ(report["tracks"]["digest"], expected.tracks.text()) << in_flight;
    }
}

TEST_F(Run, AnswersForFramesThatAreTooSmallForCorners) {
    for (const int side : {1, 2, 5, 16}) {
        const std::string size = std::to_string(side);
        const json report = run_as_json({"-", "--format", "gray", "--width", size, "--height", size},
                                        std::string(static_cast<std::size_t>(2 * side * side), 'x'));
        EXPECT_EQ(report["frames"], 2) << side;
        EXPECT_EQ(report["corners"]["count"], 0) << side;
    }
}

TEST_F(Run, SaysWhenTheListWasTooSmall) {
    const FrameShape shape = make_frame_shape(PixelFormat::gray, 69, 53).value();
    const std::vector<Frame> frames = generated_frames(shape, 1);
    const std::vector<Corner> all = reference_corners(gray_of(shape, frames[0]), rule);
    Digest digest;
    digest.add_corners(std::span(all).first(5));
    const json report = run_as_json({"-", "--max-corners", "5"}, video_of(shape, frames));
    EXPECT_EQ(report["corners"]["frames_full"], 1);
    EXPECT_EQ(report["corners"]["count"], 5);
    EXPECT_EQ(report["corners"]["digest"], digest.text()) << "the first of them, by row, then column";
}

TEST_F(Run, ExplainsThePathAndTimesEveryStage) {
    const FrameShape shape = make_frame_shape(PixelFormat::gray, 69, 53).value();
    const Ended ended = run({"-"}, video_of(shape, generated_frames(shape, 2)));
    ASSERT_EQ(ended.code, 0) << ended.err;
    for (const char* part : {"device ", "shared buffers", "read ", "submit ", "find ", "wait ", "match ", "p50", "p99",
                             "copied ", "digest "}) {
        EXPECT_NE(ended.out.find(part), std::string::npos) << part << "\n" << ended.out;
    }
}

// The clip lies beside the project, or where ISTHMUS_TEST_DATA says. All of it on the CPU and on real hardware; its
// beginning in a simulation, where one or two threads compute every pixel.
TEST_F(Run, FindsTheCornersOfTheReferenceInACameraClip) {
    const char* folder = std::getenv("ISTHMUS_TEST_DATA");
    const std::string clip =
        std::string(folder ? folder : ISTHMUS_SOURCE_FOLDER "/../shared/data") + "/pedestrians-384x288-60.y4m";
    const std::string bytes = content(clip);
    if (bytes.empty()) GTEST_SKIP() << "no pedestrians-384x288-60.y4m; ISTHMUS_TEST_DATA names its folder";
    const char* machine = std::getenv("ISTHMUS_TEST_MACHINE");
    const bool simulated = machine && *machine && std::string(machine) != "cpu";
    InputOptions options;
    options.frames = simulated ? 3 : 60;
    const Result<ReadFrames> read = read_frames(bytes, options);
    ASSERT_TRUE(read.ok());
    const Expectation expected = expected_of(read->shape, read->frames);
    ASSERT_GT(expected.count, 100u * options.frames);
    const json report = run_as_json({clip, "--frames", std::to_string(options.frames)});
    EXPECT_EQ(report["frames"], options.frames);
    EXPECT_EQ(report["corners"]["digest"], expected.corners.text());
    EXPECT_EQ(report["tracks"]["digest"], expected.tracks.text());
}

}  // namespace
}  // namespace isthmus::tools::camera
