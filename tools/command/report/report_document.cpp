// SPDX-License-Identifier: Apache-2.0
// Puts parts together, checks a document that somebody sent, and describes it.
#include "report_document.hpp"

#include "caps/caps_render.hpp"
#include "common/console.hpp"
#include "text/version_text.hpp"

#include <isthmus/version.hpp>

#include <fmt/format.h>

#include <utility>

namespace isthmus::tools::report {
namespace {

using Json = nlohmann::ordered_json;
namespace machines = platform::machines;

constexpr const char* part_names[] = {"record", "litmus", "tests", "profile", "doctor"};

// A document comes from elsewhere: what is absent or of another type reads as empty.
const Json& at(const Json& json, const char* key) {
    static const Json nothing;
    return json.is_object() && json.contains(key) ? json.at(key) : nothing;
}
std::string text_at(const Json& json, const char* key) {
    const Json& value = at(json, key);
    return value.is_string() ? value.get<std::string>() : std::string();
}
long long number_at(const Json& json, const char* key) {
    const Json& value = at(json, key);
    return value.is_number_integer() ? value.get<long long>() : 0;
}
std::size_t count_at(const Json& json, const char* key) {
    const Json& value = at(json, key);
    return value.is_array() ? value.size() : 0;
}

std::string record_line(const Json& record) {
    const Json& machine = at(record, "machine");
    std::string devices;
    if (const Json& list = at(record, "devices"); list.is_array()) {
        for (const Json& device : list) {
            devices += fmt::format("{}{} ({} attributes)", devices.empty() ? "" : ", ", text_at(device, "name"),
                                   at(device, "attributes").size());
        }
    }
    return fmt::format("{}; {}, Linux {}, driver of CUDA {}", devices.empty() ? "no CUDA device" : devices,
                       text_at(machine, "cpu_name"), text_at(machine, "kernel_release"),
                       version_text(static_cast<int>(number_at(machine, "driver_version"))));
}

std::string litmus_line(const Json& litmus) {
    const std::size_t rows = count_at(litmus, "rows");
    if (text_at(litmus, "from") == "file") {
        return fmt::format("findings about {} device(s), from a file", count_at(litmus, "findings"));
    }
    return fmt::format("{}: {} row(s) on {}{}", text_at(litmus, "summary"), rows, text_at(litmus, "device"),
                       text_at(litmus, "end").empty() ? "" : "; the trials " + text_at(litmus, "end"));
}

std::string tests_line(const Json& tests) {
    std::string line = fmt::format("{} passed, {} failed, {} skipped", number_at(tests, "passed"),
                                   number_at(tests, "failed"), number_at(tests, "skipped"));
    if (const std::string end = text_at(tests, "end"); !end.empty()) line += "; the tests " + end;
    if (const Json& failures = at(tests, "failures"); failures.is_array()) {
        for (const Json& one : failures) line += fmt::format("\n           failed: {}", text_at(one, "name"));
    }
    return line;
}

std::string profile_line(const Json& profile) {
    std::string line;
    if (const Json& devices = at(profile, "devices"); devices.is_array()) {
        for (const Json& device : devices) {
            line += fmt::format("{}{}, measured on {}, {} choice(s)", line.empty() ? "" : "; ", text_at(device, "name"),
                                text_at(device, "measured_on"), count_at(device, "choices"));
        }
    }
    return line.empty() ? "of no device" : line;
}

std::string doctor_line(const Json& doctor) {
    std::string found;
    if (const Json& findings = at(doctor, "findings"); findings.is_array()) {
        for (const Json& one : findings) {
            found += fmt::format("{}{} ({})", found.empty() ? "" : ", ", text_at(one, "id"), text_at(one, "weight"));
        }
    }
    return fmt::format("{} check(s); {}", count_at(doctor, "checked"), found.empty() ? "nothing found" : found);
}

void rename_sources(std::vector<machines::Source>& sources, const std::string& from, bool simulated) {
    for (machines::Source& source : sources) {
        if (source.is != machines::Evidence::observed) continue;
        if (simulated) source.is = machines::Evidence::assumed;
        constexpr std::string_view here = "read on this machine: ";
        const bool is_here = source.from.rfind(here, 0) == 0;
        source.from = from + ": " + source.from.substr(is_here ? here.size() : 0);
    }
}

}  // namespace

nlohmann::ordered_json parsed(std::string_view text) {
    constexpr int deepest_nesting = 64;
    bool too_deep = false;
    const auto shallow = [&too_deep](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > deepest_nesting;
        return !too_deep;
    };
    Json document = Json::parse(text.begin(), text.end(), shallow, false);
    return too_deep ? Json(Json::value_t::discarded) : document;
}

nlohmann::ordered_json document_of(const Parts& parts) {
    return {{"schema", schema},
            {"written_by", "isthmus " ISTHMUS_VERSION_STRING},
            {"written_on", parts.written_on},
            {"simulated", parts.simulated},
            {"left_out", parts.left_out},
            {"record", parts.record},
            {"litmus", parts.litmus},
            {"tests", parts.tests},
            {"profile", parts.profile},
            {"doctor", parts.doctor}};
}

std::string text_of(const nlohmann::ordered_json& document) {
    return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

nlohmann::ordered_json read_report(std::string_view text, const std::string& file) {
    Json document = parsed(text);
    const std::string found = text_at(document, "schema");
    if (document.is_discarded() || found.empty()) bad_input(fmt::format("'{}' is no report of isthmus", file));
    if (found != schema) {
        bad_input(fmt::format("'{}' has the schema '{}', and this version reads '{}'", file, found, schema));
    }
    for (const char* const part : part_names) {
        if (const Json& value = at(document, part); !value.is_object() && !value.is_null()) {
            bad_input(fmt::format("'{}': {} is no object", file, part));
        }
    }
    return document;
}

std::string summary_of(const nlohmann::ordered_json& document) {
    std::string text = fmt::format(
        "report     {}, {}{}\n", text_at(document, "written_on"), text_at(document, "written_by"),
        at(document, "simulated") == Json(true) ? "; of a SIMULATED machine: it proves nothing about a real one" : "");
    const std::pair<const char*, std::string (*)(const Json&)> lines[] = {{"record", record_line},
                                                                          {"litmus", litmus_line},
                                                                          {"tests", tests_line},
                                                                          {"profile", profile_line},
                                                                          {"doctor", doctor_line}};
    for (const auto& [part, line] : lines) {
        const Json& value = at(document, part);
        if (value.is_object()) text += fmt::format("{:<11}{}\n", part, line(value));
    }
    if (const Json& left_out = at(document, "left_out"); left_out.is_array()) {
        for (const Json& one : left_out) {
            if (one.is_string()) text += fmt::format("left out   {}\n", one.get<std::string>());
        }
    }
    return text;
}

machines::MachineRecord record_in(const nlohmann::ordered_json& document, std::string name, const std::string& file) {
    const Json& part = at(document, "record");
    if (!part.is_object()) {
        std::string why = "it does not say why";
        for (const Json& one : at(document, "left_out")) {
            if (one.is_string() && one.get<std::string>().rfind("record: ", 0) == 0)
                why = one.get<std::string>().substr(8);
        }
        bad_input(fmt::format("'{}' has no record of a machine: {}", file, why));
    }
    Result<machines::MachineRecord> record = machines::read_record(part.dump());
    if (!record) bad_input(fmt::format("'{}': the record: {}", file, record.error().message()));
    const bool simulated = at(document, "simulated") == Json(true);
    const std::string from = fmt::format("`isthmus report`{} of {}, driver of CUDA {}{}, Linux {}",
                                         simulated ? " of a simulated machine" : "", text_at(document, "written_on"),
                                         version_text(record->facts.driver_version),
                                         text_at(at(document, "doctor"), "module_version").empty()
                                             ? ""
                                             : " (" + text_at(at(document, "doctor"), "module_version") + ")",
                                         record->facts.kernel_release);
    record->name = std::move(name);
    rename_sources(record->evidence, from, simulated);
    const MachineView view = view_of(*record);
    for (std::size_t i = 0; i < record->devices.size(); ++i) {
        machines::DeviceRecord& device = record->devices[i];
        rename_sources(device.evidence, from, simulated);
        if (i < view.devices.size() && !view.devices[i].facts.is_cpu()) {
            device.row = view.devices[i].capabilities.model;
        }
        // A stand-in identifies nothing; the findings of trials need one.
        if (!device.litmus) device.facts.uuid = {};
    }
    return std::move(record).value();
}

}  // namespace isthmus::tools::report
