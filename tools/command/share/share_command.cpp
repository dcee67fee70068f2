// SPDX-License-Identifier: Apache-2.0
// The producer: reads or generates frames directly in the ring's memory, and publishes them.
#include "share_command.hpp"

#include "camera/stop_signal.hpp"
#include "common/console.hpp"
#include "common/number_options.hpp"
#include "common/report_text.hpp"
#include "common/session.hpp"
#include "admission.hpp"
#include "bridge_process.hpp"
#include "checksums.hpp"
#include "memory_text.hpp"
#include "synthetic.hpp"

#include <isthmus/ipc/shared_frame_ring.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace isthmus::tools {
namespace {

using Clock = std::chrono::steady_clock;
using camera::FrameReader;
using camera::Got;
using camera::StopSignal;
using Json = nlohmann::ordered_json;
using Ring = SharedFrameRing<std::uint8_t>;

// Longer than the bridge gives its viewers.
constexpr std::chrono::seconds time_to_drain{12};

struct ShareOptions {
    std::string input;
    std::string synthetic;  // WIDTHxHEIGHT
    std::uint64_t frames = 0;
    std::string at;
    std::string listen;  // HOST:PORT for viewers on other machines; empty: none
    std::string key;
    std::string policy = "drop";
    std::size_t slots = 4;
    std::uint32_t wait_for = 0;
    double rate = 0;
    double reader_deadline_s = 1;
    bool writable = false;
    bool checksums = false;
};

[[noreturn]] void fail(int exit_code, const Error& error) {
    std::string line = "share: " + std::string(error.message());
    if (!error.remedy().empty()) line += "; what works: " + std::string(error.remedy());
    throw Failure(exit_code, line);
}
int exit_code_of(const Error& error) {
    const Code code = error.code();
    if (code == Code::unsupported || code == Code::not_accessible) return exit_cannot;
    return code == Code::invalid_argument ? exit_bad_usage : exit_failed;
}

std::unique_ptr<FrameReader> open_input(const ShareOptions& options, int stop) {
    if (options.synthetic.empty() == options.input.empty()) bad_input("share: either INPUT or --synthetic is wanted");
    Result<std::unique_ptr<FrameReader>> reader = [&]() -> Result<std::unique_ptr<FrameReader>> {
        if (!options.synthetic.empty()) {
            const std::string_view size = options.synthetic;
            const std::size_t cross = std::min(size.find('x'), size.size());
            const NumberRange<std::uint64_t> pixels{0, 999'999'999};
            const auto width = number_in(size.substr(0, cross), pixels);
            const auto height = number_in(size.substr(std::min(cross + 1, size.size())), pixels);
            if (!width || !height) {
                bad_input(fmt::format("share: --synthetic {}: WIDTHxHEIGHT is wanted, as 640x480", size));
            }
            return share::open_synthetic(*width, *height, options.frames);
        }
        Result<std::unique_ptr<camera::ByteSource>> source = camera::open_file(options.input, stop);
        if (!source) return std::move(source).error();
        return camera::open_frames(std::move(source).value(), {.raw = {}, .frames = options.frames});
    }();
    if (!reader) fail(reader.code() == Code::unsupported ? exit_cannot : exit_bad_usage, reader.error());
    return std::move(reader).value();
}

SharedRingOptions ring_options(const ShareOptions& options) {
    SharedRingOptions ring;
    ring.slots = options.slots;
    ring.policy = options.policy == "wait" ? SlowReaderPolicy::wait : SlowReaderPolicy::overwrite;
    ring.rights = options.writable ? ReaderRights::read_write : ReaderRights::read_only;
    ring.max_readers = 64;
    ring.reader_deadline = std::chrono::nanoseconds(static_cast<std::int64_t>(options.reader_deadline_s * 1e9));
    return ring;
}

struct Shared {
    std::uint64_t frames = 0;
    std::chrono::nanoseconds wall{0};
    share::Checksums checksums;
    std::vector<SharedReaderInfo> readers{};
};

// Sleeps in short steps, so that a signal is noticed.
void sleep_until(Clock::time_point time) {
    while (StopSignal::received() == 0 && Clock::now() < time) {
        std::this_thread::sleep_until(std::min(time, Clock::now() + std::chrono::milliseconds(50)));
    }
}

// Shares one frame; false: the input has ended.
bool share_one(FrameReader& input, Ring& ring, std::mutex& mutex, Shared& shared) {
    Result<SharedFrameToFill<std::uint8_t>> frame = [&] {
        const std::lock_guard lock(mutex);
        return ring.begin_frame(Wait::at_most(std::chrono::milliseconds(1)));
    }();
    if (!frame && frame.code() == Code::timed_out) {
        // Every slot is in use by readers. Leaving the ring for a moment lets other processes be admitted and signals
        // be noticed.
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        return true;
    }
    if (!frame) fail(exit_failed, frame.error());
    {
        Result<HostView<std::uint8_t>> view = frame->buffer().write_on_host();
        if (!view) fail(exit_failed, view.error());
        const Result<Got> got = input.read(view->span());
        if (!got && StopSignal::received() == 0) fail(exit_bad_usage, got.error());
        if (!got || *got != Got::all) return false;
        shared.checksums.add(frame->number(), view->span());
    }
    const std::lock_guard lock(mutex);
    if (Result<void> published = frame->publish(); !published) fail(exit_failed, published.error());
    shared.checksums.accept();
    ++shared.frames;
    return true;
}

Shared share_all(const ShareOptions& options, FrameReader& input, Ring& ring, Listener listener) {
    std::mutex mutex;
    Shared shared{.checksums = share::Checksums(options.checksums)};
    {
        share::Admission admission(std::move(listener), ring, mutex, input.shape(), complain);
        while (StopSignal::received() == 0 && admission.admitted() < options.wait_for) {
            if (admission.ended() != nullptr) fail(exit_failed, *admission.ended());
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        const Clock::time_point begin = Clock::now();
        while (StopSignal::received() == 0 && (options.frames == 0 || shared.frames < options.frames)) {
            if (!share_one(input, ring, mutex, shared)) break;
            if (options.rate > 0) {
                const double due = static_cast<double>(shared.frames) / options.rate;
                sleep_until(begin + std::chrono::nanoseconds(static_cast<std::int64_t>(due * 1e9)));
            }
        }
        shared.wall = Clock::now() - begin;
    }
    ring.close();
    shared.readers = ring.readers();
    return shared;
}

Json as_json(const Shared& shared, const ShareOptions& options, const Ring& ring, const camera::RanOn& where,
             const FrameReader& input, const CommandContext& context, const std::string& place) {
    const BufferBase& buffer = ring.buffer(0);
    Json readers = Json::array();
    for (const SharedReaderInfo& reader : shared.readers) {
        readers.push_back({{"number", reader.number}, {"state", name(reader.state)}, {"why", reader.why}});
    }
    Json document = {
        {"command", "share"},
        {"machine", context.machine},
        {"simulated", where.simulated},
        {"device", {{"number", where.number}, {"name", where.device}, {"model", where.model}}},
        {"directory", place},
        {"input",
         {{"width", input.shape().width},
          {"height", input.shape().height},
          {"format", camera::name(input.shape().format)},
          {"frame_bytes", input.shape().size_bytes}}},
        {"ring",
         {{"method", name(ShareMethod::host_memory)},
          {"policy", options.policy},
          {"slots", ring.slots()},
          {"rights", options.writable ? "read_write" : "read_only"},
          {"kind", name(buffer.kind())},
          {"path", name(buffer.path())},
          {"reason", buffer.explain()}}},
        {"frames", shared.frames},
        {"wall_ns", shared.wall.count()},
        {"digest", shared.checksums.digest()},
        {"readers", readers},
        {"signal", StopSignal::received()},
    };
    if (options.checksums) {
        Json all = Json::array();
        for (const auto& [number, sum] : shared.checksums.frames()) all.push_back({number, share::hex(sum)});
        document["checksums"] = std::move(all);
    }
    return document;
}

std::string as_text(const Json& document, const camera::RanOn& where) {
    const double seconds = document["wall_ns"].get<double>() / 1e9;
    const double frames = document["frames"].get<double>();
    std::string text = camera::as_text(where);
    text += fmt::format("ring       {} slots of {} bytes in {}, {}\n", document["ring"]["slots"].get<std::uint64_t>(),
                        document["input"]["frame_bytes"].get<std::uint64_t>(), document["directory"].get<std::string>(),
                        document["ring"]["policy"].get<std::string>());
    text +=
        share::memory_text(document["ring"]["kind"].get<std::string>(), document["ring"]["reason"].get<std::string>());
    text += fmt::format("frames     {} in {:.3f} s, {:.1f} per second, digest {}\n",
                        document["frames"].get<std::uint64_t>(), seconds, seconds > 0 ? frames / seconds : 0.0,
                        document["digest"].get<std::string>());
    for (const Json& reader : document["readers"]) {
        const auto why = reader["why"].get<std::string>();
        text += fmt::format("reader {:<3} {}{}{}\n", reader["number"].get<std::uint32_t>(),
                            reader["state"].get<std::string>(), why.empty() ? "" : ": ", why);
    }
    return text;
}

// The bridge connects to the ring's socket as any viewer.
std::optional<share::BridgeProcess> start_bridge(const ShareOptions& options, const std::string& place) {
    if (options.listen.empty()) {
        if (!options.key.empty()) bad_input("share: --key is for --listen");
        return std::nullopt;
    }
    std::vector<std::string> words{"send", "--until-stdin-ends", "--listen", options.listen, "--at", place};
    if (!options.key.empty()) words.insert(words.end(), {"--key", options.key});
    Result<share::BridgeProcess> bridge = share::BridgeProcess::start(words);
    if (!bridge) fail(exit_code_of(bridge.error()), bridge.error());
    return std::move(bridge).value();
}

int share_frames(const ShareOptions& options, const CommandContext& context) {
    const std::string problem = share::checksums_problem(options.checksums, options.frames);
    if (!problem.empty()) bad_input("share: " + problem);
    const std::string place = meeting_place(options.at);
    const StopSignal stop;
    std::unique_ptr<FrameReader> input = open_input(options, stop.descriptor());
    Result<Runtime> runtime = context.open_runtime();
    if (!runtime) fail(exit_failed, runtime.error());
    Device& device = choose_device(*runtime, context);
    Result<Ring> ring = Ring::create(device, input->shape().size_bytes, ring_options(options));
    if (!ring) fail(exit_code_of(ring.error()), ring.error());
    Result<Listener> listener = Listener::create(place);
    if (!listener) fail(exit_bad_usage, listener.error());
    std::optional<share::BridgeProcess> bridge = start_bridge(options, place);
    const Shared shared = share_all(options, *input, *ring, std::move(listener).value());
    // Its viewers get the last frames.
    if (bridge) bridge->end(time_to_drain);
    const camera::RanOn where = ran_on(*runtime, device, context);
    const Json document = as_json(shared, options, *ring, where, *input, context, place);
    print(context.json ? document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                       : for_stdout(as_text(document, where)));
    return StopSignal::received() == 0 ? exit_ok : 128 + StopSignal::received();
}

}  // namespace

std::string meeting_place(const std::string& asked) {
    if (!asked.empty()) return asked;
    const char* const folder = std::getenv("XDG_RUNTIME_DIR");
    if (folder == nullptr || *folder != '/')
        bad_input("XDG_RUNTIME_DIR is not set: say where to meet with --at DIRECTORY");
    return std::string(folder) + "/isthmus";
}

void add_share_command(CLI::App& app, CommandContext& context) {
    const auto options = std::make_shared<ShareOptions>();
    CLI::App* command = app.add_subcommand("share", "Give camera frames to other processes, without copies");
    command->add_option("input", options->input,
                        "frames or a picture, in a format of `isthmus run`; - is standard input");
    command->add_option("--synthetic", options->synthetic, "generated frames of this size instead")
        ->type_name("WIDTHxHEIGHT");
    add_number(*command, "-n,--frames", options->frames, {1, std::uint64_t{1} << 40},
               "end after so many frames; default: at the input's end");
    command->add_option("--at", options->at, "directory of the socket; default: isthmus below $XDG_RUNTIME_DIR")
        ->type_name("DIRECTORY");
    command
        ->add_option("--listen", options->listen,
                     "also for viewers on other machines, which connect to this address; port 0: one that is free")
        ->type_name("HOST:PORT");
    command->add_option("--key", options->key, "key file of --listen; without one only loopback addresses are accepted")
        ->type_name("FILE");
    command
        ->add_option("--policy", options->policy,
                     "drop: overwrite frames that slow viewers read; wait: wait for slow viewers")
        ->check(CLI::IsMember({"drop", "wait"}))
        ->capture_default_str();
    add_number(*command, "--slots", options->slots, {2, 256}, "frames in the ring")->capture_default_str();
    add_number(*command, "--viewers", options->wait_for, {0, 64}, "begin when this many viewers have connected")
        ->capture_default_str();
    add_number(*command, "--rate", options->rate, {0.001, 1e6}, "frames a second; default: as fast as the input");
    add_number(*command, "--viewer-deadline", options->reader_deadline_s, {0.001, 3600.0},
               "seconds that a viewer may delay others without finishing a frame (--policy wait)")
        ->capture_default_str();
    command->add_flag("--writable", options->writable,
                      "viewers may write the frames: for GPUs that cannot register memory for reading only");
    command->add_flag("--checksums", options->checksums, "print each frame's checksum; needs --json and --frames");
    command->callback([options, &context] { context.exit_code = share_frames(*options, context); });
}

}  // namespace isthmus::tools
