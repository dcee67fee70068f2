// SPDX-License-Identifier: Apache-2.0
// Measures in a child process with a deadline, writes the profile and says what it is good for.
#include "tune_command.hpp"

#include "common/command.hpp"
#include "common/console.hpp"
#include "common/number_options.hpp"
#include "common/probe.hpp"
#include "common/report_text.hpp"
#include "common/session.hpp"
#include "advice.hpp"
#include "choices.hpp"
#include "compare.hpp"
#include "html.hpp"
#include "measure.hpp"
#include "profile_json.hpp"
#include "profile_place.hpp"
#include "progress_bar.hpp"
#include "real_clock.hpp"
#include "verify.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools {
namespace {

using namespace tune;
using Json = nlohmann::ordered_json;

struct TuneOptions {
    bool quick = false;
    bool thorough = false;
    double budget = 0;  // seconds; 0: as the effort says
    std::string output;
    std::string html;
    bool verify = false;
    int points = 240;
    std::uint64_t seed = 1;
    std::string profile;  // that --verify looks at
    std::vector<std::string> compare;
};

constexpr double verify_seconds = 300;

// --- in the child ---------------------------------------------------------------------------------------------------

std::string line_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Reports at most ten times a second.
class Teller {
public:
    explicit Teller(const Say& say) : say_(say) {}
    void operator()(double share, std::string_view what) {
        const double now = steady_seconds();
        if (now < next_) return;
        next_ = now + 0.1;
        say_(line_of({{"share", share}, {"what", what}}));
    }

private:
    const Say& say_;
    double next_ = 0;
};

// Runs `work` and reports its failure as a line.
template <class Work>
void play(const Say& say, Work&& work) {
    try {
        work();
    } catch (const Failure& failure) {
        say(line_of({{"cannot", failure.what()}, {"code", failure.exit_code()}}));
    }
}

Runtime open(const CommandContext& context, const std::string& profile) {
    ::setenv("ISTHMUS_PROFILE", profile.c_str(), 1);
    Result<Runtime> runtime = context.open_runtime();
    if (!runtime) cannot(runtime.error().text());
    return std::move(runtime).value();
}

void measure_in_child(const CommandContext& context, const Effort& effort, double began, const Say& say) {
    play(say, [&] {
        Runtime runtime = open(context, "none");
        Device& device = choose_device(runtime, context);
        Teller tell(say);
        MeasureRequest request{effort, began,
                               platform::machines::write_record(record_of_machine(runtime, context, "recorded")),
                               [&](double share, std::string_view what) { tell(share, what); }};
        Measurements measured = measure(runtime, device, request);
        measured.profile.choices = choices_of(measured);
        say("{\"measured\":" + write_measurements(measured) + "}\n");
    });
}

void verify_in_child(const CommandContext& context, const TuneOptions& options, const std::string& profile,
                     const Say& say) {
    play(say, [&] {
        const std::vector<Measurements> devices = read_profile(text_of_file(profile));
        Runtime with_profile = open(context, profile);
        Device& with = choose_device(with_profile, context);
        const auto entry = std::find_if(devices.begin(), devices.end(), [&](const Measurements& device) {
            return device.profile.device && device.profile.device == with.facts().uuid;
        });
        if (entry == devices.end()) bad_input(fmt::format("'{}' has no entry of {}", profile, with.name()));
        if (!with.capabilities().profile) {
            bad_input(
                fmt::format("'{}' is not used here: it was measured with another driver, kernel or memory model, or "
                            "has no choices",
                            profile));
        }
        Runtime without_profile = open(context, "none");
        Device& without = choose_device(without_profile, context);
        std::vector<std::size_t> sizes;
        for (const TurnSample& turn : entry->turns) sizes.push_back(turn.bytes);
        if (sizes.empty()) bad_input(fmt::format("'{}' states no measured turns", profile));
        const std::size_t largest = *std::max_element(sizes.begin(), sizes.end());
        Teller tell(say);
        VerifyRequest request{verify_points(options.points, options.seed, largest, sizes),
                              ways_of(without, candidate_ways(without.capabilities())),
                              options.budget > 0 ? options.budget : verify_seconds,
                              [&](double share, std::string_view what) { tell(share, what); }};
        const std::vector<VerifyRow> rows = verify(with, without, request);
        say(line_of({{"simulated", with_profile.machine().simulated}, {"verified", Json::parse(write_rows(rows))}}));
    });
}

// --- in this process ------------------------------------------------------------------------------------------------

// The lines of the child: shows progress, and keeps the last one that is none.
class Listener {
public:
    void operator()(std::string_view piece) {
        pending_ += piece;
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
            take(std::string_view(pending_).substr(begin, end - begin));
        }
        pending_.erase(0, begin);
    }
    const Json& answer() const { return answer_; }

private:
    void take(std::string_view line) {
        Json json = Json::parse(line, nullptr, false);
        if (!json.is_object()) return;  // output of a driver
        if (json.contains("share") && json.contains("what")) {
            bar_.show(json["share"].get<double>(), json["what"].get<std::string>());
        } else {
            answer_ = std::move(json);
        }
    }
    ProgressBar bar_;
    std::string pending_;
    Json answer_;
};

// What the child answered last. Throws Failure where it has none.
Json answer_of(const std::function<void(const Say&)>& work, double seconds) {
    // A child that hangs is ended; one that is a little late is not.
    const double deadline = 2 * seconds + 60;
    Listener listener;
    const ProbeOutcome outcome =
        run_saying_probe(work, std::chrono::milliseconds(static_cast<std::int64_t>(deadline * 1000)),
                         [&](std::string_view piece) { listener(piece); });
    const Json& answer = listener.answer();
    if (answer.contains("cannot")) {
        throw Failure(answer["code"].get<int>(), answer["cannot"].get<std::string>());
    }
    switch (outcome.end) {
        case ProbeEnd::finished: break;
        case ProbeEnd::hung:
            throw Failure(exit_failed,
                          fmt::format("the measurement was not over after {:.0f} seconds and was ended", deadline));
        case ProbeEnd::crashed:
            throw Failure(exit_failed, fmt::format("the measurement crashed by signal {}", outcome.signal));
        case ProbeEnd::failed: throw Failure(exit_failed, "the measurement failed");
    }
    if (!answer.is_object()) throw Failure(exit_failed, "the measurement ended without a result");
    return answer;
}

Effort effort_of(const TuneOptions& options) {
    if (options.budget > 0) return effort_for(options.budget);
    return options.quick ? quick_effort() : options.thorough ? thorough_effort() : ordinary_effort();
}

// Where the profile goes; empty: nowhere, and `why` says so.
std::string target_of(const TuneOptions& options, const Measurements& measured, std::string& why) {
    if (!measured.profile.device) {
        why = "no profile is written: the CPU device has no UUID, and its memory leaves no choice";
        return {};
    }
    if (!options.output.empty()) return options.output;
    if (measured.profile.simulated) {
        why = "no profile is written: a simulated machine's times mean nothing (--output FILE writes it all the same)";
        return {};
    }
    return own_profile_path();
}

std::string summary(const Measurements& measured, const std::string& written, const std::string& why) {
    std::string text = fmt::format("{}, measured in {:.0f} s\n", measured.device_name, measured.seconds_taken);
    for (const std::string& sentence : advice(measured)) text += "  " + sentence + "\n";
    for (const std::string& note : measured.conditions.notes) text += "note       " + note + "\n";
    return text + (written.empty() ? "note       " + why : "profile    " + written) + "\n";
}

std::string json_text(const Measurements& measured, const std::string& written, const std::string& why) {
    Json out = {{"simulated", measured.profile.simulated}, {"written", written}};
    if (!why.empty()) out["not_written"] = why;
    out["advice"] = advice(measured);
    out["measured"] = Json::parse(write_measurements(measured));
    return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run_tune(const CommandContext& context, const TuneOptions& options) {
    const double began = steady_seconds();
    check_machine(context);
    // What cannot be written is refused before a minute has gone by.
    std::vector<Measurements> existing;
    const bool to_own_place = options.output.empty() && context.machine.empty();
    const std::string own = own_profile_path();
    if (to_own_place && own.empty())
        bad_input("neither XDG_CONFIG_HOME nor HOME names a folder: name a file with --output");
    if (to_own_place && ::access(own.c_str(), F_OK) == 0) {
        try {
            existing = read_profile(text_of_file(own));
        } catch (const Failure& failure) {
            bad_input(fmt::format("'{}': {}; remove it, or name another file with --output", own, failure.what()));
        }
    }
    const Effort effort = effort_of(options);
    const Json answer =
        answer_of([&](const Say& say) { measure_in_child(context, effort, began, say); }, effort.budget);
    Measurements measured = read_measurements(answer.at("measured").dump());

    std::string why;
    const std::string written = target_of(options, measured, why);
    camera::OutputFiles files;
    if (!written.empty()) {
        if (options.output.empty()) make_folders_of(written);
        add_file(files, written, write_profile(merged(std::move(existing), measured)));
    }
    if (!options.html.empty()) add_file(files, options.html, html_page({measured}));
    print(context.json ? json_text(measured, written, why) : for_stdout(summary(measured, written, why)));
    commit(files);
    return exit_ok;
}

int run_verify(const CommandContext& context, const TuneOptions& options) {
    check_machine(context);
    const std::string profile = options.profile.empty() ? found_profile_path() : options.profile;
    if (profile.empty()) bad_input("there is no profile to verify: run isthmus tune first, or name one with --profile");
    const double budget = options.budget > 0 ? options.budget : verify_seconds;
    const Json answer = answer_of([&](const Say& say) { verify_in_child(context, options, profile, say); }, 2 * budget);
    const std::vector<VerifyRow> rows = read_rows(answer.at("verified").dump());
    const bool simulated = answer.at("simulated").get<bool>();
    print(context.json ? verify_json(rows, simulated) : verify_text(rows, simulated));
    return simulated || is_kept(verdict_of(rows, true)) ? exit_ok : exit_failed;
}

int run_compare(const CommandContext& context, const TuneOptions& options) {
    std::vector<Measurements> sides[2];
    for (std::size_t side = 0; side < 2; ++side) {
        const std::string& file = options.compare.at(side);
        try {
            sides[side] = read_profile(text_of_file(file));
        } catch (const Failure& failure) {
            bad_input(fmt::format("--compare {}: {}", file, failure.what()));
        }
    }
    print(context.json ? compare_json(sides[0], sides[1]) : compare_text(sides[0], sides[1]));
    return exit_ok;
}

std::string names_a_file(const std::string& file) {
    return file.empty() ? "names no file" : "";
}

}  // namespace

void add_tune_command(CLI::App& app, CommandContext& context) {
    const auto options = std::make_shared<TuneOptions>();
    CLI::App* command = app.add_subcommand("tune", "measure which memory is fastest here, for the allocation policy");
    CLI::Option* const quick = command->add_flag("--quick", options->quick, "take 10 seconds instead of 60");
    CLI::Option* const thorough = command->add_flag("--thorough", options->thorough, "take 300 seconds");
    CLI::Option* const budget =
        add_number(*command, "--budget", options->budget, {1.0, 86400.0}, "seconds that it may take");
    quick->excludes(thorough)->excludes(budget);
    thorough->excludes(budget);
    CLI::Option* const output =
        command->add_option("--output", options->output, "write the profile here, not where the runtime looks for it")
            ->type_name("FILE")
            ->check(names_a_file);
    CLI::Option* const html =
        command->add_option("--html", options->html, "write a page with plots of what was measured")
            ->type_name("FILE")
            ->check(names_a_file);
    CLI::Option* const compare =
        command->add_option("--compare", options->compare, "compare two profiles instead of measuring")
            ->expected(2)
            ->type_name("FILE FILE")
            ->check(names_a_file);
    CLI::Option* const verify =
        command->add_flag("--verify", options->verify,
                          "measure how good the choices of a profile are, at points between the measured ones");
    add_number(*command, "--points", options->points, {1, 100000}, "points of --verify")
        ->capture_default_str()
        ->needs(verify);
    add_number(*command, "--seed", options->seed, {}, "seed of these points")->capture_default_str()->needs(verify);
    command->add_option("--profile", options->profile, "the profile of --verify; default: the one that is in use")
        ->type_name("FILE")
        ->check(names_a_file)
        ->needs(verify);
    // What measures nothing new writes nothing.
    verify->excludes(quick)->excludes(thorough)->excludes(output)->excludes(html)->excludes(compare);
    compare->excludes(quick)->excludes(thorough)->excludes(budget)->excludes(output)->excludes(html);
    command
        ->add_option_function<std::string>(
            "--format", [&context](const std::string& format) { context.json = format == "json"; },
            "text or json, as --json")
        ->type_name("FORMAT")
        ->check(CLI::IsMember({"text", "json"}));
    command->footer(
        "With --verify, exits with 1 where the choices of the profile are not within 5 % of the best memory.");
    command->callback([options, &context] {
        context.exit_code = options->verify             ? run_verify(context, *options)
                            : !options->compare.empty() ? run_compare(context, *options)
                                                        : run_tune(context, *options);
    });
}

}  // namespace isthmus::tools
