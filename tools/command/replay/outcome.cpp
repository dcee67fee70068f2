// SPDX-License-Identifier: Apache-2.0
// Sums of a replay, and their JSON.
#include "outcome.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace isthmus::tools::replay {
namespace {

using Json = nlohmann::ordered_json;

template <class List, class Key>
std::uint64_t sum(const List& list, Key key) {
    return std::accumulate(list.begin(), list.end(), std::uint64_t{0},
                           [&](std::uint64_t before, const auto& one) { return before + one.*key; });
}
template <class List, class Key>
void largest_first(List& list, Key key) {
    std::stable_sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return a.*key > b.*key; });
}

Json json_of(const Group& group) {
    return {{"made", group.made},     {"kind", group.kind},   {"host_kind", group.host_kind}, {"path", group.path},
            {"reason", group.reason}, {"count", group.count}, {"bytes", group.bytes}};
}
Json json_of(const Refusal& one) {
    return {{"call", one.call},     {"code", one.code},   {"error", one.error},      {"message", one.message},
            {"remedy", one.remedy}, {"count", one.count}, {"recorded", one.recorded}};
}
Json json_of(const Copied& one) {
    return {{"way", one.up ? "up" : "down"},
            {"for", one.name},
            {"memory", one.memory},
            {"count", one.count},
            {"bytes", one.bytes}};
}
Json json_of(const Waited& one) {
    return {{"inside", one.inside}, {"waits_for", one.waits_for}, {"count", one.count}};
}
template <class List>
Json json_of_all(const List& list) {
    Json all = Json::array();
    for (const auto& one : list) all.push_back(json_of(one));
    return all;
}

Json json_of(const Outcome& outcome) {
    Json json = {{"machine", outcome.machine}, {"device", outcome.device}, {"simulated", outcome.simulated}};
    if (!outcome.problem.empty()) {
        json["problem"] = outcome.problem;
        return json;
    }
    json["summary"] = one_line(outcome);
    json["frames"] = outcome.frames;
    json["frames_of_rings"] = outcome.of_rings;
    json["launches"] = outcome.launches;
    json["refused"] = outcome.refused();
    json["copied"] = outcome.copied();
    json["copied_bytes"] = outcome.copied_bytes();
    json["waited"] = outcome.waited();
    json["attaches"] = outcome.attaches;
    json["prefetches"] = outcome.prefetches;
    json["skipped"] = outcome.skipped;
    json["allowed"] = outcome.allowed;
    if (outcome.hand_over_seconds) json["hand_over_seconds"] = *outcome.hand_over_seconds;
    if (!outcome.profile.empty()) json["profile"] = outcome.profile;
    json["memory"] = json_of_all(outcome.groups);
    json["refusals"] = json_of_all(outcome.refusals);
    json["copies"] = json_of_all(outcome.copies);
    json["waits"] = json_of_all(outcome.waits);
    json["notes"] = outcome.notes;
    return json;
}

// Reads what json_of() wrote. value() throws where a member has another type.
template <class T, class Fill>
std::vector<T> list_of(const Json& json, const char* key, Fill fill) {
    std::vector<T> all;
    for (const Json& one : json.value(key, Json::array())) {
        fill(all.emplace_back(), one);
    }
    return all;
}

Outcome outcome_of(const Json& json) {
    Outcome outcome;
    const auto text = [](const Json& of, const char* key) { return of.value(key, std::string()); };
    const auto count = [](const Json& of, const char* key) { return of.value(key, std::uint64_t{0}); };
    outcome.machine = text(json, "machine");
    outcome.device = text(json, "device");
    outcome.simulated = json.value("simulated", true);
    outcome.problem = text(json, "problem");
    outcome.frames = std::max<std::uint64_t>(count(json, "frames"), 1);
    outcome.of_rings = json.value("frames_of_rings", false);
    outcome.launches = count(json, "launches");
    outcome.attaches = count(json, "attaches");
    outcome.prefetches = count(json, "prefetches");
    outcome.skipped = count(json, "skipped");
    outcome.allowed = count(json, "allowed");
    if (json.contains("hand_over_seconds")) outcome.hand_over_seconds = json.value("hand_over_seconds", 0.0);
    outcome.profile = text(json, "profile");
    outcome.groups = list_of<Group>(json, "memory", [&](Group& one, const Json& of) {
        one = {text(of, "made"),   text(of, "kind"),   text(of, "host_kind"), text(of, "path"),
               text(of, "reason"), count(of, "count"), count(of, "bytes")};
    });
    outcome.refusals = list_of<Refusal>(json, "refusals", [&](Refusal& one, const Json& of) {
        one = {text(of, "call"),   text(of, "code"),   text(of, "error"),    text(of, "message"),
               text(of, "remedy"), count(of, "count"), count(of, "recorded")};
    });
    outcome.copies = list_of<Copied>(json, "copies", [&](Copied& one, const Json& of) {
        one = {text(of, "way") == "up", text(of, "for"), text(of, "memory"), count(of, "count"), count(of, "bytes")};
    });
    outcome.waits = list_of<Waited>(json, "waits", [&](Waited& one, const Json& of) {
        one = {text(of, "inside"), text(of, "waits_for"), count(of, "count")};
    });
    outcome.notes = json.value("notes", std::vector<std::string>());
    return outcome;
}

}  // namespace

std::uint64_t Outcome::refused() const noexcept {
    return sum(refusals, &Refusal::count);
}
std::uint64_t Outcome::copied() const noexcept {
    return sum(copies, &Copied::count);
}
std::uint64_t Outcome::copied_bytes() const noexcept {
    return sum(copies, &Copied::bytes);
}
std::uint64_t Outcome::waited() const noexcept {
    return sum(waits, &Waited::count);
}

std::string Outcome::kinds() const {
    std::vector<std::string> all;
    for (const Group& group : groups) {
        if (group.path.empty()) continue;
        const std::string kind = group.path == "stage" ? group.kind + " (copied)" : group.kind;
        if (std::find(all.begin(), all.end(), kind) == all.end()) all.push_back(kind);
    }
    return fmt::format("{}", fmt::join(all, ", "));
}

void sort(Outcome& outcome) {
    largest_first(outcome.groups, &Group::bytes);
    largest_first(outcome.refusals, &Refusal::count);
    largest_first(outcome.copies, &Copied::bytes);
    largest_first(outcome.waits, &Waited::count);
}

std::string as_json(const Outcome& outcome) {
    return json_of(outcome).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string as_json(const std::vector<Outcome>& outcomes) {
    Json all = Json::array();
    for (const Outcome& one : outcomes) all.push_back(json_of(one));
    return Json{{"machines", std::move(all)}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<Outcome> read_outcome(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded() || !json.is_object()) return std::nullopt;
    try {
        return outcome_of(json);
    } catch (const Json::exception&) {
        return std::nullopt;
    }
}

}  // namespace isthmus::tools::replay
