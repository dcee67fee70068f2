// SPDX-License-Identifier: Apache-2.0
// The options of `isthmus view`, and its final report.
#include "view_command.hpp"

#include "bridge_process.hpp"
#include "camera/stop_signal.hpp"
#include "common/console.hpp"
#include "common/number_options.hpp"
#include "common/report_text.hpp"
#include "common/session.hpp"
#include "memory_text.hpp"
#include "private_place.hpp"
#include "viewing.hpp"
#include "share_command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace isthmus::tools {
namespace {

using camera::StopSignal;
using share::Viewed;
using share::ViewOptions;
using Json = nlohmann::ordered_json;

int exit_code_of(const Error& error) {
    const Code code = error.code();
    return code == Code::unsupported || code == Code::not_accessible || code == Code::no_gpu_code ? exit_cannot
                                                                                                  : exit_failed;
}

Json as_json(const Viewed& viewed, const ViewOptions& options, const camera::RanOn& where,
             const CommandContext& context, const Result<void>& ended) {
    Json document = {
        {"command", "view"},
        {"machine", context.machine},
        {"simulated", where.simulated},
        {"device", {{"number", where.number}, {"name", where.device}, {"model", where.model}}},
        {"directory", options.at},
        {"input",
         {{"width", viewed.shape.width},
          {"height", viewed.shape.height},
          {"format", camera::name(viewed.shape.format)},
          {"frame_bytes", viewed.shape.size_bytes}}},
        {"ring", {{"policy", viewed.policy}, {"kind", viewed.kind}, {"path", viewed.path}, {"reason", viewed.reason}}},
        {"frames", viewed.frames},
        {"missed", viewed.missed},
        {"overtaken", viewed.overtaken},
        {"wall_ns", viewed.wall.count()},
        {"digest", viewed.checksums.digest()},
        {"end", ended ? viewed.end : std::string(name(ended.code()))},
    };
    if (!viewed.received.empty()) document["received"] = viewed.received;
    if (options.corners) {
        document["corners"] = {{"count", viewed.corners}, {"digest", viewed.corners_digest.text()}};
    }
    if (options.checksums) {
        Json all = Json::array();
        for (const auto& [number, sum] : viewed.checksums.frames()) all.push_back({number, share::hex(sum)});
        document["checksums"] = std::move(all);
    }
    return document;
}

std::string as_text(const Viewed& viewed, const ViewOptions& options, const camera::RanOn& where,
                    const Result<void>& ended) {
    const double seconds = static_cast<double>(viewed.wall.count()) / 1e9;
    std::string text = camera::as_text(where);
    text +=
        fmt::format("ring       frames of {} bytes from {}, {}\n", viewed.shape.size_bytes, options.at, viewed.policy);
    if (!viewed.received.empty()) text += "received   " + viewed.received + "\n";
    text += share::memory_text(viewed.kind, viewed.reason);
    text += fmt::format("frames     {} in {:.3f} s, {:.1f} per second, digest {}\n", viewed.frames, seconds,
                        seconds > 0 ? static_cast<double>(viewed.frames) / seconds : 0.0, viewed.checksums.digest());
    text +=
        fmt::format("missed     {} before they were taken, {} while they were read\n", viewed.missed, viewed.overtaken);
    if (options.corners) {
        text += fmt::format("corners    {}, digest {}\n", viewed.corners, viewed.corners_digest.text());
    }
    return text + fmt::format("ended by   {}\n", ended ? viewed.end : std::string(name(ended.code())));
}

// Where frames of another machine come from, and the directory in which the bridge makes a ring of them.
struct Remote {
    std::string from, key;  // empty: none
};

// `alone`: no other viewer joins at options.at.
share::BridgeProcess start_bridge(const Remote& remote, const ViewOptions& options, bool alone, double connect_s) {
    std::vector<std::string> words{"receive",
                                   "--until-stdin-ends",
                                   "--from",
                                   remote.from,
                                   "--at",
                                   options.at,
                                   "--connect-deadline",
                                   fmt::format("{:.3f}", connect_s)};
    if (!remote.key.empty()) words.insert(words.end(), {"--key", remote.key});
    // Where the producer waits, its deadline is the one for this viewer, which delays nobody here.
    if (alone) {
        const double deadline_s = std::clamp(options.patience_s, 1.0, 3600.0);
        words.insert(words.end(), {"--viewer-deadline", fmt::format("{:.3f}", deadline_s)});
    }
    Result<share::BridgeProcess> bridge = share::BridgeProcess::start(words);
    if (!bridge) throw Failure(exit_code_of(bridge.error()), "view: " + bridge.error().text());
    return std::move(bridge).value();
}

// Frames of another machine, from a bridge of this command's own.
class RemoteView {
public:
    RemoteView(const Remote& remote, ViewOptions& options, bool alone)
        : remote_(remote),
          options_(options),
          alone_(alone),
          connect_s_(options.connect_s),
          bridge_(start_bridge(remote, options, alone, connect_s_)) {
        options_.hopeless = [this] { return !bridge_->runs(); };
        options_.producer = bridge_->process();
        // The bridge's own time to connect comes before that of this process.
        options_.connect_s += 2;
    }
    // UCX may abort the bridge where the other machine dies in the middle of a connection. Frames that may be missed
    // are then awaited from a new bridge, as after a lost connection; a ring whose producer waits cannot go on.
    Result<void> view(Device& device, Viewed& viewed) {
        constexpr int most_without_a_frame = 3;
        int without_a_frame = 0;
        while (true) {
            const std::uint64_t before = viewed.frames;
            Result<void> ended = share::view_frames(device, options_, viewed);
            without_a_frame = viewed.frames == before ? without_a_frame + 1 : 0;
            // A bridge whose ring is gone ends, but UCX may take its time to abort it.
            const bool ring_is_gone = ended.code() == Code::peer_lost && !viewed.policy.empty();
            const std::chrono::seconds time_to_end(ring_is_gone ? 10 : 1);
            const bool goes_on = !ended && viewed.policy != "wait" && without_a_frame < most_without_a_frame &&
                                 StopSignal::received() == 0 && bridge_->crashes(time_to_end);
            if (!goes_on) return ended;
            complain("view: the bridge crashed and is started again");
            bridge_.emplace(start_bridge(remote_, options_, alone_, connect_s_));
            options_.producer = bridge_->process();
        }
    }
    share::BridgeProcess& bridge() noexcept { return *bridge_; }

private:
    const Remote& remote_;
    ViewOptions& options_;
    bool alone_;
    double connect_s_;
    std::optional<share::BridgeProcess> bridge_;
};

int view(ViewOptions options, const Remote& remote, const CommandContext& context) {
    const StopSignal stop;
    std::optional<share::PrivatePlace> place;
    std::optional<RemoteView> elsewhere;
    if (!remote.from.empty()) {
        if (options.at.empty()) options.at = place.emplace().path();
        elsewhere.emplace(remote, options, place.has_value());
    }
    Result<Runtime> runtime = context.open_runtime();
    if (!runtime) throw Failure(exit_failed, "view: " + runtime.error().text());
    Device& device = choose_device(*runtime, context);
    Viewed viewed(options.checksums);
    const Result<void> ended =
        elsewhere ? elsewhere->view(device, viewed) : share::view_frames(device, options, viewed);
    if (elsewhere) {
        elsewhere->bridge().end(std::chrono::seconds(2));
        viewed.received = share::received_text(remote.from, viewed.path, device.is_cpu());
    }
    if (StopSignal::received() != 0 && viewed.reason.empty()) return 128 + StopSignal::received();
    if (!viewed.reason.empty()) {  // reports what was seen, whatever ended the view
        const camera::RanOn where = ran_on(*runtime, device, context);
        print(
            context.json
                ? as_json(viewed, options, where, context, ended).dump(2, ' ', false, Json::error_handler_t::replace) +
                      "\n"
                : for_stdout(as_text(viewed, options, where, ended)));
    }
    if (!ended) {
        std::string line = "view: " + std::string(ended.error().message());
        if (!ended.error().remedy().empty()) line += "; what works: " + std::string(ended.error().remedy());
        const bool refused = elsewhere && viewed.reason.empty() &&
                             (ended.code() == Code::in_use || elsewhere->bridge().exit_code() == exit_bad_usage);
        throw Failure(refused ? exit_bad_usage : exit_code_of(ended.error()), line);
    }
    return viewed.end == "signal" ? 128 + StopSignal::received() : exit_ok;
}

}  // namespace

void add_view_command(CLI::App& app, CommandContext& context) {
    struct Choices {
        ViewOptions options;
        Remote remote;
        std::string waiting = "adaptive";
    };
    const auto choices = std::make_shared<Choices>();
    CLI::App* command = app.add_subcommand("view", "Read the frames of `isthmus share` in another process");
    ViewOptions& options = choices->options;
    command->add_option("--at", options.at, "directory of the socket; default: isthmus below $XDG_RUNTIME_DIR")
        ->type_name("DIRECTORY");
    command
        ->add_option("--from", choices->remote.from,
                     "frames of an `isthmus share --listen` on another machine; --at: where other viewers may join")
        ->type_name("HOST:PORT");
    command->add_option("--key", choices->remote.key, "key file of --from; without one only loopback is accepted")
        ->type_name("FILE");
    add_number(*command, "-n,--frames", options.frames, {1, std::uint64_t{1} << 40},
               "end after so many whole frames; default: at the ring's end");
    add_number(*command, "--connect-deadline", options.connect_s, {0.0, 3600.0}, "seconds to wait for a producer")
        ->capture_default_str();
    add_number(*command, "--deadline", options.patience_s, {0.001, 86400.0}, "longest time without a frame, in seconds")
        ->capture_default_str();
    add_number(*command, "--work", options.work_ms, {0.0, 60000.0},
               "milliseconds to hold each frame, as slow work would");
    command->add_option("--waiting", choices->waiting, "adaptive, spin or sleep")
        ->check(CLI::IsMember({"adaptive", "spin", "sleep"}))
        ->capture_default_str();
    command->add_flag("--corners", options.corners, "the device finds corners in each frame, as in `isthmus run`");
    command->add_flag("--checksums", options.checksums, "print each frame's checksum; needs --json and --frames");
    command->callback([choices, &context] {
        ViewOptions chosen = choices->options;
        const std::string problem = share::checksums_problem(chosen.checksums, chosen.frames);
        if (!problem.empty()) bad_input("view: " + problem);
        if (choices->remote.from.empty() && !choices->remote.key.empty()) bad_input("view: --key is for --from");
        if (choices->remote.from.empty()) chosen.at = meeting_place(chosen.at);
        chosen.waiting = choices->waiting == "spin"    ? WaitPolicy::spin
                         : choices->waiting == "sleep" ? WaitPolicy::sleep
                                                       : WaitPolicy::adaptive;
        context.exit_code = view(chosen, choices->remote, context);
    });
}

}  // namespace isthmus::tools
