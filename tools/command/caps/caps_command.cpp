// SPDX-License-Identifier: Apache-2.0
// Shows the capabilities of this machine, of a simulated one, or of all known ones, and saves a machine's record.
#include "caps_command.hpp"

#include "caps_record.hpp"
#include "caps_render.hpp"
#include "common/command.hpp"
#include "common/console.hpp"
#include "common/export_tries.hpp"
#include "common/session.hpp"

#include <machines/record.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

namespace isthmus::tools {
namespace {

namespace machines = platform::machines;

struct CapsOptions {
    bool all = false;
    bool probe = false;
    bool why = false;
    bool topology = false;
    std::string record;
    CapsFormat format = CapsFormat::text;
};

// Adds the title and the sources of a simulated machine's record to its view.
void add_record(MachineView& view, const std::string& machine) {
    const auto record = machines::find_record(machine);
    if (!record) return;
    view.name = record->name;
    view.title = record->title + " (simulated)";
    view.record_title = record->title;
    for (DeviceView& device : view.devices) {
        for (const machines::DeviceRecord& known : record->devices) {
            if (known.facts.ordinal == device.facts.ordinal) device.evidence = known.evidence;
        }
    }
}

MachineView view_of_machine(Runtime& runtime, const CommandContext& context) {
    MachineView view;
    view.name = "this machine";
    view.machine = runtime.machine();
    view.title = fmt::format("{}, Linux {}", view.machine.cpu_name.empty() ? "unknown CPU" : view.machine.cpu_name,
                             view.machine.kernel_release);
    for (std::size_t i = 0; i < runtime.device_count(); ++i) {
        const Device& device = **runtime.device(i);
        if (context.device && *context.device != i) continue;
        view.devices.push_back({device.facts(), device.capabilities(), {}});
    }
    if (runtime.cuda_absence()) view.cuda_absence = runtime.cuda_absence()->text();
    if (!context.machine.empty()) add_record(view, context.machine_record);
    return view;
}

std::string record_text(Runtime& runtime, const std::string& file) {
    return machines::write_record(recorded_machine(runtime, record_name(file)));
}

// A probe whose driver call hangs is killed after this time.
constexpr std::chrono::seconds probe_deadline{60};

CapsStyle style_of(const CapsOptions& options) {
    CapsStyle style;
    style.format = options.format;
    style.detail = options.topology ? CapsDetail::topology : options.why ? CapsDetail::why : CapsDetail::screen;
    style.width = stdout_columns();
    style.has_colour = stdout_has_colour();
    style.has_symbols = stdout_has_symbols();
    return style;
}

int run_caps(CommandContext& context, CapsOptions options) {
    if (context.json) options.format = CapsFormat::json;
    if (options.all) {
        if (!context.machine.empty() || !options.record.empty() || options.probe) {
            bad_input("--all shows every known machine: it goes with none of --machine, --record and --probe");
        }
        print(render_machines(known_machine_views(), style_of(options)));
        return exit_ok;
    }
    if (options.probe) {
        check_machine(context);
        context.export_findings = try_exports(context.open_runtime, probe_deadline);
    }
    Result<Runtime> runtime = context.open_runtime();
    if (!runtime) cannot(runtime.error().text());
    choose_device(*runtime, context);  // refuses a device that does not exist
    if (options.record == "-") {
        print(record_text(*runtime, options.record));
        return exit_ok;
    }
    camera::OutputFiles files;
    if (!options.record.empty()) add_file(files, options.record, record_text(*runtime, options.record));
    print(render_machine(view_of_machine(*runtime, context), style_of(options)));
    commit(files);
    return exit_ok;
}

}  // namespace

void add_caps_command(CLI::App& app, CommandContext& context) {
    CLI::App* caps = app.add_subcommand("caps", "what each device can do on this machine, and why");
    const auto options = std::make_shared<CapsOptions>();
    CLI::Option* const all = caps->add_flag("--all", options->all, "all known machines side by side");
    CLI::Option* const why = caps->add_flag("--why", options->why, "every answer, and what decided it");
    caps->add_flag("--topology", options->topology, "buses, links, NUMA nodes and CPUs near each GPU")
        ->excludes(all)
        ->excludes(why);
    caps->add_flag("--probe", options->probe, "also try what attributes only promise: exports of 2 MiB of each device");
    caps->add_option("--record", options->record, "save the machine's record as JSON (-: print it alone)")
        ->type_name("FILE")
        ->check([](const std::string& file) { return std::string(file.empty() ? "names no file" : ""); });
    const auto take_format = [options](const std::string& text) {
        const std::map<std::string, CapsFormat> formats = {
            {"text", CapsFormat::text}, {"json", CapsFormat::json}, {"markdown", CapsFormat::markdown}};
        const auto found = formats.find(CLI::detail::to_lower(text));
        if (found == formats.end()) {
            throw CLI::ValidationError("--format", "'" + text + "' is none of text, json and markdown");
        }
        options->format = found->second;
    };
    caps->add_option_function<std::string>("--format", take_format, "text, json or markdown")->type_name("FORMAT");
    caps->callback([&context, options] { context.exit_code = run_caps(context, *options); });
}

}  // namespace isthmus::tools
