// SPDX-License-Identifier: Apache-2.0
// Writes and reads profiles. Enumerators are written by their names.
#include "profile_json.hpp"

#include "common/console.hpp"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <cmath>

namespace isthmus::tools::tune {
namespace {

using Json = nlohmann::ordered_json;

// The enumerator with this name among the first `count`.
template <class Enum>
Enum named(const Json& json, const char* key, int count) {
    const std::string text = json.at(key).get<std::string>();
    for (int code = 0; code < count; ++code) {
        if (name(static_cast<Enum>(code)) == text) return static_cast<Enum>(code);
    }
    throw std::runtime_error(fmt::format("'{}' is not known as {}", text, key));
}
constexpr int role_count = 3, prefer_count = 2, locality_count = 6, translation_count = 3, memory_count = 5;

// Times need no more than six digits; a profile is some ten thousand of them.
double rounded(double value) {
    if (value == 0 || !std::isfinite(value)) return 0;
    const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
    return std::round(value * scale) / scale;
}

Json json_of(const Sample& sample) {
    return {rounded(sample.median), rounded(sample.low), rounded(sample.high), sample.count};
}
Sample sample_from(const Json& json) {
    if (!json.is_array() || json.size() != 4) throw std::runtime_error("a sample has four numbers");
    return {json[0].get<double>(), json[1].get<double>(), json[2].get<double>(), json[3].get<int>()};
}

Json json_of(const Way& way) {
    return {{"kind", name(way.kind)}, {"locality", name(way.locality)}};
}
Way way_from(const Json& json) {
    return {named<MemoryKind>(json, "kind", memory_kind_count), named<Locality>(json, "locality", locality_count)};
}

std::size_t index_of(const std::vector<Way>& ways, const Way& way) {
    for (std::size_t at = 0; at < ways.size(); ++at) {
        if (ways[at] == way) return at;
    }
    return ways.size();
}
const Way& way_at(const std::vector<Way>& ways, const Json& json) {
    const auto at = json.at("way").get<std::size_t>();
    if (at >= ways.size()) throw std::runtime_error("a sample names a way that is not listed");
    return ways[at];
}

bool of_one_use(const ProfileChoice& a, const ProfileChoice& b) {
    return a.device == b.device && a.host == b.host && a.host_often == b.host_often && a.prefer == b.prefer;
}
// One object for each use, with rows [passes, from_bytes, way, from_bytes, way, ...].
Json json_of(const std::vector<ProfileChoice>& choices, const std::vector<Way>& ways) {
    Json uses = Json::array();
    for (std::size_t i = 0; i < choices.size(); ++i) {
        const ProfileChoice& choice = choices[i];
        const bool new_use = i == 0 || !of_one_use(choices[i - 1], choice);
        if (new_use) {
            uses.push_back({{"device", name(choice.device)},
                            {"host", name(choice.host)},
                            {"host_often", choice.host_often},
                            {"prefer", name(choice.prefer)},
                            {"rows", Json::array()}});
        }
        Json& rows = uses.back()["rows"];
        if (new_use || choices[i - 1].passes != choice.passes) rows.push_back(Json::array({choice.passes}));
        rows.back().push_back(choice.from_bytes);
        rows.back().push_back(index_of(ways, {choice.kind, choice.locality}));
    }
    return uses;
}
void add_choices(const Json& use, const std::vector<Way>& ways, std::vector<ProfileChoice>& choices) {
    ProfileChoice choice;
    choice.device = named<Role>(use, "device", role_count);
    choice.host = named<Role>(use, "host", role_count);
    choice.host_often = use.at("host_often").get<bool>();
    choice.prefer = named<Prefer>(use, "prefer", prefer_count);
    for (const Json& row : use.at("rows")) {
        if (row.size() < 3 || row.size() % 2 == 0) throw std::runtime_error("a row of choices is incomplete");
        choice.passes = row[0].get<int>();
        for (std::size_t i = 1; i < row.size(); i += 2) {
            const Way& way = ways.at(row[i + 1].get<std::size_t>());
            choice.from_bytes = row[i].get<std::size_t>();
            choice.kind = way.kind;
            choice.locality = way.locality;
            choices.push_back(choice);
        }
    }
}

Json json_of(const Conditions& conditions) {
    return {{"power_mode", conditions.power_mode},
            {"gpu_clock_hz_begin", conditions.gpu_clock_hz_begin},
            {"gpu_clock_hz_end", conditions.gpu_clock_hz_end},
            {"gpu_clock_hz_most", conditions.gpu_clock_hz_most},
            {"throttled", conditions.throttled},
            {"notes", conditions.notes}};
}
Conditions conditions_from(const Json& json) {
    Conditions conditions;
    conditions.power_mode = json.at("power_mode").get<std::string>();
    conditions.gpu_clock_hz_begin = json.at("gpu_clock_hz_begin").get<double>();
    conditions.gpu_clock_hz_end = json.at("gpu_clock_hz_end").get<double>();
    conditions.gpu_clock_hz_most = json.at("gpu_clock_hz_most").get<double>();
    conditions.throttled = json.at("throttled").get<bool>();
    conditions.notes = json.at("notes").get<std::vector<std::string>>();
    return conditions;
}

Json json_of(const Measurements& device) {
    const DeviceProfile& profile = device.profile;
    Json out = {{"uuid", profile.device ? profile.device.text() : ""},
                {"name", device.device_name},
                {"cpu_name", device.cpu_name},
                {"driver_version", profile.driver_version},
                {"kernel_release", profile.kernel_release},
                {"simulated", profile.simulated},
                {"translation", name(profile.translation)},
                {"memory", name(profile.memory)},
                {"measured_on", profile.measured_on},
                {"seconds_taken", rounded(device.seconds_taken)},
                {"ways", Json::array()},
                {"choices", Json::array()},
                {"conditions", json_of(device.conditions)},
                {"turns", Json::array()},
                {"hosts", Json::array()},
                {"figures", Json::array()}};
    for (const Way& way : device.ways) out["ways"].push_back(json_of(way));
    out["choices"] = json_of(profile.choices, device.ways);
    for (const TurnSample& turn : device.turns) {
        out["turns"].push_back({{"way", index_of(device.ways, turn.way)},
                                {"device", name(turn.device)},
                                {"bytes", turn.bytes},
                                {"passes", turn.passes},
                                {"seconds", json_of(turn.seconds)}});
    }
    for (const HostSample& host : device.hosts) {
        out["hosts"].push_back({{"way", index_of(device.ways, host.way)},
                                {"host", name(host.host)},
                                {"bytes", host.bytes},
                                {"seconds", json_of(host.seconds)}});
    }
    for (const Figure& figure : device.figures) {
        out["figures"].push_back({{"subject", figure.subject},
                                  {"name", figure.name},
                                  {"kind", figure.kind},
                                  {"bytes", figure.bytes},
                                  {"value", json_of(figure.value)},
                                  {"unit", figure.unit}});
    }
    const Json record = Json::parse(device.machine_record, nullptr, false);
    out["record"] = record.is_discarded() ? Json::object() : record;
    return out;
}

Measurements device_from(const Json& json) {
    Measurements device;
    DeviceProfile& profile = device.profile;
    if (const std::string uuid = json.at("uuid").get<std::string>(); !uuid.empty()) {
        const Result<Uuid> parsed = Uuid::parse(uuid);
        if (!parsed) throw std::runtime_error(fmt::format("'{}' is no UUID", uuid));
        profile.device = *parsed;
    }
    device.device_name = json.at("name").get<std::string>();
    device.cpu_name = json.at("cpu_name").get<std::string>();
    profile.driver_version = json.at("driver_version").get<int>();
    profile.kernel_release = json.at("kernel_release").get<std::string>();
    profile.simulated = json.at("simulated").get<bool>();
    profile.translation = named<Translation>(json, "translation", translation_count);
    profile.memory = named<MemoryModel>(json, "memory", memory_count);
    profile.measured_on = json.at("measured_on").get<std::string>();
    device.seconds_taken = json.at("seconds_taken").get<double>();
    for (const Json& way : json.at("ways")) device.ways.push_back(way_from(way));
    for (const Json& use : json.at("choices")) add_choices(use, device.ways, profile.choices);
    device.conditions = conditions_from(json.at("conditions"));
    for (const Json& turn : json.at("turns")) {
        device.turns.push_back({way_at(device.ways, turn), named<Role>(turn, "device", role_count),
                                turn.at("bytes").get<std::size_t>(), turn.at("passes").get<int>(),
                                sample_from(turn.at("seconds"))});
    }
    for (const Json& host : json.at("hosts")) {
        device.hosts.push_back({way_at(device.ways, host), named<Role>(host, "host", role_count),
                                host.at("bytes").get<std::size_t>(), sample_from(host.at("seconds"))});
    }
    for (const Json& figure : json.at("figures")) {
        device.figures.push_back({figure.at("subject").get<std::string>(), figure.at("name").get<std::string>(),
                                  figure.at("kind").get<std::string>(), figure.at("bytes").get<std::size_t>(),
                                  sample_from(figure.at("value")), figure.at("unit").get<std::string>()});
    }
    const Json& record = json.at("record");
    if (!record.empty()) device.machine_record = record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    return device;
}

// Lists of samples get a line for each; everything else two columns of indent for each level.
void write(const Json& json, int indent, std::string& out) {
    const auto flat = [](const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); };
    const bool of_objects = json.is_array() && !json.empty() && json.front().is_object();
    if (!json.is_object() && !of_objects) {
        out += flat(json);
        return;
    }
    const std::string blanks(static_cast<std::size_t>(indent) + 2, ' ');
    out += json.is_object() ? "{" : "[";
    bool first = true;
    for (const auto& [key, value] : json.items()) {
        out += (first ? "\n" : ",\n") + blanks;
        first = false;
        if (json.is_object()) out += Json(key).dump() + ": ";
        const bool row = of_objects && !value.contains("choices");
        row ? void(out += flat(value)) : write(value, indent + 2, out);
    }
    out += "\n" + std::string(static_cast<std::size_t>(indent), ' ') + (json.is_object() ? "}" : "]");
}

[[noreturn]] void no_profile(const char* why) {
    bad_input(fmt::format("this is no profile that `isthmus tune` wrote: {}", why));
}

}  // namespace

std::string write_profile(const std::vector<Measurements>& devices) {
    Json out = {{"schema", profile_schema}, {"devices", Json::array()}};
    for (const Measurements& device : devices) {
        if (device.profile.device) out["devices"].push_back(json_of(device));
    }
    std::string text;
    write(out, 0, text);
    return text + "\n";
}

std::vector<Measurements> read_profile(std::string_view text) {
    try {
        const Json json = Json::parse(text);
        const std::string schema = json.at("schema").get<std::string>();
        if (schema != profile_schema) throw std::runtime_error(fmt::format("its schema is '{}'", schema));
        std::vector<Measurements> devices;
        for (const Json& device : json.at("devices")) devices.push_back(device_from(device));
        return devices;
    } catch (const std::exception& error) {
        no_profile(error.what());
    }
}

std::string write_measurements(const Measurements& device) {
    return json_of(device).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Measurements read_measurements(std::string_view text) {
    try {
        return device_from(Json::parse(text));
    } catch (const std::exception& error) {
        no_profile(error.what());
    }
}

}  // namespace isthmus::tools::tune
