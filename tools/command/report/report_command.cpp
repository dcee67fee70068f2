// SPDX-License-Identifier: Apache-2.0
// Gathers the parts, each driver call in a child process; what hangs or crashes is left out with the reason.
#include "report_command.hpp"

#include "caps/caps_record.hpp"
#include "common/command.hpp"
#include "common/console.hpp"
#include "common/number_options.hpp"
#include "common/probe.hpp"
#include "common/program.hpp"
#include "common/report_text.hpp"
#include "common/session.hpp"
#include "doctor/doctor_checks.hpp"
#include "doctor/doctor_gather.hpp"
#include "doctor/doctor_json.hpp"
#include "identity.hpp"
#include "litmus/litmus_child.hpp"
#include "report_document.hpp"
#include "test_results.hpp"
#include "tune/profile_place.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

namespace isthmus::tools {
namespace {

namespace machines = platform::machines;
using Json = nlohmann::ordered_json;

constexpr std::size_t most_bytes = std::size_t{64} << 20;  // of a file that is read

struct ReportOptions {
    std::string file;
    std::string read;
    std::string record;
    std::string profile;
    std::string tests;
    bool no_litmus = false;
    bool run_tests = false;
    double seconds = 3;
    double deadline_seconds = 30;
    double tests_deadline_seconds = 3600;
};

std::chrono::milliseconds milliseconds(double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    char text[16];
    ::gmtime_r(&now, &date);
    return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &date)};
}

std::string words_for(const ProbeOutcome& outcome, double deadline_seconds) {
    switch (outcome.end) {
        case ProbeEnd::hung: return fmt::format("was not over after {:.3g} seconds and was ended", deadline_seconds);
        case ProbeEnd::crashed: return fmt::format("crashed by signal {}", outcome.signal);
        default: return "failed: " + outcome.text;
    }
}

// The doctor also finds whether fabric handles work, which becomes a part of the record.
void add_doctor(CommandContext& context, const ReportOptions& options, report::Parts& parts) {
    const DoctorFacts facts = gather_doctor_facts(context.open_runtime, milliseconds(options.deadline_seconds));
    parts.doctor = Json::parse(doctor_json(facts, diagnose(facts)), nullptr, false);
    parts.simulated = parts.simulated || facts.machine.simulated;
    context.export_findings = facts.exports;
}

void add_record(const CommandContext& context, const ReportOptions& options, report::Parts& parts) {
    const ProbeOutcome outcome = run_probe(
        [&] {
            Result<Runtime> runtime = context.open_runtime();
            if (!runtime) throw Failure(exit_failed, runtime.error().text());
            const Json answer = {{"simulated", runtime->machine().simulated},
                                 {"record", machines::write_record(recorded_machine(*runtime, "reported"))}};
            return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
        },
        milliseconds(options.deadline_seconds));
    const Json answer = Json::parse(outcome.text, nullptr, false);
    if (outcome.end != ProbeEnd::finished || !answer.is_object()) {
        parts.left_out.push_back("record: opening the driver " + words_for(outcome, options.deadline_seconds));
        return;
    }
    parts.simulated = parts.simulated || answer.at("simulated").get<bool>();
    parts.record = Json::parse(answer.at("record").get<std::string>(), nullptr, false);
}

// Puts findings into the record, as `isthmus litmus --save` does.
template <class FindingOf>
void add_findings(report::Parts& parts, FindingOf finding_of) {
    if (!parts.record.is_object()) return;
    Result<machines::MachineRecord> record = machines::read_record(parts.record.dump());
    if (!record) return;
    for (machines::DeviceRecord& device : record->devices) {
        if (device.facts.uuid) device.litmus = finding_of(device);
    }
    parts.record = Json::parse(machines::write_record(*record), nullptr, false);
}

void add_litmus_of_file(const CommandContext& context, report::Parts& parts) {
    const Result<machines::MachineRecord> record = machines::find_record(context.litmus);
    if (!record) bad_input(fmt::format("'{}': {}", context.litmus, record.error().message()));
    const std::vector<LitmusFinding> findings = machines::litmus_findings(*record);
    if (findings.empty()) bad_input(fmt::format("'{}' has no findings of litmus", context.litmus));
    Json list = Json::array();
    const Json text = Json::parse(machines::write_record(*record));
    for (const Json& device : text.at("devices")) {
        if (!device.contains("litmus")) continue;
        list.push_back({{"device", device.at("name")}, {"uuid", device.at("uuid")}, {"litmus", device.at("litmus")}});
    }
    parts.litmus = {{"from", "file"}, {"findings", std::move(list)}};
    add_findings(parts, [&](const machines::DeviceRecord& device) -> std::optional<LitmusFinding> {
        for (const LitmusFinding& finding : findings) {
            if (finding.device == device.facts.uuid) return finding;
        }
        return std::nullopt;
    });
}

void add_litmus(const CommandContext& context, const ReportOptions& options, report::Parts& parts) {
    if (options.no_litmus) {
        parts.left_out.emplace_back("litmus: --no-litmus");
        return;
    }
    if (!context.litmus.empty()) return add_litmus_of_file(context, parts);
    litmus::Request request;
    request.seconds = options.seconds;
    const double deadline_seconds = options.deadline_seconds + 4 * options.seconds;
    const litmus::Report report = litmus::run_in_child(context, request, milliseconds(deadline_seconds));
    if (!report.cannot.empty()) {
        parts.left_out.push_back("litmus: " + report.cannot);
        return;
    }
    if (!report.end.empty()) parts.left_out.push_back("litmus, in part: the trials " + report.end);
    if (!report.applicable) {
        parts.left_out.emplace_back("litmus: there is no GPU, and the CPU device has one side only");
        return;
    }
    parts.litmus = {{"from", "trials"}};
    parts.litmus.update(Json::parse(litmus::as_json(report)));
    if (report.rows.empty()) return;
    add_findings(parts, [&](const machines::DeviceRecord& device) -> std::optional<LitmusFinding> {
        if (device.facts.ordinal != report.ordinal) return std::nullopt;
        return LitmusFinding{device.facts.uuid, report.driver_version, report.simulated,
                             litmus::results_of(report.rows)};
    });
}

void add_tests(const ReportOptions& options, report::Parts& parts) {
    std::string text;
    std::string end;
    if (!options.tests.empty()) {
        text = read_text(options.tests, most_bytes);
    } else if (!options.run_tests) {
        parts.left_out.emplace_back("tests: --run-tests runs the installed tests, --tests FILE takes their results");
        return;
    } else {
        const std::optional<std::string> program = find_installed_tests();
        if (!program) {
            parts.left_out.emplace_back("tests: none are installed beside this program (-Dinstall_tests=true)");
            return;
        }
        complain(fmt::format("running the installed tests, at most {:.4g} seconds", options.tests_deadline_seconds));
        std::vector<std::string> words = {*program};
        if (!parts.simulated) words.emplace_back("--real");
        const ProgramOutcome outcome = run_program(words, milliseconds(options.tests_deadline_seconds));
        if (outcome.end == ProbeEnd::failed) {
            parts.left_out.push_back("tests: " + outcome.text);
            return;
        }
        if (outcome.end == ProbeEnd::crashed) end = fmt::format("were ended by signal {}", outcome.signal);
        if (outcome.end == ProbeEnd::hung) {
            end = fmt::format("were not over after {:.4g} seconds and were ended", options.tests_deadline_seconds);
        }
        text = outcome.text;
    }
    Json results = report::test_results(text);
    if (!results.is_object() && !options.tests.empty()) {
        bad_input(fmt::format("'{}' has no results of tests: run-tests prints them, and meson test writes testlog.json",
                              options.tests));
    }
    if (!end.empty()) parts.left_out.push_back("tests, in part: they " + end);
    if (!results.is_object()) {
        if (end.empty()) parts.left_out.emplace_back("tests: they printed no result");
        return;
    }
    parts.tests = {{"from", options.tests.empty() ? "run-tests" : "file"}, {"simulated", parts.simulated}};
    if (!end.empty()) parts.tests["end"] = end;
    parts.tests.update(results);
}

void add_profile(const ReportOptions& options, report::Parts& parts) {
    constexpr std::string_view schema = "isthmus-profile-1";
    const std::string file = options.profile.empty() ? tune::found_profile_path() : options.profile;
    if (file.empty()) {
        parts.left_out.emplace_back("profile: there is none; `isthmus tune` makes one");
        return;
    }
    const auto damaged = [&](const std::string& why) {
        if (!options.profile.empty()) bad_input(why);
        parts.left_out.push_back("profile: " + why);
    };
    try {
        Json profile = report::parsed(read_text(file, most_bytes));
        if (!profile.is_object()) return damaged(fmt::format("'{}' is no JSON document", file));
        const Json& found = profile["schema"];
        if (found != Json(schema)) {
            return damaged(fmt::format("'{}' has another schema than {}", file, schema));
        }
        parts.profile = std::move(profile);
    } catch (const Failure& failure) {
        damaged(failure.what());
    }
}

int write_report(CommandContext& context, const ReportOptions& options) {
    if (options.no_litmus && !context.litmus.empty()) {
        bad_input("--litmus names a file with results of trials: it does not go with --no-litmus");
    }
    play_machine(context);  // an invalid name is refused here and not in a child process
    report::Parts parts;
    parts.written_on = today();
    parts.simulated = !context.machine.empty();
    add_profile(options, parts);
    // What is asked of the machine does not depend on it, nor fails where it is damaged.
    ::setenv("ISTHMUS_PROFILE", "none", 1);
    add_doctor(context, options, parts);
    add_record(context, options, parts);
    add_litmus(context, options, parts);
    add_tests(options, parts);
    const Json document = report::scrub(report::document_of(parts), report::own_identity());
    if (options.file == "-") {
        print(report::text_of(document));
        return exit_ok;
    }
    camera::OutputFiles files;
    add_file(files, options.file, report::text_of(document));
    print(context.json ? report::text_of(document) : for_stdout(report::summary_of(document)));
    commit(files);
    return exit_ok;
}

int read_report(const CommandContext& context, const ReportOptions& options) {
    const Json document = report::read_report(read_text(options.read, most_bytes), options.read);
    camera::OutputFiles files;
    if (!options.record.empty()) {
        const machines::MachineRecord record = report::record_in(document, record_name(options.record), options.read);
        if (options.record == "-") {
            print(machines::write_record(record));
            return exit_ok;
        }
        add_file(files, options.record, machines::write_record(record));
    }
    print(context.json ? report::text_of(document) : for_stdout(report::summary_of(document)));
    commit(files);
    return exit_ok;
}

}  // namespace

void add_report_command(CLI::App& app, CommandContext& context) {
    CLI::App* command = app.add_subcommand("report", "one file about this machine, to send to the project");
    const auto options = std::make_shared<ReportOptions>();
    const auto file_name = [](const std::string& file) { return std::string(file.empty() ? "names no file" : ""); };
    CLI::Option* const file =
        command->add_option("FILE", options->file, "the report to write (-: print it alone)")->check(file_name);
    CLI::Option* const tests =
        command->add_option("--tests", options->tests, "results of tests: what run-tests printed, or testlog.json")
            ->type_name("FILE")
            ->check(file_name);
    command->add_flag("--run-tests", options->run_tests, "run the installed tests")->excludes(tests);
    add_number(*command, "--tests-deadline", options->tests_deadline_seconds, {0.1, 1e6},
               "seconds after which the installed tests are ended")
        ->capture_default_str();
    command->add_option("--profile", options->profile, "the measured profile; default: the one that programs use")
        ->type_name("FILE")
        ->check(file_name);
    command->add_flag("--no-litmus", options->no_litmus, "make no trials of the memory model");
    add_number(*command, "--seconds", options->seconds, {0.1, 86400.0}, "duration of the trials of the memory model")
        ->capture_default_str();
    add_number(*command, "--deadline", options->deadline_seconds, {0.1, 3600.0},
               "seconds that each try in a child process may take")
        ->capture_default_str();
    CLI::Option* const read =
        command->add_option("--read", options->read, "show what is in this report, and write none")
            ->type_name("FILE")
            ->check(file_name)
            ->excludes(file);
    command->add_option("--record", options->record, "with --read: save its machine's record (-: print it alone)")
        ->type_name("FILE")
        ->check(file_name)
        ->needs(read);
    command->footer(
        "The file has no names of hosts and users, no UUIDs and no serial numbers; it is text: look into it.");
    command->callback([&context, options] {
        if (options->read.empty() && options->file.empty()) {
            bad_input("report needs the name of the file to write, or --read FILE");
        }
        context.exit_code = options->read.empty() ? write_report(context, *options) : read_report(context, *options);
    });
}

}  // namespace isthmus::tools
