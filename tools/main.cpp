// The isthmus command: reads the command line, runs one subcommand, and turns failures into one line and a code.
#include "caps_command.hpp"
#include "command.hpp"
#include "console.hpp"
#include "doctor_command.hpp"
#include "litmus_command.hpp"
#include "process.hpp"
#include "run_command.hpp"
#include "session.hpp"
#include "share_command.hpp"
#include "view_command.hpp"

#include <isthmus/version.hpp>
#include <machines/record.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <sstream>

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

std::size_t device_number(const std::string& text) {
    std::size_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, problem] = std::from_chars(text.data(), end, number);
    if (problem != std::errc() || stopped != end) {
        bad_input(fmt::format("--device {}: a number, as `isthmus caps` shows it, or cpu is wanted", text));
    }
    return number;
}

// Findings of the record that is played, of --litmus, and of tries that were asked for. What is not used is said on
// stderr.
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
    if (!options.litmus_findings.empty() || !options.export_findings.empty()) {
        options.log = [](Severity severity, std::string_view line) {
            if (severity != Severity::info) complain(line);
        };
    }
    return options;
}

// Global options are accepted before and after the subcommand's name.
void add_global_options(CLI::App& app, CommandContext& context, std::string& device) {
    app.add_option("--machine", context.machine, "play a simulated machine: a known name, or a record's file")
        ->type_name("NAME|FILE");
    app.add_option("--device", device, "the device: a number, as `isthmus caps` shows it, or cpu")->type_name("N");
    app.add_flag("--json", context.json, "print one JSON document instead of text");
    app.fallthrough();
    app.add_option("--litmus", context.litmus, "take away what trials found not to hold: a record that litmus saved")
        ->type_name("FILE");
    app.parse_complete_callback([&context] {
        context.machine_record = readable_record(context.machine);
        context.litmus = readable_record(context.litmus);
    });
    context.open_runtime = [&context, &device]() -> Result<Runtime> {
        play_machine(context);
        Result<Runtime> runtime = Runtime::open(options_of(context));
        if (runtime && device == "cpu") {
            context.device = runtime->device_count() - 1;
        } else if (!device.empty()) {
            context.device = device_number(device);
        }
        return runtime;
    };
}

// --help and --version are results as others are: that they cannot be written is an error.
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

int run(int argc, char** argv) {
    CLI::App app("Joins CPU and GPU memory on whatever machine it finds.", "isthmus");
    app.set_version_flag("--version", "isthmus " ISTHMUS_VERSION_STRING);
    app.require_subcommand(1);
    app.footer(exit_code_help);
    CommandContext context;
    std::string device;
    add_global_options(app, context, device);
    add_caps_command(app, context);
    add_doctor_command(app, context);
    add_litmus_command(app, context);
    add_run_command(app, context);
    add_share_command(app, context);
    add_view_command(app, context);
    try {
        app.parse(argc, argv);  // runs the subcommand
        return context.exit_code;
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return say_what_was_asked(app, error);
        return say(one_line(error.what()) + " (see isthmus --help)", exit_bad_usage);
    } catch (const Failure& failure) {
        return say(one_line(failure.what()), failure.exit_code());
    } catch (const std::exception& error) {
        return say(one_line(error.what()), exit_failed);
    }
}

}  // namespace
}  // namespace isthmus::tools

int main(int argc, char** argv) {
    isthmus::tools::prepare_process();
    return isthmus::tools::run(argc, argv);
}
