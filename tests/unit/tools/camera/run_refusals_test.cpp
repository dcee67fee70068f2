// SPDX-License-Identifier: Apache-2.0
// What `isthmus run` refuses: one line, exit code 2, and no file left behind. And how signals end it.
#include "command.hpp"
#include "generated.hpp"
#include "reference.hpp"

#include "camera/digest.hpp"
#include "camera/picture_config.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace isthmus::tools::camera {
namespace {

using Names = std::vector<std::string>;

class RunRefusal : public CommandTest {
protected:
    // Refused with a line that contains `part`, and no file written.
    void expect_refusal(std::vector<std::string> arguments, const std::string& part, const std::string& input = {}) {
        const Names before = files();
        arguments.insert(arguments.end(), {"-o", path("o.y4m"), "--corners", path("o.json")});
        const Ended ended = run(arguments, input);
        EXPECT_EQ(ended.code, 2) << part << ": " << ended.err;
        EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
        EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
        EXPECT_EQ(ended.err.find("isthmus: "), 0u) << ended.err;
        EXPECT_EQ(ended.out, "");
        EXPECT_EQ(files(), before);
    }
    const FrameShape shape = make_frame_shape(PixelFormat::gray, 40, 30).value();
    const std::string video = video_of(shape, generated_frames(shape, 2));
};

TEST_F(RunRefusal, NamesWhatIsWrongWithTheInput) {
    expect_refusal({path("absent.y4m")}, "absent.y4m");
    expect_refusal({folder_.string()}, "directory");
    expect_refusal({file("empty.y4m", "")}, "empty");
    expect_refusal({file("photo.gif", "GIF89a....")}, "neither");
    if (with_png) expect_refusal({file("photo.png", "\x89PNG\r\n\x1a\n....")}, "photo.png");
    if (with_jpeg) expect_refusal({file("photo.jpg", "\xff\xd8\xff\xe0....")}, "photo.jpg");
    expect_refusal({file("zero.y4m", "YUV4MPEG2 W0 H30 Cmono\n")}, "0x30");
    expect_refusal({file("absurd.pgm", "P5\n4000000000 4000000000\n255\n")}, "absurdly");
    expect_refusal({file("large.pgm", "P5\n65535 65535\n255\n")}, "too large");
    expect_refusal({file("none.y4m", "YUV4MPEG2 W40 H30 Cmono\n")}, "no frames");
    expect_refusal({"-"}, "truncated", video.substr(0, video.size() - 1));
    expect_refusal({"-"}, "truncated", video.substr(0, 60 + 1200));
    expect_refusal({"-"}, "FRAME", video + "more\n");
}

TEST_F(RunRefusal, NamesWhatIsWrongWithTheCamera) {  // keeps Y5
    expect_refusal({"--camera", path("video0")}, "video0: the camera cannot be opened: No such file");
    expect_refusal({"--camera", file("file", "no camera")}, "file: this is no camera");
    expect_refusal({"--camera", "/dev/null"}, "/dev/null: this is no camera");
}

TEST_F(RunRefusal, NamesWhatIsWrongWithTheOptions) {
    const std::string input = file("in.y4m", video);
    expect_refusal({}, "input");
    expect_refusal({input, "--camera", "/dev/video0"}, "two inputs");
    expect_refusal({"--camera", "/dev/video0", "--format", "rgb"}, "rgb");
    expect_refusal({"--camera", "/dev/video0", "--width", "640"}, "--height");
    expect_refusal({"--camera", "/dev/video0", "--width", "70000", "--height", "480"}, "65535");
    expect_refusal({"--camera", "/dev/video0", "--format", "gray", "--pitch", "640"}, "--pitch");
    expect_refusal({input, "--format", "rgb", "--width", "4", "--height", "4"}, "rgb");
    expect_refusal({input, "--format", "gray"}, "0x0");
    expect_refusal({input, "--width", "4"}, "--format");
    expect_refusal({input, "--format", "gray", "--width", "99999999999999999999", "--height", "4"},
                   "99999999999999999999");
    expect_refusal({input, "--format", "gray", "--width", "-4", "--height", "4"}, "'-4'");
    expect_refusal({input, "--format", "gray", "--width", "70000", "--height", "4"}, "too large");
    expect_refusal({input, "--format", "nv12", "--width", "40", "--height", "4", "--pitch", "39"}, "pitch");
    expect_refusal({input, "--frames", "0"}, "--frames");
    expect_refusal({input, "--memory", "cardboard"}, "cardboard");
    expect_refusal({input, "--in-flight", "0"}, "--in-flight");
    expect_refusal({input, "--machine", "pdp-11"}, "pdp-11");
    expect_refusal({input, "--sideways"}, "--sideways");
}

TEST_F(RunRefusal, NamesDevicesThatAreNotThere) {
    const std::string input = file("in.y4m", video);
    for (const char* device : {"99", "-1", "gpu"}) {
        RunningCommand command(folder_, {"run", input, "--device", device, "-o", path("o.y4m")}, STDIN_FILENO);
        const Ended ended = command.wait();
        EXPECT_EQ(ended.code, 2) << ended.err;
        EXPECT_NE(ended.err.find(device), std::string::npos) << ended.err;
        EXPECT_EQ(files(), Names{"in.y4m"});
    }
}

TEST_F(RunRefusal, NamesOutputsThatCannotBeWritten) {
    const std::string input = file("in.y4m", video);
    for (const Names& outputs : {Names{"-o", path("missing/o.y4m")}, Names{"--corners", path("missing/o.json")},
                                 Names{"-o", path("o.avi")}, Names{"-o", folder_.string() + "/.ppm/x.ppm"}}) {
        Names arguments{input};
        arguments.insert(arguments.end(), outputs.begin(), outputs.end());
        const Ended ended = run(arguments);
        EXPECT_EQ(ended.code, 2) << outputs[1];
        EXPECT_NE(ended.err.find(outputs[1]), std::string::npos) << ended.err;
        EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
        EXPECT_EQ(files(), Names{"in.y4m"});
    }
}

TEST_F(RunRefusal, LeavesAnOlderOutputAsItWas) {
    file("o.y4m", "old");
    const Ended ended = run({"-", "-o", path("o.y4m")}, video.substr(0, video.size() - 1));
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(content(path("o.y4m")), "old");
    EXPECT_EQ(files(), Names{"o.y4m"});
}

TEST_F(RunRefusal, TellsOfAFullDisk) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
    const Ended ended = run({"-", "--corners", "/dev/full"}, video);
    EXPECT_EQ(ended.code, 2);
    EXPECT_NE(ended.err.find("/dev/full"), std::string::npos) << ended.err;
}

// Sends a camera's data, and a signal in the middle of a frame.
class RunSignal : public CommandTest {
protected:
    static void write_all(int pipe, const std::string& bytes) {
        for (std::size_t at = 0; at < bytes.size();) {
            const ssize_t written = ::write(pipe, bytes.data() + at, bytes.size() - at);
            ASSERT_GT(written, 0);
            at += static_cast<std::size_t>(written);
        }
    }
    Ended run_and_signal(const std::string& input, const std::vector<std::string>& arguments, int number) {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        RunningCommand command(folder_, on_machine(arguments), ends[0]);
        ::close(ends[0]);
        write_all(ends[1], input);
        command.signal(number);
        Ended ended = command.wait();
        ::close(ends[1]);
        return ended;
    }
};

TEST_F(RunSignal, EndsTheRunWithWhatWasDoneSoFar) {
    // More than a pipe holds, so that the command is at work when the last byte has been written: it has read at least
    // two frames by then.
    const FrameShape shape = make_frame_shape(PixelFormat::gray, 384, 288).value();
    const std::vector<Frame> frames = generated_frames(shape, 4);
    const std::string input = video_of(shape, frames).substr(0, 60 + 3 * (384 * 288 + 6) + 1000);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        const Ended ended =
            run_and_signal(input, {"-", "-o", path("o.y4m"), "--corners", path("o.json"), "--json"}, number);
        ASSERT_EQ(ended.code, 128 + number) << ended.err;
        EXPECT_EQ(ended.err, "");
        const nlohmann::json report = nlohmann::json::parse(ended.out, nullptr, false);
        EXPECT_EQ(report["ended_by"], number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : "SIGHUP");
        const std::size_t done = report["frames"];
        ASSERT_GE(done, 1u);
        ASSERT_LE(done, 3u);
        Digest digest;
        for (std::size_t at = 0; at < done; ++at)
            digest.add_corners(
                reference_corners(gray_of(shape, frames[at]), {.threshold = 2000, .radius = 5, .border = 8}));
        EXPECT_EQ(report["corners"]["digest"], digest.text());
        EXPECT_EQ(nlohmann::json::parse(content(path("o.json")), nullptr, false)["frames"].size(), done);
        const std::string video = content(path("o.y4m"));
        EXPECT_EQ(video.size(), video.find('\n') + 1 + done * (6 + 3 * 384 * 288));
        EXPECT_EQ(files(), (Names{"o.json", "o.y4m"}));
    }
}

TEST_F(RunSignal, LeavesNothingWhereThereWasNoFrame) {
    // The header only; a comment longer than a pipe's capacity ensures that the command is reading when the signal
    // arrives.
    const std::string header = "P5\n#" + std::string(100'000, ' ');
    for (const int number : {SIGINT, SIGHUP}) {
        const Ended ended = run_and_signal(header, {"-", "-o", path("o.y4m"), "--corners", path("o.json")}, number);
        EXPECT_EQ(ended.code, 128 + number) << ended.err;
        EXPECT_EQ(ended.err, "");
        EXPECT_EQ(files(), Names{});
    }
}

}  // namespace
}  // namespace isthmus::tools::camera
