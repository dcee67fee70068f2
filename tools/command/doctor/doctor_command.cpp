// SPDX-License-Identifier: Apache-2.0
// Prints the doctor's findings as text or JSON.
#include "doctor_command.hpp"

#include "common/command.hpp"
#include "common/console.hpp"
#include "doctor_checks.hpp"
#include "doctor_fine.hpp"
#include "doctor_gather.hpp"
#include "doctor_json.hpp"
#include "doctor_real_time.hpp"
#include "common/number_options.hpp"
#include "common/session.hpp"
#include "text/version_text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>

namespace isthmus::tools {
namespace {

std::string driver_text(const DoctorFacts& facts) {
    const int version = facts.machine.driver_version;
    if (version == 0) return "none";
    std::string text = "CUDA " + version_text(version);
    if (facts.machine.simulated) return text + " (simulated)";
    if (!facts.module_version.empty()) text += fmt::format(", kernel module {}", facts.module_version);
    return text;
}

std::string as_text(const DoctorFacts& facts, const std::vector<Finding>& findings) {
    const bool colours = stdout_has_colour();
    const std::size_t width = std::min<std::size_t>(stdout_columns(), 110);
    std::string text = fmt::format("driver   {}\n", driver_text(facts));
    if (!facts.opening.library.empty()) text += fmt::format("library  {}\n", facts.opening.library);
    std::string devices;
    for (std::size_t number = 0; number < facts.opening.devices.size(); ++number)
        devices += fmt::format("{}: {}, ", number, facts.opening.devices[number].name);
    text += fmt::format("devices  {}\nsystem   Linux {}, pages of {}, {}\n", wrapped(devices + "cpu", width, 9),
                        facts.machine.kernel_release, size_text(facts.machine.page_size_bytes),
                        facts.machine.cpu_name.empty() ? "unknown CPU" : facts.machine.cpu_name);
    int problems = 0;
    int warnings = 0;
    for (const Finding& finding : findings) {
        problems += finding.weight == Weight::problem;
        warnings += finding.weight == Weight::warning;
        const Colour colour = finding.weight == Weight::problem   ? Colour::red
                              : finding.weight == Weight::warning ? Colour::yellow
                                                                  : Colour::dim;
        text += fmt::format("\n{}  {}  {}\n", coloured(finding.id, Colour::bold, colours),
                            coloured(fmt::format("{:<7}", name(finding.weight)), colour, colours),
                            coloured(finding.title, Colour::bold, colours));
        text += fmt::format("      found   {}\n      remedy  {}\n", wrapped(finding.evidence, width, 14),
                            wrapped(finding.remedy, width, 14));
    }
    if (const std::vector<std::string_view> words = fine(facts, findings); !words.empty()) {
        text += fmt::format("\n{}  {}\n", coloured("fine", Colour::green, colours),
                            wrapped(fmt::format("{}", fmt::join(words, ", ")), width, 6));
    }
    text +=
        fmt::format("\n{} of {} checks found something: {} problem(s), {} warning(s), {} note(s).\n", findings.size(),
                    all_checks().size(), problems, warnings, static_cast<int>(findings.size()) - problems - warnings);
    return text;
}

struct DoctorOptions {
    double deadline_seconds = 30.0;
    bool fabric = false;
    bool real_time = false;
    int fabric_channel = -1;  // -1: not given
};

int run_doctor(const CommandContext& context, const DoctorOptions& options) {
    play_machine(context);  // an invalid name is refused here and not in a child process
    const std::chrono::milliseconds deadline(static_cast<long>(options.deadline_seconds * 1000));
    DoctorFacts facts = gather_doctor_facts(context.open_runtime, deadline);
    facts.imex.wanted = options.fabric || options.fabric_channel >= 0;
    if (options.fabric_channel >= 0) facts.imex.other_channel = options.fabric_channel;
    if (options.real_time) facts.real_time = gather_real_time({});
    const std::vector<Finding> findings = diagnose(facts);
    print(context.json ? doctor_json(facts, findings) : as_text(facts, findings));
    return !findings.empty() && findings.front().weight == Weight::problem ? exit_failed : exit_ok;
}

}  // namespace

void add_doctor_command(CLI::App& app, CommandContext& context) {
    CLI::App* doctor = app.add_subcommand("doctor", "what is wrong or missing on this machine, and how to mend it");
    const auto options = std::make_shared<DoctorOptions>();
    add_number(*doctor, "--deadline", options->deadline_seconds, {0.1, 3600.0},
               "seconds that each try in a child process may take")
        ->capture_default_str();
    doctor->add_flag("--fabric", options->fabric, "report what fabric handles lack as a problem");
    add_number(*doctor, "--fabric-channel", options->fabric_channel, {0, 65535},
               "number of the other machine's IMEX channel");
    doctor->add_flag("--real-time", options->real_time,
                     "also what a loop with a deadline lacks, as a problem or a warning");
    doctor->footer("Exits with 1 where a problem was found; docs/doctor.md explains every id.");
    doctor->callback([&context, options] { context.exit_code = run_doctor(context, *options); });
}

}  // namespace isthmus::tools
