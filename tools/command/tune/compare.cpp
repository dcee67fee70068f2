// SPDX-License-Identifier: Apache-2.0
// Finds the differences once; text and JSON write them.
#include "compare.hpp"

#include "text/table_text.hpp"
#include "words.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace isthmus::tools::tune {

namespace {

using Json = nlohmann::ordered_json;

constexpr double least_difference = 1.05;  // smaller ones are not shown, however narrow the intervals are
constexpr int compared_passes[] = {1, 2, 4, 8, 16, 64, 256};

struct Changed {
    std::string what;
    std::string a;
    std::string b;
};

// Sizes from `from_bytes` up to `to_bytes` (0: no end) at which the two profiles choose otherwise.
struct OtherChoice {
    UseCase use;
    int passes = 1;
    std::size_t from_bytes = 0;
    std::size_t to_bytes = 0;
    Way a;
    Way b;
    // What the other profile's choice costs at most, as a factor; 0: the profile did not measure it.
    double other_in_a = 0;
    double other_in_b = 0;
};

// All points of one way and role that both measured.
struct OtherTimes {
    Way way;
    std::string what;  // "the device reads", "the host writes"
    int points = 0;
    int differing = 0;  // by more than their intervals and least_difference
    double median = 1;  // of time in b / time in a, over all points
    double least = 1;
    double most = 1;
    std::string least_at{};
    std::string most_at{};
};

struct Comparison {
    std::string device;
    std::vector<Changed> changed;
    std::vector<Way> only_a;
    std::vector<Way> only_b;
    std::vector<OtherChoice> choices;
    std::vector<OtherTimes> times;
};

std::string clock_text(double hz) {
    return hz > 0 ? fmt::format("{:.0f} MHz", hz / 1e6) : "not known";
}
std::string joined(const std::vector<std::string>& parts) {
    return fmt::format("{}", fmt::join(parts, "; "));
}
std::string uuid_text(const Measurements& measured) {
    return measured.profile.device ? measured.profile.device.text() : "none";
}

std::vector<Changed> changed_facts(const Measurements& a, const Measurements& b) {
    std::vector<Changed> changed;
    const auto compare = [&](std::string what, std::string in_a, std::string in_b) {
        if (in_a != in_b) changed.push_back({std::move(what), std::move(in_a), std::move(in_b)});
    };
    const DeviceProfile &x = a.profile, &y = b.profile;
    compare("UUID", uuid_text(a), uuid_text(b));
    compare("device", a.device_name, b.device_name);
    compare("CPU", a.cpu_name, b.cpu_name);
    compare("driver", fmt::format("{}.{}", x.driver_version / 1000, x.driver_version % 1000 / 10),
            fmt::format("{}.{}", y.driver_version / 1000, y.driver_version % 1000 / 10));
    compare("kernel", x.kernel_release, y.kernel_release);
    compare("simulated", x.simulated ? "yes" : "no", y.simulated ? "yes" : "no");
    compare("translation", std::string(name(x.translation)), std::string(name(y.translation)));
    compare("memory", std::string(name(x.memory)), std::string(name(y.memory)));
    compare("measured on", x.measured_on, y.measured_on);
    compare("power mode", a.conditions.power_mode, b.conditions.power_mode);
    compare("GPU clock, most", clock_text(a.conditions.gpu_clock_hz_most), clock_text(b.conditions.gpu_clock_hz_most));
    // Clocks under load vary by a few percent.
    const double end_a = a.conditions.gpu_clock_hz_end, end_b = b.conditions.gpu_clock_hz_end;
    if (std::fabs(end_a - end_b) > 0.03 * std::max(end_a, end_b)) {
        compare("GPU clock, at the end", clock_text(end_a), clock_text(end_b));
    }
    compare("throttled", a.conditions.throttled ? "yes" : "no", b.conditions.throttled ? "yes" : "no");
    compare("notes", joined(a.conditions.notes), joined(b.conditions.notes));
    return changed;
}

std::vector<Way> ways_of_first(const std::vector<Way>& ways, const std::vector<Way>& others) {
    std::vector<Way> result;
    for (const Way& way : ways) {
        if (std::find(others.begin(), others.end(), way) == others.end()) result.push_back(way);
    }
    return result;
}

// The largest factor by which `other` is slower than `own` from one size to another; 0: not measured.
double most_cost(const CostModel& model, const Way& own, const Way& other, const OtherChoice& choice) {
    const auto index_of = [&](const Way& way) {
        return static_cast<std::size_t>(std::find(model.ways().begin(), model.ways().end(), way) -
                                        model.ways().begin());
    };
    const std::size_t chosen = index_of(own), else_chosen = index_of(other), count = model.ways().size();
    if (chosen == count || else_chosen == count) return 0;
    if (!model.serves(chosen, choice.use) || !model.serves(else_chosen, choice.use)) return 0;
    const double most = choice.to_bytes != 0 ? static_cast<double>(choice.to_bytes) : model.sizes().back();
    double factor = 0;
    for (double size = std::max(static_cast<double>(choice.from_bytes), model.sizes().front()); size <= most;
         size *= 1.2) {
        const double ratio = model.seconds(else_chosen, choice.use, choice.passes, size) /
                             model.seconds(chosen, choice.use, choice.passes, size);
        if (std::isfinite(ratio)) factor = std::max(factor, ratio);
    }
    return factor;
}

void add_other_choices(const std::vector<ProfileChoice>& a, const std::vector<ProfileChoice>& b, const UseCase& use,
                       int passes, std::vector<OtherChoice>& found) {
    const std::vector<Run> runs_a = runs_of(a, use, passes), runs_b = runs_of(b, use, passes);
    if (runs_a.empty() || runs_b.empty()) return;
    std::set<std::size_t> borders;
    for (const std::vector<Run>* const runs : {&runs_a, &runs_b}) {
        for (const Run& run : *runs) borders.insert(run.from_bytes);
    }
    for (auto at = borders.begin(); at != borders.end(); ++at) {
        const double size = static_cast<double>(*at);
        const Way &in_a = run_at(runs_a, size).way, &in_b = run_at(runs_b, size).way;
        const std::size_t end = std::next(at) == borders.end() ? 0 : *std::next(at);
        if (in_a == in_b) continue;
        const bool goes_on = !found.empty() && found.back().use == use && found.back().passes == passes &&
                             found.back().to_bytes == *at && found.back().a == in_a && found.back().b == in_b;
        if (goes_on) {
            found.back().to_bytes = end;
        } else {
            found.push_back({use, passes, *at, end, in_a, in_b});
        }
    }
}

// Uses whose host only differs in how often it passes say little more: the measured ones are compared.
std::vector<OtherChoice> other_choices(const Measurements& a, const Measurements& b) {
    const std::vector<ProfileChoice> choices_a = known_choices(a), choices_b = known_choices(b);
    std::vector<OtherChoice> found;
    for (const Role device : all_roles) {
        for (const Prefer prefer : {Prefer::throughput, Prefer::latency}) {
            for (const int passes : compared_passes) {
                add_other_choices(choices_a, choices_b, measured_use(device, prefer), passes, found);
            }
        }
    }
    const CostModel model_a(a), model_b(b);
    for (OtherChoice& choice : found) {
        choice.other_in_a = most_cost(model_a, choice.a, choice.b, choice);
        choice.other_in_b = most_cost(model_b, choice.b, choice.a, choice);
    }
    // Borders move a little from one measurement to the next: what costs nothing in either is no difference.
    std::erase_if(found, [](const OtherChoice& choice) {
        const auto is_small = [](double factor) { return factor != 0 && factor <= least_difference; };
        return is_small(choice.other_in_a) && is_small(choice.other_in_b);
    });
    return found;
}

// A point that both measured.
struct Pair {
    std::string at;
    const Sample* a = nullptr;
    const Sample* b = nullptr;
    double ratio() const { return b->median / a->median; }
    bool differs() const {
        const bool is_apart = a->high < b->low || b->high < a->low;
        return is_apart && (ratio() > least_difference || ratio() < 1 / least_difference);
    }
};
bool is_known(const Sample& sample) {
    return sample.count > 0 && std::isfinite(sample.median) && sample.median > 0;
}

OtherTimes summary_of(const Way& way, std::string what, const std::vector<Pair>& pairs) {
    OtherTimes times{way, std::move(what)};
    std::vector<double> ratios;
    for (const Pair& pair : pairs) {
        ratios.push_back(pair.ratio());
        if (!pair.differs()) continue;
        ++times.differing;
        if (pair.ratio() > times.most) {
            times.most = pair.ratio();
            times.most_at = pair.at;
        }
        if (pair.ratio() < times.least) {
            times.least = pair.ratio();
            times.least_at = pair.at;
        }
    }
    times.points = static_cast<int>(ratios.size());
    std::sort(ratios.begin(), ratios.end());
    if (!ratios.empty()) times.median = ratios[ratios.size() / 2];
    return times;
}

std::vector<OtherTimes> other_times(const Measurements& a, const Measurements& b) {
    using Key = std::tuple<int, std::size_t, int>;  // role, bytes, passes
    std::vector<OtherTimes> found;
    for (const Way& way : a.ways) {
        std::map<Key, const Sample*> turns, hosts;
        for (const TurnSample& turn : a.turns) {
            if (turn.way == way && is_known(turn.seconds)) {
                turns[{static_cast<int>(turn.device), turn.bytes, turn.passes}] = &turn.seconds;
            }
        }
        for (const HostSample& host : a.hosts) {
            if (host.way == way && is_known(host.seconds)) {
                hosts[{static_cast<int>(host.host), host.bytes, 0}] = &host.seconds;
            }
        }
        std::map<Role, std::vector<Pair>> by_device, by_host;
        for (const TurnSample& turn : b.turns) {
            const auto in_a = turns.find({static_cast<int>(turn.device), turn.bytes, turn.passes});
            if (turn.way != way || in_a == turns.end() || !is_known(turn.seconds)) continue;
            const std::string at = fmt::format("{}, {} pass{}", size_words(static_cast<double>(turn.bytes)),
                                               turn.passes, turn.passes == 1 ? "" : "es");
            by_device[turn.device].push_back({at, in_a->second, &turn.seconds});
        }
        for (const HostSample& host : b.hosts) {
            const auto in_a = hosts.find({static_cast<int>(host.host), host.bytes, 0});
            if (host.way != way || in_a == hosts.end() || !is_known(host.seconds)) continue;
            by_host[host.host].push_back({size_words(static_cast<double>(host.bytes)), in_a->second, &host.seconds});
        }
        for (const auto& [role, pairs] : by_device) {
            found.push_back(summary_of(way, fmt::format("the device {}", role_words(role)), pairs));
        }
        for (const auto& [role, pairs] : by_host) {
            found.push_back(summary_of(way, fmt::format("the host {}", role_words(role)), pairs));
        }
    }
    return found;
}

Comparison compared(const Measurements& a, const Measurements& b) {
    return {a.device_name,       changed_facts(a, b), ways_of_first(a.ways, b.ways), ways_of_first(b.ways, a.ways),
            other_choices(a, b), other_times(a, b)};
}

struct Comparisons {
    std::vector<Comparison> both;
    std::vector<std::string> only_a;
    std::vector<std::string> only_b;
};
std::string device_text(const Measurements& measured) {
    return fmt::format("{} ({})", measured.device_name, uuid_text(measured));
}
Comparisons all_compared(const std::vector<Measurements>& a, const std::vector<Measurements>& b) {
    Comparisons result;
    if (a.size() == 1 && b.size() == 1) {
        result.both.push_back(compared(a.front(), b.front()));
        return result;
    }
    const auto like = [](const std::vector<Measurements>& all, const Measurements& one) {
        return std::find_if(all.begin(), all.end(),
                            [&](const Measurements& other) { return other.profile.device == one.profile.device; });
    };
    for (const Measurements& one : a) {
        const auto other = like(b, one);
        if (other == b.end()) {
            result.only_a.push_back(device_text(one));
        } else {
            result.both.push_back(compared(one, *other));
        }
    }
    for (const Measurements& one : b) {
        if (like(a, one) == a.end()) result.only_b.push_back(device_text(one));
    }
    return result;
}

std::string factor_words(double factor) {
    return factor == 0 ? "not measured" : fmt::format("{:.2f}", factor);
}
std::string range_words(std::size_t from, std::size_t to) {
    if (from == 0 && to == 0) return "every size";
    if (to == 0) return fmt::format("from {}", size_words(static_cast<double>(from)));
    if (from == 0) return fmt::format("below {}", size_words(static_cast<double>(to)));
    return fmt::format("{} to {}", size_words(static_cast<double>(from)), size_words(static_cast<double>(to)));
}

std::string extremes_words(const OtherTimes& times) {
    std::string text;
    if (!times.most_at.empty()) text = fmt::format("{:.2f} at {}", times.most, times.most_at);
    if (!times.least_at.empty()) {
        text += fmt::format("{}{:.2f} at {}", text.empty() ? "" : "; ", times.least, times.least_at);
    }
    return text;
}

std::vector<Section> sections_of(const Comparison& comparison) {
    std::vector<Section> sections;
    Section facts{comparison.device, comparison.changed.empty() ? "Machine and conditions are the same." : ""};
    if (!comparison.changed.empty()) facts.header = {"", "A", "B"};
    for (const Changed& changed : comparison.changed) facts.rows.push_back({changed.what, changed.a, changed.b});
    sections.push_back(std::move(facts));

    if (!comparison.only_a.empty() || !comparison.only_b.empty()) {
        Section ways{"Measured on one side only", "", {"way", "in"}};
        for (const Way& way : comparison.only_a) ways.rows.push_back({way_label(way), "A"});
        for (const Way& way : comparison.only_b) ways.rows.push_back({way_label(way), "B"});
        sections.push_back(std::move(ways));
    }

    Section choices{"Choices", comparison.choices.empty()
                                   ? "Both choose the same, or what is as fast."
                                   : "The last columns say how much slower the other choice is."};
    if (!comparison.choices.empty()) choices.header = {"use", "passes", "sizes", "A", "B", "B's in A", "A's in B"};
    for (const OtherChoice& choice : comparison.choices) {
        choices.rows.push_back({fmt::format("device {}{}", role_words(choice.use.device),
                                            choice.use.prefer == Prefer::latency ? ", for latency" : ""),
                                std::to_string(choice.passes), range_words(choice.from_bytes, choice.to_bytes),
                                way_label(choice.a), way_label(choice.b), factor_words(choice.other_in_a),
                                factor_words(choice.other_in_b)});
    }
    sections.push_back(std::move(choices));

    Section times{"Times, B / A",
                  "Points count as different where their confidence intervals are apart and the medians differ by more "
                  "than 5 %.",
                  {"way", "what", "median", "different", "most"}};
    for (const OtherTimes& one : comparison.times) {
        times.rows.push_back({way_label(one.way), one.what, fmt::format("{:.2f}", one.median),
                              fmt::format("{} of {}", one.differing, one.points), extremes_words(one)});
    }
    if (times.rows.empty()) times = {"Times, B / A", "No point was measured on both sides."};
    sections.push_back(std::move(times));
    return sections;
}

Json json_of(const Way& way) {
    return {{"kind", name(way.kind)}, {"locality", name(way.locality)}};
}
Json json_of(const std::vector<Way>& ways) {
    Json json = Json::array();
    for (const Way& way : ways) json.push_back(json_of(way));
    return json;
}
std::string_view role_name(Role role) {
    return role == Role::reads ? "reads" : role == Role::writes ? "writes" : "reads_and_writes";
}
Json json_of(const OtherChoice& choice) {
    return {{"device", role_name(choice.use.device)},
            {"host", role_name(choice.use.host)},
            {"prefer", choice.use.prefer == Prefer::latency ? "latency" : "throughput"},
            {"passes", choice.passes},
            {"from_bytes", choice.from_bytes},
            {"to_bytes", choice.to_bytes == 0 ? Json(nullptr) : Json(choice.to_bytes)},
            {"a", json_of(choice.a)},
            {"b", json_of(choice.b)},
            {"other_in_a", choice.other_in_a == 0 ? Json(nullptr) : Json(choice.other_in_a)},
            {"other_in_b", choice.other_in_b == 0 ? Json(nullptr) : Json(choice.other_in_b)}};
}
Json json_of(const OtherTimes& times) {
    return {{"way", json_of(times.way)},    {"what", times.what},           {"points", times.points},
            {"different", times.differing}, {"median_ratio", times.median}, {"least_ratio", times.least},
            {"least_at", times.least_at},   {"most_ratio", times.most},     {"most_at", times.most_at}};
}
Json json_of(const Comparison& comparison) {
    Json changed = Json::array(), choices = Json::array(), times = Json::array();
    for (const Changed& one : comparison.changed) changed.push_back({{"what", one.what}, {"a", one.a}, {"b", one.b}});
    for (const OtherChoice& choice : comparison.choices) choices.push_back(json_of(choice));
    for (const OtherTimes& one : comparison.times) times.push_back(json_of(one));
    return {{"device", comparison.device},
            {"changed", changed},
            {"ways_only_a", json_of(comparison.only_a)},
            {"ways_only_b", json_of(comparison.only_b)},
            {"choices", choices},
            {"times", times}};
}

}  // namespace

std::string compare_text(const std::vector<Measurements>& a, const std::vector<Measurements>& b) {
    const Comparisons all = all_compared(a, b);
    std::vector<Section> sections;
    for (const Comparison& comparison : all.both) {
        for (Section& section : sections_of(comparison)) sections.push_back(std::move(section));
    }
    if (!all.only_a.empty() || !all.only_b.empty()) {
        Section section{"Devices in one profile only", "", {"device", "in"}};
        for (const std::string& device : all.only_a) section.rows.push_back({device, "A"});
        for (const std::string& device : all.only_b) section.rows.push_back({device, "B"});
        sections.push_back(std::move(section));
    }
    return as_text(sections);
}

std::string compare_json(const std::vector<Measurements>& a, const std::vector<Measurements>& b) {
    const Comparisons all = all_compared(a, b);
    Json devices = Json::array();
    for (const Comparison& comparison : all.both) devices.push_back(json_of(comparison));
    const Json document{{"devices", devices}, {"only_a", all.only_a}, {"only_b", all.only_b}};
    // Names from files may hold bytes that are not UTF-8.
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace isthmus::tools::tune
