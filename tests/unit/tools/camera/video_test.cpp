// SPDX-License-Identifier: Apache-2.0
// `isthmus run --camera` over a made-up V4L2 camera: the format that is asked for, the life of its buffers, its errors;
// and that its frames give the corners that the same frames give from a file.
#include "generated.hpp"
#include "made_up_camera.hpp"

#include "camera/camera_run.hpp"

#include <isthmus/runtime.hpp>

#include <gtest/gtest.h>

#include <sys/ioctl.h>

#include <filesystem>
#include <fstream>

namespace isthmus::tools::camera {
namespace {

constexpr auto gray = PixelFormat::gray;

v4l2_format format_of(std::uint32_t fourcc, std::uint32_t width, std::uint32_t height, std::uint32_t pitch,
                      std::uint32_t bytes) {
    v4l2_format format{};
    format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    format.fmt.pix = {};
    format.fmt.pix.pixelformat = fourcc;
    format.fmt.pix.width = width;
    format.fmt.pix.height = height;
    format.fmt.pix.field = V4L2_FIELD_NONE;
    format.fmt.pix.bytesperline = pitch;
    format.fmt.pix.sizeimage = bytes;
    return format;
}

TEST(VideoFormat, TheFewestBytesAreChosenUnlessTheUserAsksForMore) {  // keeps Y5
    const std::vector<std::uint32_t> all = {V4L2_PIX_FMT_MJPEG, V4L2_PIX_FMT_YUYV, V4L2_PIX_FMT_NV12};
    EXPECT_EQ(choose_fourcc(all, std::nullopt, "cam").value(), V4L2_PIX_FMT_NV12);
    EXPECT_EQ(choose_fourcc(all, PixelFormat::yuyv, "cam").value(), V4L2_PIX_FMT_YUYV);
    const Result<std::uint32_t> lacks = choose_fourcc(all, gray, "cam");
    EXPECT_EQ(lacks.code(), Code::unsupported);
    EXPECT_EQ(lacks.error().message(), "cam offers MJPG, YUYV, NV12, and not gray");
    const Result<std::uint32_t> none = choose_fourcc(std::vector<std::uint32_t>{V4L2_PIX_FMT_MJPEG}, {}, "cam");
    EXPECT_EQ(none.code(), Code::unsupported);
    EXPECT_NE(none.error().remedy().find("ffmpeg"), std::string_view::npos);
    EXPECT_EQ(choose_fourcc({}, {}, "cam").code(), Code::unsupported);
    for (const std::uint32_t fourcc : {V4L2_PIX_FMT_GREY, V4L2_PIX_FMT_NV12, V4L2_PIX_FMT_YUV420, V4L2_PIX_FMT_YUYV,
                                       V4L2_PIX_FMT_UYVY, V4L2_PIX_FMT_SRGGB8}) {
        EXPECT_TRUE(pixel_format_of(fourcc).has_value()) << fourcc_text(fourcc);
    }
    EXPECT_FALSE(pixel_format_of(V4L2_PIX_FMT_RGB24).has_value());
    EXPECT_EQ(fourcc_text(7), "7");
    EXPECT_EQ(fourcc_text(V4L2_PIX_FMT_Y16), "Y16");
}

TEST(VideoFormat, TheShapeIsWhatTheDriverStatesAndItsLiesAreRefused) {  // keeps Y5
    const VideoFrames frames = frames_of(format_of(V4L2_PIX_FMT_NV12, 60, 40, 64, 8192)).value();
    EXPECT_EQ(frames.shape.format, PixelFormat::nv12);
    EXPECT_EQ(frames.shape.pitch_bytes, 64u);
    EXPECT_EQ(frames.shape.size_bytes, 64u * 60);
    EXPECT_EQ(frames.memory_bytes, 8192u);
    EXPECT_EQ(frames_of(format_of(V4L2_PIX_FMT_GREY, 60, 40, 0, 0)).value().memory_bytes, 2400u);
    EXPECT_EQ(frames_of(format_of(V4L2_PIX_FMT_GREY, 60, 40, 0, 2399)).code(), Code::invalid_argument);
    EXPECT_EQ(frames_of(format_of(V4L2_PIX_FMT_GREY, 60, 40, 59, 8192)).code(), Code::invalid_argument);
    EXPECT_EQ(frames_of(format_of(V4L2_PIX_FMT_GREY, 0, 40, 64, 8192)).code(), Code::invalid_argument);
    EXPECT_EQ(frames_of(format_of(V4L2_PIX_FMT_GREY, 60, 40, 64, ~0u)).code(), Code::invalid_argument);
    EXPECT_EQ(frames_of(format_of(V4L2_PIX_FMT_RGB24, 60, 40, 180, 8192)).code(), Code::unsupported);
    v4l2_format fields = format_of(V4L2_PIX_FMT_GREY, 60, 40, 64, 8192);
    fields.fmt.pix.field = V4L2_FIELD_ALTERNATE;
    EXPECT_EQ(frames_of(fields).code(), Code::unsupported);
    fields.type = V4L2_BUF_TYPE_VIDEO_OUTPUT;
    EXPECT_EQ(frames_of(fields).code(), Code::unsupported);
    v4l2_format planes{};
    planes.type = V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE;
    planes.fmt.pix_mp.pixelformat = V4L2_PIX_FMT_NV12;
    planes.fmt.pix_mp.width = 60;
    planes.fmt.pix_mp.height = 40;
    planes.fmt.pix_mp.field = V4L2_FIELD_NONE;
    planes.fmt.pix_mp.num_planes = 2;
    EXPECT_EQ(frames_of(planes).code(), Code::unsupported);
    planes.fmt.pix_mp.num_planes = 1;
    EXPECT_EQ(frames_of(planes).value().shape.pitch_bytes, 60u);
}

TEST(VideoFormat, ABufferThatTheDriverDoesNotHaveIsRefusedAndATornOneIsNoFrame) {  // keeps Y5
    const bool queued[] = {true, false};
    v4l2_buffer buffer{};
    EXPECT_TRUE(filled_buffer(buffer, 100, queued, 100).value().whole);
    EXPECT_FALSE(filled_buffer(buffer, 99, queued, 100).value().whole);
    buffer.flags = V4L2_BUF_FLAG_ERROR;
    EXPECT_FALSE(filled_buffer(buffer, 100, queued, 100).value().whole);
    buffer.index = 1;
    EXPECT_EQ(filled_buffer(buffer, 100, queued, 100).code(), Code::system_error);
    buffer.index = 2;
    EXPECT_EQ(filled_buffer(buffer, 100, queued, 100).code(), Code::system_error);
    v4l2_streamparm rate{};
    EXPECT_EQ(frame_rate_of(rate).numerator, 25u);
    rate.parm.capture.capability = V4L2_CAP_TIMEPERFRAME;
    EXPECT_EQ(frame_rate_of(rate).numerator, 25u) << "0 of 0";
    rate.parm.capture.timeperframe = {1001, 30000};
    EXPECT_EQ(frame_rate_of(rate).numerator, 30000u);
    EXPECT_EQ(frame_rate_of(rate).denominator, 1001u);
}

Result<std::unique_ptr<VideoDevice>> open_made_up(const CameraWish& wish = {}) {
    return VideoDevice::open("/dev/video9", wish, MadeUpCamera::calls());
}

TEST(VideoDevices, ACameraThatCannotBeUsedIsOneLine) {  // keeps Y5
    MadeUpCamera camera;
    for (const auto& [error, code] : std::initializer_list<std::pair<int, Code>>{{ENOENT, Code::invalid_argument},
                                                                                 {ENODEV, Code::invalid_argument},
                                                                                 {ENXIO, Code::invalid_argument},
                                                                                 {EBUSY, Code::in_use},
                                                                                 {EACCES, Code::not_permitted},
                                                                                 {EIO, Code::system_error}}) {
        camera.open_error = error;
        const auto refused = open_made_up();
        ASSERT_EQ(refused.code(), code);
        EXPECT_EQ(refused.error().message().find("/dev/video9: "), 0u) << refused.error().text();
        EXPECT_EQ(refused.error().message().find('\n'), std::string_view::npos);
        EXPECT_FALSE(refused.error().remedy().empty());
    }
    camera.open_error = 0;
    camera.errors[VIDIOC_QUERYCAP] = ENOTTY;  // another kind of file
    EXPECT_EQ(open_made_up().code(), Code::invalid_argument);
    camera.errors.clear();
    camera.errors[VIDIOC_S_FMT] = EBUSY;  // another program streams
    EXPECT_EQ(open_made_up().code(), Code::in_use);
    camera.errors.clear();
    camera.field = V4L2_FIELD_TOP;
    EXPECT_EQ(open_made_up().code(), Code::unsupported);
    camera.field = V4L2_FIELD_NONE;
    camera.fourccs = {V4L2_PIX_FMT_MJPEG};
    EXPECT_EQ(open_made_up().code(), Code::unsupported);
    EXPECT_EQ(camera.opened, 0) << "closed each time";
}

TEST(VideoDevices, CallsThatSignalsInterruptAreMadeAgain) {  // keeps Y5
    MadeUpCamera camera;
    camera.interruptions = 3;
    const auto device = open_made_up().value();
    EXPECT_EQ(device->name(), "/dev/video9 (made up)");
    EXPECT_EQ(device->frames().shape.format, gray);
    EXPECT_EQ(device->rate().numerator, 30u);
}

TEST(VideoDevices, EveryStepCanFailAndNothingIsLeft) {  // keeps Y5
    for (const unsigned long step : {VIDIOC_REQBUFS, VIDIOC_EXPBUF, VIDIOC_QBUF, VIDIOC_STREAMON, VIDIOC_DQBUF}) {
        MadeUpCamera camera;
        {
            const auto device = open_made_up().value();
            camera.errors[step] = EIO;
            const auto all = [&]() -> Result<void> {
                if (const auto made = device->request(CameraMemory::driver, 2); !made) return made.error();
                if (const auto fd = device->export_buffer(0); !fd) return fd.error();
                if (auto lent = device->queue(0); !lent) return lent;
                if (auto started = device->start(); !started) return started;
                const auto next = device->next(-1, 1);
                return next ? Result<void>() : Result<void>(next.error());
            }();
            EXPECT_EQ(all.code(), Code::system_error);
            camera.errors.clear();
        }
        EXPECT_EQ(camera.buffers, 0);
        EXPECT_FALSE(camera.streams);
        EXPECT_EQ(camera.opened, 0);
    }
    MadeUpCamera camera;  // no frame comes
    const auto device = open_made_up().value();
    (void)device->request(CameraMemory::driver, 2).value();
    EXPECT_EQ(device->next(-1, 1).code(), Code::timed_out);
}

// Of a made-up dma-buf: a mapping of its memory file.
struct Mapped {
    int made = 0;
    int gone = 0;
};
AdoptDmaBuf adopt_mapping(Mapped& counted) {
    return [&counted](Device& device, const FileDescriptor& file, std::size_t bytes, AdoptOptions options) {
        void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
        if (data == MAP_FAILED) std::abort();
        ++counted.made;
        options.release = [&counted](void* pointer, std::size_t length) {
            ++counted.gone;
            (void)::munmap(pointer, length);
        };
        return device.adopt<std::uint8_t>(static_cast<std::uint8_t*>(data), bytes, std::move(options));
    };
}

class CameraRuns : public testing::Test {
protected:
    static Runtime& runtime() {
        static Runtime open = Runtime::open().value();
        return open;
    }
    static Device& device() { return runtime().default_device(); }

    Summary of(RunOptions options) {
        CameraRun run(std::move(options));
        std::optional<Failure> failed = run.prepare(-1);
        if (!failed) failed = run.go(device());
        EXPECT_FALSE(failed) << failed->error.text();
        return run.summary();
    }
    Summary of_file(const FrameShape& shape, const std::vector<Frame>& frames) {
        const auto path =
            std::filesystem::temp_directory_path() / ("isthmus_video_test_" + std::to_string(::getpid()) + ".raw");
        std::ofstream(path, std::ios::binary) << bytes_of(frames);
        RunOptions options;
        options.input = path.string();
        options.reading.raw = shape;
        Summary summary = of(std::move(options));
        std::filesystem::remove(path);
        return summary;
    }
    RunOptions of_camera(std::size_t frames) {
        RunOptions options;
        options.camera = "/dev/video9";
        options.video = &MadeUpCamera::calls();
        options.adopt = adopt_mapping(mapped);
        options.reading.frames = frames;
        return options;
    }
    Mapped mapped;
};

TEST_F(CameraRuns, ItsFramesGiveTheCornersOfTheSameFramesFromAFile) {  // keeps Y5
    for (const std::uint32_t fourcc : {V4L2_PIX_FMT_GREY, V4L2_PIX_FMT_NV12, V4L2_PIX_FMT_YUYV, V4L2_PIX_FMT_UYVY}) {
        for (const bool multiplanar : {false, true}) {
            SCOPED_TRACE(fourcc_text(fourcc));
            MadeUpCamera camera;
            camera.fourccs = {fourcc};
            camera.multiplanar = multiplanar;
            camera.width = 90;
            const std::uint32_t pitch = fourcc == V4L2_PIX_FMT_YUYV || fourcc == V4L2_PIX_FMT_UYVY ? 192 : 128;
            const FrameShape shape = make_frame_shape(*pixel_format_of(fourcc), 90, 48, pitch).value();
            camera.frames = generated_frames(shape, 9);
            const Summary expected = of_file(shape, camera.frames);
            ASSERT_GT(expected.corners, 0u);
            const int before = mapped.made;
            const Summary seen = of(of_camera(9));
            EXPECT_EQ(seen.frames, 9u);
            EXPECT_EQ(seen.corners_digest, expected.corners_digest);
            EXPECT_EQ(seen.tracks_digest, expected.tracks_digest);
            EXPECT_EQ(seen.shape.pitch_bytes, pitch);
            EXPECT_EQ(seen.input, "/dev/video9 (made up)");
            EXPECT_EQ(mapped.made - before, 4) << "each buffer once, not each frame";
            EXPECT_EQ(mapped.gone, mapped.made);
            EXPECT_EQ(camera.buffers, 0);
            EXPECT_EQ(camera.opened, 0);
        }
    }
}

TEST_F(CameraRuns, ACameraThatExportsNoBuffersWritesIntoPagesOfThisProcess) {  // keeps Y5
    for (const bool has_mmap : {false, true}) {
        for (const bool multiplanar : {false, true}) {
            MadeUpCamera camera;
            camera.exports = false;
            camera.has_mmap = has_mmap;
            camera.multiplanar = multiplanar;
            const FrameShape shape = make_frame_shape(gray, 64, 48, 64).value();
            camera.frames = generated_frames(shape, 6);
            const Summary expected = of_file(shape, camera.frames);
            const Summary seen = of(of_camera(6));
            EXPECT_EQ(seen.corners_digest, expected.corners_digest);
            EXPECT_EQ(seen.tracks_digest, expected.tracks_digest);
            EXPECT_EQ(mapped.made, 0);
        }
    }
    MadeUpCamera camera;
    camera.exports = camera.takes_pages = false;
    CameraRun run(of_camera(1));
    ASSERT_FALSE(run.prepare(-1));
    const std::optional<Failure> failed = run.go(device());
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->error.code(), Code::unsupported);
    EXPECT_NE(failed->error.message().find("USERPTR"), std::string_view::npos);
}

TEST_F(CameraRuns, WhileTheCameraHasABufferNobodyElseUsesIt) {  // keeps Y5
    MadeUpCamera camera;
    camera.frames = generated_frames(make_frame_shape(gray, 64, 48, 64).value(), 2);
    CameraFrames frames =
        CameraFrames::create(device(), open_made_up().value(), 3, std::nullopt, adopt_mapping(mapped)).value();
    ASSERT_EQ(frames.count(), 3u);
    EXPECT_EQ(frames.memory(), CameraMemory::driver);
    ASSERT_TRUE(frames.start().ok());
    for (std::uint32_t index = 0; index < 3; ++index) {
        EXPECT_EQ(frames.buffer(index).read_on_host().code(), Code::in_use);
    }
    const std::uint32_t first = frames.next(-1, 1000).value().value();
    EXPECT_EQ(frames.buffer(first).read_on_host().value()[5], camera.frames[0][5]);
    ASSERT_TRUE(frames.give_back(first).ok());
    EXPECT_EQ(frames.buffer(first).read_on_host().code(), Code::in_use);
    const std::uint32_t second = frames.next(-1, 1000).value().value();
    EXPECT_NE(first, second);
    EXPECT_EQ(frames.buffer(second).read_on_host().value()[7], camera.frames[1][7]);
}

TEST_F(CameraRuns, DamagedFramesAreLeftOutAndCounted) {  // keeps Y5
    MadeUpCamera camera;
    const FrameShape shape = make_frame_shape(gray, 64, 48, 64).value();
    std::vector<Frame> frames = generated_frames(shape, 6);
    camera.frames = frames;
    camera.damaged = {0, 3};
    frames.erase(frames.begin() + 3);
    frames.erase(frames.begin());
    const Summary expected = of_file(shape, frames);
    const Summary seen = of(of_camera(4));
    EXPECT_EQ(seen.frames, 4u);
    EXPECT_EQ(seen.frames_broken, 2u);
    EXPECT_EQ(seen.corners_digest, expected.corners_digest);
}

TEST_F(CameraRuns, ACameraThatGivesOnlyDamagedFramesMeetsTheDeadlineAndAStop) {  // keeps Y5
    MadeUpCamera camera;
    camera.frames = generated_frames(make_frame_shape(gray, 64, 48, 64).value(), 2);
    camera.damaged = {0, 1};
    camera.repeats = true;
    CameraFrames frames =
        CameraFrames::create(device(), open_made_up().value(), 2, std::nullopt, adopt_mapping(mapped)).value();
    ASSERT_TRUE(frames.start());
    for (int tries = 0; tries < 100 && frames.broken() < 2; ++tries) {
        EXPECT_EQ(frames.next(-1, 50).code(), Code::timed_out);
    }
    EXPECT_GT(frames.broken(), 1u);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const FileDescriptor reads(ends[0]), writes(ends[1]);
    ASSERT_EQ(::write(writes.get(), "x", 1), 1);
    EXPECT_FALSE(frames.next(reads.get(), 60000).value().has_value());
}

TEST(VideoDevices, FramesThatBeginBehindTheirBufferAreRefused) {  // keeps Y5
    for (const std::uint32_t offset : {0u, 64u}) {
        MadeUpCamera camera;
        camera.multiplanar = true;
        camera.data_offset = offset;
        camera.frames = generated_frames(make_frame_shape(gray, 64, 48, 64).value(), 1);
        const auto device = open_made_up().value();
        (void)device->request(CameraMemory::driver, 1).value();
        ASSERT_TRUE(device->queue(0));
        ASSERT_TRUE(device->start());
        EXPECT_EQ(device->next(-1, 100).code(), offset == 0 ? Code::ok : Code::unsupported);
    }
}

TEST_F(CameraRuns, OneBufferIsEnoughAndAWrongOneEndsTheRun) {  // keeps Y5
    MadeUpCamera camera;
    camera.most_buffers = 1;
    const FrameShape shape = make_frame_shape(gray, 64, 48, 64).value();
    camera.frames = generated_frames(shape, 3);
    EXPECT_EQ(of(of_camera(3)).frames, 3u);
    camera.filled = 0;
    camera.wrong_index = 77;
    CameraRun run(of_camera(3));
    ASSERT_FALSE(run.prepare(-1));
    const std::optional<Failure> failed = run.go(device());
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->error.code(), Code::system_error);
    EXPECT_EQ(camera.buffers, 0);
}

// A camera of the kernel: vivid (modprobe vivid), with the system's own calls and dma-bufs.
TEST_F(CameraRuns, ACameraOfTheKernelIsUsedInPlace) {  // keeps Y5
    std::string vivid;
    for (int number = 0; number < 10 && vivid.empty(); ++number) {
        const std::string path = "/dev/video" + std::to_string(number);
        const FileDescriptor device(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        v4l2_capability able{};
        if (!device || ::ioctl(device.get(), VIDIOC_QUERYCAP, &able) != 0) continue;
        const std::string_view driver(reinterpret_cast<const char*>(able.driver));
        if (driver == "vivid" && (able.device_caps & V4L2_CAP_VIDEO_CAPTURE) != 0) vivid = path;
    }
    if (vivid.empty()) GTEST_SKIP() << "this system has no camera of vivid";
    RunOptions options;
    options.camera = vivid;
    options.wish = {PixelFormat::yuyv, 640, 480};
    options.reading.frames = 5;
    const Summary seen = of(std::move(options));
    EXPECT_EQ(seen.frames, 5u);
    EXPECT_EQ(seen.shape.width, 640u);
    EXPECT_EQ(seen.shape.format, PixelFormat::yuyv);
}

TEST_F(CameraRuns, AStopEndsTheRunWhileTheCameraIsSilent) {  // keeps Y5
    MadeUpCamera camera;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const FileDescriptor reads(ends[0]), writes(ends[1]);
    ASSERT_EQ(::write(writes.get(), "x", 1), 1);
    // The made-up poll reports no stop: the real one is asked here.
    VideoCalls calls = MadeUpCamera::calls();
    calls.poll = ::poll;
    const auto device = VideoDevice::open("/dev/video9", {}, calls).value();
    (void)device->request(CameraMemory::driver, 2).value();
    EXPECT_FALSE(device->next(reads.get(), 5000).value().has_value());
}

}  // namespace
}  // namespace isthmus::tools::camera
