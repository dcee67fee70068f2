// SPDX-License-Identifier: Apache-2.0
// Runs trials in a child process, prints their results and saves them with the machine's record.
#include "litmus_command.hpp"

#include "common/command.hpp"
#include "common/console.hpp"
#include "litmus_child.hpp"
#include "common/number_options.hpp"
#include "common/session.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace isthmus::tools {
namespace {

namespace machines = platform::machines;
using litmus::Report;

struct LitmusOptions {
    litmus::Request request;
    double deadline_seconds = 0;  // 0: the time that the request needs, with a margin
    std::string save;
};

std::chrono::milliseconds deadline_of(const LitmusOptions& options) {
    double seconds = options.deadline_seconds;
    if (seconds == 0) {
        // A million instances per second and row is a low rate, but memory that migrates back and forth reaches less.
        const double rows = 4.0 * litmus_shape_count;
        const double asked = static_cast<double>(options.request.instances) / 1e6 * rows;
        seconds = std::min(60 + 4 * options.request.seconds + asked, 1e6);  // the limit of --deadline
    }
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

void save(const Report& report, const std::string& file, camera::OutputFiles& files) {
    Result<machines::MachineRecord> record = machines::read_record(report.record);
    if (!record) bad_input(fmt::format("--save {}: {}", file, record.error().message()));
    for (machines::DeviceRecord& device : record->devices) {
        if (device.facts.ordinal != report.ordinal || !device.facts.uuid) continue;
        device.litmus =
            LitmusFinding{device.facts.uuid, report.driver_version, report.simulated, litmus::results_of(report.rows)};
    }
    add_file(files, file, machines::write_record(*record));
}

int run_litmus(const CommandContext& context, const LitmusOptions& options) {
    if (!options.save.empty() && !options.request.mutant.empty()) {
        bad_input("--save keeps what was found of the machine: it does not go with --mutant");
    }
    check_machine(context);
    const std::chrono::milliseconds deadline = deadline_of(options);
    const Report report = litmus::run_in_child(context, options.request, deadline);
    if (!report.cannot.empty()) throw Failure(report.cannot_code, report.cannot);
    // A child that crashed before it reported the machine leaves nothing to save; the report says so.
    camera::OutputFiles files;
    if (!options.save.empty() && report.applicable && !report.record.empty()) save(report, options.save, files);
    print(context.json ? litmus::as_json(report) : litmus::as_text(report, {stdout_columns(), stdout_has_colour()}));
    commit(files);
    return litmus::exit_code(report);
}

MemoryKind kind_of(const std::string& text) {
    for (const MemoryKind kind : litmus::tried_kinds) {
        if (text == name(kind)) return kind;
    }
    bad_input(fmt::format("--kinds {}: pinned, registered, host or managed", text));
}

LitmusShape shape_named(const std::string& text) {
    if (const auto shape = litmus::shape_of(text)) return *shape;
    std::string known;
    for (int code = 0; code < litmus_shape_count; ++code) {
        known += fmt::format("{}{}", code == 0 ? "" : ", ", name(static_cast<LitmusShape>(code)));
    }
    bad_input(fmt::format("--shapes {}: known are {}", text, known));
}

std::string is_mutant(const std::string& text) {
    if (litmus::find_mutant(text) != nullptr) return {};
    std::string known;
    for (const litmus::Mutant& mutant : litmus::mutants) known.append(known.empty() ? "" : ", ").append(mutant.name);
    return "known mutants: " + known;
}

}  // namespace

void add_litmus_command(CLI::App& app, CommandContext& context) {
    struct Choices {
        LitmusOptions options;
        std::vector<std::string> kinds;
        std::vector<std::string> shapes;
    };
    const auto choices = std::make_shared<Choices>();
    litmus::Request& request = choices->options.request;
    CLI::App* command =
        app.add_subcommand("litmus", "try what CPU and GPU see of each other's accesses to shared memory");
    command
        ->add_option("--kinds", choices->kinds,
                     "memory kinds: pinned, registered, host, managed; default: all that both sides may use at once")
        ->delimiter(',')
        ->type_name("KIND,…");
    command->add_option("--shapes", choices->shapes, "shapes of trials, by their names in the report; default: all")
        ->delimiter(',')
        ->type_name("SHAPE,…");
    CLI::Option* const instances = add_number(*command, "--instances", request.instances, {1, std::uint64_t{1} << 50},
                                              "instances of each shape in each kind");
    add_number(*command, "--seconds", request.seconds, {0.1, 86400.0},
               "duration of all trials together, without --instances")
        ->capture_default_str()
        ->excludes(instances);
    add_number(*command, "--threads", request.threads, {1, 256}, "CPU threads; default: as many as are useful");
    add_number(*command, "--seed", request.seed, {}, "seed of the random delays")->capture_default_str();
    add_number(*command, "--deadline", choices->options.deadline_seconds, {0.1, 1e6},
               "seconds after which the trials are ended");
    command->add_option("--save", choices->options.save, "save the machine's record with the findings, as JSON")
        ->type_name("FILE")
        ->check([](const std::string& file) { return std::string(file.empty() ? "names no file" : ""); });
    command->add_option("--mutant", request.mutant, "run with a deliberate error, which the trials should detect")
        ->type_name("NAME")
        ->check(is_mutant);
    command->footer("Exits with 1 where a forbidden outcome was seen or the trials did not come to their end.");
    command->callback([choices, &context] {
        for (const std::string& kind : choices->kinds) choices->options.request.kinds.push_back(kind_of(kind));
        for (const std::string& shape : choices->shapes) choices->options.request.shapes.push_back(shape_named(shape));
        context.exit_code = run_litmus(context, choices->options);
    });
}

}  // namespace isthmus::tools
