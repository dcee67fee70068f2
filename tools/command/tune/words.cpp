// SPDX-License-Identifier: Apache-2.0
#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace isthmus::tools::tune {

namespace {

// At most three digits, without a point at the end.
std::string number(double value) {
    std::string text = fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
    if (text.find('.') != std::string::npos) {
        text.erase(text.find_last_not_of('0') + 1);
        if (text.back() == '.') text.pop_back();
    }
    return text;
}

std::string_view place_words(Locality locality) {
    switch (locality) {
        case Locality::near_device: return " bound near the device";
        case Locality::unbound: return " that may migrate";
        case Locality::local: return " of the thread's node";
        case Locality::interleaved: return " over all nodes";
        default: return "";
    }
}

}  // namespace

std::string way_words(const Way& way) {
    const std::string_view place = place_words(way.locality);
    switch (way.kind) {
        case MemoryKind::host: return fmt::format("ordinary memory{}", place);
        case MemoryKind::write_combined: return "write-combined memory";
        case MemoryKind::device: return "a copy at each hand-over";
        case MemoryKind::pool: return "a copy at each hand-over (pool)";
        case MemoryKind::host_numa: return fmt::format("memory of a NUMA node{}", place);
        default: return fmt::format("{} memory{}", name(way.kind), place);
    }
}

std::string way_label(const Way& way) {
    std::string text(way.kind == MemoryKind::device ? "copied" : name(way.kind));
    if (way.kind == MemoryKind::write_combined) text = "write-combined";
    if (way.locality == Locality::near_device) return text + ", near";
    if (way.locality != Locality::anywhere) return text + ", " + std::string(name(way.locality));
    return text;
}

std::string_view role_words(Role role) {
    return role == Role::reads ? "reads" : role == Role::writes ? "writes" : "reads and writes";
}

std::string times_words(int passes) {
    return passes == 1 ? "once" : passes == 2 ? "twice" : fmt::format("{} times", passes);
}

std::string size_words(double bytes) {
    static constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB"};
    std::size_t unit = 0;
    while (unit + 1 < std::size(units) && bytes >= 1023.5) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{} {}", number(bytes), units[unit]);
}

std::string about(double bytes) {
    double unit = 1;
    while (bytes >= 1000 * unit) unit *= 1024;
    double step = unit / 10;
    while (bytes >= 100 * step) step *= 10;
    return size_words(std::max(1.0, std::round(bytes / step) * step));
}

std::string time_words(double seconds) {
    static constexpr std::string_view units[] = {"s", "ms", "us", "ns"};
    std::size_t unit = 0;
    while (unit + 1 < std::size(units) && seconds < 0.9995) {
        seconds *= 1000;
        ++unit;
    }
    return fmt::format("{} {}", number(seconds), units[unit]);
}

std::string use_words(const UseCase& use) {
    return fmt::format("the device {}, the host {}{}{}", role_words(use.device), role_words(use.host),
                       use.host_often ? " often" : "", use.prefer == Prefer::latency ? ", for latency" : "");
}

Role counterpart(Role device) {
    return device == Role::reads ? Role::writes : device == Role::writes ? Role::reads : Role::reads_and_writes;
}

UseCase measured_use(Role device, Prefer prefer) {
    return {device, counterpart(device), false, prefer};
}

std::vector<Run> runs_of(const std::vector<ProfileChoice>& choices, const UseCase& use, int passes) {
    int row = 0;
    for (const ProfileChoice& choice : choices) {
        if (use_of(choice) == use && choice.passes <= passes && choice.passes > row) row = choice.passes;
    }
    std::vector<Run> runs;
    for (const ProfileChoice& choice : choices) {
        if (use_of(choice) == use && choice.passes == row) runs.push_back({choice.from_bytes, way_of(choice)});
    }
    return runs;
}

const Run& run_at(const std::vector<Run>& runs, double bytes) {
    const auto after = std::find_if(runs.begin(), runs.end(),
                                    [&](const Run& run) { return static_cast<double>(run.from_bytes) > bytes; });
    return after == runs.begin() ? *after : *std::prev(after);
}

std::vector<ProfileChoice> known_choices(const Measurements& measured) {
    return measured.profile.choices.empty() ? choices_of(measured) : measured.profile.choices;
}

}  // namespace isthmus::tools::tune
