// SPDX-License-Identifier: Apache-2.0
// Reads the recording once, and plays it here, or on each of several simulated machines in a child process.
#include "replay_command.hpp"

#include "common/command.hpp"
#include "common/console.hpp"
#include "common/probe.hpp"
#include "common/session.hpp"
#include "costs.hpp"
#include "outcome.hpp"
#include "player.hpp"
#include "recording.hpp"
#include "tune/profile_json.hpp"
#include "tune/profile_place.hpp"

#include <machines/record.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::tools {
namespace {

using replay::Outcome;

constexpr std::size_t most_bytes = std::size_t{1} << 28;  // of a file that is read
constexpr std::chrono::minutes longest{5};                // on one machine

struct ReplayOptions {
    std::string file;
    std::vector<std::string> machines;
    std::string profile;
};

struct Profile {
    std::vector<tune::Measurements> devices;
    bool asked = false;  // --profile
};

Profile profile_of(const ReplayOptions& options) {
    Profile profile;
    profile.asked = !options.profile.empty();
    const std::string file = profile.asked ? options.profile : tune::found_profile_path();
    if (!file.empty()) profile.devices = tune::read_profile(tune::text_of_file(file));
    return profile;
}

// Adds the costs: of the entry for this device. An only entry that was asked for serves another device, too.
void add_costs(Outcome& outcome, const replay::Recording& recording, const replay::Played& played,
               const Profile& profile) {
    const auto& devices = profile.devices;
    auto found = std::find_if(devices.begin(), devices.end(), [&](const tune::Measurements& one) {
        return one.profile.device && one.profile.device == played.device;
    });
    const bool own = found != devices.end();
    if (!own && profile.asked && devices.size() == 1) found = devices.begin();
    if (found == devices.end()) {
        if (profile.asked) outcome.profile = "it has no entry for this device, and so says nothing";
        return;
    }
    outcome.hand_over_seconds = replay::hand_over_seconds(recording, played.became, tune::CostModel(*found));
    outcome.profile = fmt::format("{}, {}{}{}", found->device_name, found->profile.measured_on,
                                  own ? "" : "; measured on another device: it tells costs, and chooses no memory",
                                  found->profile.simulated ? "; simulated: its times mean nothing" : "");
    if (!outcome.hand_over_seconds) outcome.profile += "; nothing of what is used here was measured";
}

Outcome play_here(const replay::Recording& recording, const ReplayOptions& options, const Profile& profile,
                  CommandContext& context) {
    const auto open = [&](const ObserverCallbacks* observer) {
        context.adjust_options = [&, observer](RuntimeOptions& adjusted) {
            adjusted.observer = observer;
            adjusted.log = [](Severity, std::string_view) {};  // the outcome says what it has to say
            if (!options.profile.empty()) adjusted.profile = options.profile;
        };
        return context.open_runtime();
    };
    replay::Played played =
        replay::play(recording, open, [&](Runtime& runtime) -> Device& { return choose_device(runtime, context); });
    played.outcome.machine = context.machine;
    played.outcome.simulated = played.simulated;
    add_costs(played.outcome, recording, played, profile);
    return std::move(played.outcome);
}

Outcome without(const std::string& machine, std::string problem) {
    Outcome outcome;
    outcome.machine = machine;
    outcome.problem = std::move(problem);
    return outcome;
}

struct Machine {
    std::string name;
    std::string record;  // from readable_record()
};

// In a child, because a process simulates one machine.
Outcome play_on(const Machine& machine, const replay::Recording& recording, const ReplayOptions& options,
                const Profile& profile, CommandContext& context) {
    const ProbeOutcome child = run_probe(
        [&]() -> std::string {
            context.machine = machine.name;
            context.machine_record = machine.record;
            try {
                return replay::as_json(play_here(recording, options, profile, context));
            } catch (const std::exception& error) {
                return replay::as_json(without(machine.name, error.what()));
            }
        },
        longest);
    if (child.end == ProbeEnd::hung) return without(machine.name, "the replay did not end");
    if (child.end == ProbeEnd::crashed)
        return without(machine.name, fmt::format("it ended with signal {}", child.signal));
    if (child.end == ProbeEnd::failed && !child.text.starts_with("{")) return without(machine.name, child.text);
    return replay::read_outcome(child.text).value_or(without(machine.name, "the replay said nothing"));
}

std::vector<std::string> machines_of(const ReplayOptions& options) {
    if (options.machines != std::vector<std::string>{"all"}) return options.machines;
    std::vector<std::string> all;
    for (const std::string_view name : platform::machines::known_machines()) all.emplace_back(name);
    return all;
}

int run_replay(CommandContext& context, const ReplayOptions& options) {
    replay::ReadRecording read = replay::read_recording(read_text(options.file, most_bytes));
    if (!read.recording) bad_input(fmt::format("{}: {}", options.file, read.problem));
    const Profile profile = profile_of(options);
    const TextStyle style{stdout_columns(), stdout_has_colour()};
    if (options.machines.empty()) {
        const Outcome outcome = play_here(*read.recording, options, profile, context);
        print(context.json ? replay::as_json(outcome) : replay::as_text(outcome, style));
        return exit_ok;
    }
    if (!context.machine.empty()) bad_input("--machines goes without --machine: it names all of them");
    std::vector<Machine> machines;
    for (const std::string& name : machines_of(options)) {
        CommandContext one = context;
        one.machine = name;
        one.machine_record = readable_record(name);
        check_machine(one);
        machines.push_back({name, one.machine_record});
    }
    std::vector<Outcome> outcomes;
    for (const Machine& machine : machines) {
        outcomes.push_back(play_on(machine, *read.recording, options, profile, context));
    }
    print(context.json ? replay::as_json(outcomes) : replay::as_table(outcomes, style));
    const bool all_played =
        std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& one) { return one.problem.empty(); });
    return all_played ? exit_ok : exit_failed;
}

}  // namespace

void add_replay_command(CLI::App& app, CommandContext& context) {
    CLI::App* const command = app.add_subcommand(
        "replay", "play a recorded program on another machine: what is refused, copied and waited for there");
    const auto options = std::make_shared<ReplayOptions>();
    command->add_option("FILE", options->file, "the file that --trace or ISTHMUS_TRACE named")->required();
    command
        ->add_option("--machines", options->machines, "several simulated machines: names with commas between, or all")
        ->type_name("NAME,...")
        ->delimiter(',');
    command->add_option("--profile", options->profile, "costs, as `isthmus tune` measured them")->type_name("FILE");
    command->callback([&context, options] { context.exit_code = run_replay(context, *options); });
}

}  // namespace isthmus::tools
