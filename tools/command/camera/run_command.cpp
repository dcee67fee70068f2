// SPDX-License-Identifier: Apache-2.0
// The options of `isthmus run`, and its final report.
#include "run_command.hpp"

#include "camera_run.hpp"
#include "camera/picture_config.hpp"
#include "stop_signal.hpp"
#include "common/command.hpp"
#include "common/console.hpp"
#include "common/number_options.hpp"
#include "common/report_text.hpp"
#include "common/session.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace isthmus::tools {
namespace {

struct Texts {
    std::string memory;
    std::string format;
    std::uint64_t width = 0;  // 0: not given, also in the fields below
    std::uint64_t height = 0;
    std::uint64_t pitch_bytes = 0;
};

[[noreturn]] void fail(int exit_code, const Error& error) {
    std::string line = "run: " + std::string(error.message());
    if (!error.remedy().empty()) line += "; what works: " + std::string(error.remedy());
    throw Failure(exit_code, line);
}

int exit_code_of(const camera::Failure& failure) {
    const Code code = failure.error.code();
    // This build lacks the picture's library: neither the input nor the usage is wrong.
    if (failure.of_input_or_output) return code == Code::unsupported ? exit_cannot : exit_bad_usage;
    return code == Code::unsupported || code == Code::not_accessible || code == Code::no_gpu_code ? exit_cannot
                                                                                                  : exit_failed;
}

int run(camera::RunOptions options, const CommandContext& context) {
    const camera::StopSignal stop;
    Result<Runtime> runtime = context.open_runtime();
    if (!runtime) fail(exit_failed, runtime.error());
    Device& device = choose_device(*runtime, context);
    camera::CameraRun pipeline(std::move(options));
    std::optional<camera::Failure> failed = pipeline.prepare(stop.descriptor());
    if (!failed) failed = pipeline.go(device);
    if (failed && camera::StopSignal::received() == 0) fail(exit_code_of(*failed), failed->error);
    // A signal before the first frame: no output is written; only the exit code reports the signal.
    if (failed) return 128 + camera::StopSignal::received();
    camera::Summary summary = pipeline.summary();
    summary.where = ran_on(*runtime, device, context);
    print(context.json ? as_json(summary) : for_stdout(as_text(summary)));
    if ((failed = pipeline.commit())) fail(exit_code_of(*failed), failed->error);
    return summary.signal == 0 ? exit_ok : 128 + summary.signal;
}

std::optional<MemoryKind> memory_kind(std::string_view text) {
    for (int code = 1; code < memory_kind_count; ++code) {
        const auto kind = static_cast<MemoryKind>(code);
        if (name(kind) == text) return kind;
    }
    return std::nullopt;
}

// What the user asks of a camera.
Result<void> take_wish(const Texts& raw, camera::RunOptions& options) {
    if (!raw.format.empty()) {
        options.wish.format = camera::pixel_format(raw.format);
        if (!options.wish.format) {
            return Error(Code::invalid_argument, "there is no frame format '" + raw.format + "'",
                         "gray, nv12, i420, yuyv, uyvy or bayer8");
        }
    }
    const bool sides = raw.width <= camera::max_pixels_a_side && raw.height <= camera::max_pixels_a_side;
    if ((raw.width == 0) != (raw.height == 0) || !sides || raw.pitch_bytes != 0) {
        return Error(Code::invalid_argument, "a camera is asked for a size by --width and --height, of at most 65535",
                     "give both of them, and no --pitch: the camera states it");
    }
    options.wish.width = static_cast<std::uint32_t>(raw.width);
    options.wish.height = static_cast<std::uint32_t>(raw.height);
    return {};
}

// Converts the options given as words into values.
Result<void> take_texts(const Texts& raw, camera::RunOptions& options) {
    if (!raw.memory.empty()) {
        options.memory = memory_kind(raw.memory);
        if (!options.memory) {
            return Error(Code::invalid_argument, "there is no kind of memory '" + raw.memory + "'",
                         "host, pinned, registered, managed or device (copied)");
        }
    }
    if (options.camera.empty() == options.input.empty()) {
        return Error(Code::invalid_argument, options.input.empty() ? "there is no input" : "there are two inputs",
                     "name an input file, or a camera by --camera");
    }
    if (!options.camera.empty()) return take_wish(raw, options);
    if (raw.format.empty()) {
        if (raw.width == 0 && raw.height == 0 && raw.pitch_bytes == 0) return {};
        return Error(Code::invalid_argument, "--width, --height and --pitch describe raw frames",
                     "add --format gray, nv12, i420, yuyv, uyvy or bayer8");
    }
    const std::optional<camera::PixelFormat> format = camera::pixel_format(raw.format);
    if (!format) {
        return Error(Code::invalid_argument, "there is no frame format '" + raw.format + "'",
                     "gray, nv12, i420, yuyv, uyvy or bayer8");
    }
    Result<camera::FrameShape> shape = camera::make_frame_shape(*format, raw.width, raw.height, raw.pitch_bytes);
    if (!shape) return std::move(shape).error();
    options.reading.raw = *shape;
    return {};
}

// Names the picture formats that this build lacks, for the help text.
std::string missing_pictures() {
    if (camera::with_jpeg && camera::with_png) return {};
    return std::string("; this build has no ") + (camera::with_png    ? "JPEG"
                                                  : camera::with_jpeg ? "PNG"
                                                                      : "JPEG and no PNG");
}
std::string input_help() {
    return "YUV4MPEG2 (mono or 4:2:0), or a picture: PGM, PPM (P5, P6), JPEG, PNG; - is standard input" +
           missing_pictures();
}
std::string output_help() {
    return "overlay: a video (.y4m), or pictures (.jpg, .png, .ppm, .pgm)" + missing_pictures();
}

void add_options(CLI::App& command, camera::RunOptions& options, Texts& raw, std::uint32_t& cpu_threads) {
    command.add_option("input", options.input, input_help());
    command.add_option("--camera", options.camera,
                       "a V4L2 camera instead of the input, as /dev/video0; ends with --frames or a signal");
    command.add_option("-o,--output", options.output, output_help());
    command.add_option("--corners", options.corners_file, "corners and tracks of every frame, as JSON");
    add_number(command, "-n,--frames", options.reading.frames, {1, std::uint64_t{1} << 40},
               "end after this many frames; a single picture is panned into this many");
    command.add_option(
        "--memory", raw.memory,
        "memory of frames and lists, instead of the machine's choice: host, pinned, registered, managed, "
        "device (copied)");
    add_number(command, "--in-flight", options.in_flight, {1, 64}, "frames in flight on the device at a time")
        ->capture_default_str();
    add_number(command, "--cpu-threads", cpu_threads, {1, 1024},
               "threads that run the kernels where the device is the CPU; default: one");
    const char* group = "Raw frames, and wishes of a camera";
    command.add_option("--format", raw.format, "gray, nv12, i420, yuyv, uyvy or bayer8")->group(group);
    const NumberRange<std::uint64_t> length{1, std::uint64_t{1} << 40};
    add_number(command, "--width", raw.width, length, "pixels")->group(group);
    add_number(command, "--height", raw.height, length, "pixels")->group(group);
    add_number(command, "--pitch", raw.pitch_bytes, length, "bytes from one row to the next; default: no gap")
        ->group(group);
    group = "Corners";
    add_number(command, "--threshold", options.rule.threshold, {0}, "a corner's response is greater than this")
        ->group(group)
        ->capture_default_str();
    add_number(command, "--distance", options.rule.radius, {1, 64}, "a corner is the best within this many pixels")
        ->group(group)
        ->capture_default_str();
    add_number(command, "--max-corners", options.max_corners, {1, 1u << 20}, "most corners of one frame")
        ->group(group)
        ->capture_default_str();
    add_number(command, "--match-radius", options.matching.radius, {0, 1024},
               "pixels that a corner may move between frames")
        ->group(group)
        ->capture_default_str();
}

}  // namespace

void add_run_command(CLI::App& app, CommandContext& context) {
    struct Choices {
        camera::RunOptions options;
        Texts texts;
    };
    const auto choices = std::make_shared<Choices>();
    CLI::App* command = app.add_subcommand("run", "Find and follow corners in camera frames");
    add_options(*command, choices->options, choices->texts, context.cpu_threads);
    command->callback([choices, &context] {
        if (Result<void> taken = take_texts(choices->texts, choices->options); !taken)
            fail(exit_bad_usage, taken.error());
        context.exit_code = run(choices->options, context);
    });
}

}  // namespace isthmus::tools
