// SPDX-License-Identifier: Apache-2.0
// The isthmus command: parses the command line, runs one subcommand, and turns failures into one line and an exit code.
#include "caps/caps_command.hpp"
#include "common/command.hpp"
#include "common/console.hpp"
#include "doctor/doctor_command.hpp"
#include "latency/latency_command.hpp"
#include "litmus/litmus_command.hpp"
#include "text/nearest.hpp"
#include "common/number_options.hpp"
#include "common/process.hpp"
#include "camera/run_command.hpp"
#include "replay/replay_command.hpp"
#include "report/report_command.hpp"
#include "common/session.hpp"
#include "share/share_command.hpp"
#include "share/view_command.hpp"
#include "simulate/simulate_command.hpp"
#include "trace/trace_command.hpp"
#include "tune/tune_command.hpp"

#include <isthmus/chrome_trace.hpp>
#include <isthmus/version.hpp>
#include <machines/record.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools {
namespace {

constexpr const char* exit_code_help =
    "Exit codes: 0 done; 1 a check found a problem, or the device failed; 2 bad usage, input or output; "
    "3 this machine cannot do it; 129, 130 and 143 ended by SIGHUP, SIGINT and SIGTERM.";

int say(const std::string& line, int code) {
    complain(line);
    return code;
}

std::string one_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    for (char& character : text) {
        if (character == '\n') character = ' ';
    }
    return text;
}

// The index of the GPU with this number, or of the CPU for "cpu".
std::optional<std::size_t> place_of(const std::string& asked, Runtime& runtime) {
    const std::size_t gpus = runtime.device_count() - 1;  // the CPU is the last device
    if (asked == "cpu") return gpus;
    for (std::size_t at = 0; at < gpus; ++at) {
        if (number_in<int>(asked, {}) == (*runtime.device(at))->facts().ordinal) return at;
    }
    return std::nullopt;
}

void check_device(const std::string& text) {
    if (text == "cpu" || number_in<int>(text, {0})) return;
    throw CLI::ValidationError("--device",
                               "'" + text + "' is neither the number of a GPU, as `isthmus caps` shows it, nor cpu");
}

// The unknown word at the place of a command; nothing: there is none.
std::optional<std::string> unknown_command(const CLI::App& app) {
    if (!app.get_subcommands().empty()) return std::nullopt;
    for (const std::string& word : app.remaining()) {
        if (word.empty() || word.front() != '-') return word;
    }
    return std::nullopt;
}

std::string about_unknown_command(const CLI::App& app, const std::string& word) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    const std::string close = nearest(word, names);
    std::string all;
    for (const std::string& name : names) all.append(all.empty() ? "" : ", ").append(name);
    return fmt::format("there is no command '{}'; {}commands: {}", word,
                       close.empty() ? "" : fmt::format("the nearest is '{}'; ", close), all);
}

// Collects the findings of the simulated machine's record, of --litmus, and of tries that were asked for. Ignored
// findings are reported on stderr.
RuntimeOptions options_of(const CommandContext& context) {
    RuntimeOptions options;
    for (const std::string& file : {context.machine_record, context.litmus}) {
        if (file.empty()) continue;
        const auto record = platform::machines::find_record(file);
        if (!record) bad_input(fmt::format("'{}': {}", file, record.error().message()));
        for (LitmusFinding& finding : platform::machines::litmus_findings(*record)) {
            options.litmus_findings.push_back(std::move(finding));
        }
    }
    options.export_findings = context.export_findings;
    options.cpu_threads = context.cpu_threads;
    if (context.host_reserve_bytes) {
        options.host_reserve_bytes = context.host_reserve_bytes;
        options.host_reserve_permille = 0;
    }
    if (!options.litmus_findings.empty() || !options.export_findings.empty()) {
        options.log = [](Severity severity, std::string_view line) {
            if (severity != Severity::info) complain(line);
        };
    }
    if (context.adjust_options) context.adjust_options(options);
    return options;
}

// What --trace or ISTHMUS_TRACE asks for.
struct Recording {
    std::string file;  // --trace
    ChromeTrace trace;

    // When a runtime opens: a command that opens none writes no file. `next`: the command's own observer, or nullptr.
    const ObserverCallbacks* begin(const ObserverCallbacks* next) {
        if (trace) return trace.callbacks(next);
        Result<ChromeTrace> made = file.empty() ? ChromeTrace::from_environment() : ChromeTrace::open(file);
        if (made.code() == Code::system_error) bad_input(one_line(made.error().text()));
        if (!made) cannot(std::string(made.error().message()));
        trace = std::move(made).value();
        return trace.callbacks(next);
    }
    // After the command. A file that cannot be written is an error of the command, unless that has failed before.
    int end(int code) {
        const std::uint64_t dropped = trace.counts().dropped;
        const Result<void> written = trace.close();
        if (!written) {
            complain(one_line(written.error().text()));
            return code == exit_ok ? exit_bad_usage : code;
        }
        if (dropped > 0) complain(fmt::format("{} events found no room in the trace", dropped));
        return code;
    }
};

// Global options are accepted before and after the subcommand's name.
void add_global_options(CLI::App& app, CommandContext& context, std::uint64_t& host_reserve_mib, Recording& recording) {
    app.add_option("--machine", context.machine, "use a simulated machine: a known name, or a record's file")
        ->type_name("NAME|FILE");
    const auto take_device = [&context](const std::string& text) {
        check_device(text);
        context.asked_device = text;
    };
    app.add_option_function<std::string>("--device", take_device,
                                         "the device: a GPU's number, as `isthmus caps` shows it, or cpu")
        ->type_name("N|cpu");
    app.add_flag("--json", context.json, "print one JSON document instead of text");
    app.fallthrough();
    app.add_option("--litmus", context.litmus, "refuse what trials found not to hold: a record that litmus saved")
        ->type_name("FILE");
    app.add_option("--trace", recording.file,
                   "record what the runtime does, for ui.perfetto.dev and `isthmus trace`; default: ISTHMUS_TRACE")
        ->type_name("FILE");
    app.parse_complete_callback([&context] {
        context.machine_record = readable_record(context.machine);
        context.litmus = readable_record(context.litmus);
    });
    CLI::Option* const host_reserve = add_number(
        app, "--host-reserve", host_reserve_mib, {0, std::uint64_t{1} << 40},
        "MiB of host memory that allocations leave where CPU and GPU share it; default: 64 or an eighth of all, the "
        "less, and 2 % at least");
    context.open_runtime = [&context, &host_reserve_mib, &recording, host_reserve]() -> Result<Runtime> {
        play_machine(context);
        if (host_reserve->count() > 0) context.host_reserve_bytes = host_reserve_mib << 20;
        RuntimeOptions options = options_of(context);
        options.observer = recording.begin(options.observer);
        Result<Runtime> runtime = Runtime::open(options);
        if (runtime && !context.asked_device.empty()) context.device = place_of(context.asked_device, *runtime);
        return runtime;
    };
}

// --help and --version are results like others: a failure to write them is an error.
int say_what_was_asked(const CLI::App& app, const CLI::ParseError& asked) {
    std::ostringstream text;
    app.exit(asked, text, text);
    try {
        print(text.str());
    } catch (const Failure& failure) {
        return say(one_line(failure.what()), failure.exit_code());
    }
    return exit_ok;
}

// The words behind `--` of `isthmus simulate ... -- PROGRAM ...`, which are taken off: none of them is an option here,
// and brackets and commas in them mean nothing.
std::vector<std::string> take_program(int& argc, char** argv) {
    char** const end = argv + argc;
    char** const mark = std::find(argv, end, std::string_view("--"));
    if (mark == end || std::find(argv, mark, std::string_view("simulate")) == mark) return {};
    argc = static_cast<int>(mark - argv);
    return {mark + 1, end};
}

int run(int argc, char** argv) {
    CLI::App app("Joins CPU and GPU memory on whatever machine it finds.", "isthmus");
    app.set_version_flag("--version", "isthmus " ISTHMUS_VERSION_STRING);
    app.require_subcommand(1);
    app.footer(exit_code_help);
    CommandContext context;
    std::uint64_t host_reserve_mib = 0;
    Recording recording;
    context.program = take_program(argc, argv);
    add_global_options(app, context, host_reserve_mib, recording);
    add_caps_command(app, context);
    add_doctor_command(app, context);
    add_latency_command(app, context);
    add_litmus_command(app, context);
    add_replay_command(app, context);
    add_report_command(app, context);
    add_run_command(app, context);
    add_share_command(app, context);
    add_simulate_command(app, context);
    add_trace_command(app, context);
    add_tune_command(app, context);
    add_view_command(app, context);
    try {
        app.parse(argc, argv);  // runs the subcommand
        return recording.end(context.exit_code);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return say_what_was_asked(app, error);
        const std::optional<std::string> word = unknown_command(app);
        const std::string problem = word ? one_line(about_unknown_command(app, *word)) : one_line(error.what());
        return say(problem + " (see isthmus --help)", exit_bad_usage);
    } catch (const Failure& failure) {
        return recording.end(say(one_line(failure.what()), failure.exit_code()));
    } catch (const std::exception& error) {
        return recording.end(say(one_line(error.what()), exit_failed));
    }
}

}  // namespace
}  // namespace isthmus::tools

int main(int argc, char** argv) {
    isthmus::tools::prepare_process();
    return isthmus::tools::run(argc, argv);
}
