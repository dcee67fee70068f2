// SPDX-License-Identifier: Apache-2.0
// The outcome as text: one machine with its reasons, or a row for each machine.
#include "outcome.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace isthmus::tools::replay {
namespace {

std::string counted(std::uint64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}
std::string frames_of(const Outcome& outcome) {
    return fmt::format("{} ({})", counted(outcome.frames, "frame"),
                       outcome.of_rings ? "published by rings" : "turns from the host to the device");
}
// "2 copies a frame"
std::string each_frame(std::uint64_t count, std::uint64_t frames, std::string_view one, std::string_view many) {
    const std::string number = per_frame(count, frames);
    return fmt::format("{} {} a frame", number, number == "1" ? one : many);
}
std::string milliseconds(double seconds) {
    return fmt::format("{:.3f}", seconds * 1e3);
}

Section memory_of(const Outcome& outcome) {
    Section section;
    section.title = "memory";
    section.header = {"asked for", "buffers", "bytes", "becomes", "launches", "why"};
    for (const Group& group : outcome.groups) {
        const std::string kind = group.host_kind.empty() || group.host_kind == group.kind
                                     ? group.kind
                                     : fmt::format("{}, host side {}", group.kind, group.host_kind);
        section.rows.push_back(
            {group.made, std::to_string(group.count), std::to_string(group.bytes), kind, group.path, group.reason});
    }
    return section;
}

Section refusals_of(const Outcome& outcome) {
    Section section;
    section.title = "refused";
    section.header = {"call", "times", "error", "why", "what works instead"};
    for (const Refusal& one : outcome.refusals) {
        section.rows.push_back(
            {one.call,
             one.recorded == one.count ? fmt::format("{}, as recorded", one.count) : std::to_string(one.count),
             one.error.empty() ? one.code : fmt::format("{} {}", one.error, one.code), one.message, one.remedy});
    }
    if (section.rows.empty()) section = {"refused", "none"};
    return section;
}

Section copies_of(const Outcome& outcome) {
    Section section;
    section.title = "copies between the two sides of buffers";
    section.header = {"for", "way", "copies", "a frame", "bytes", "memory"};
    for (const Copied& one : outcome.copies) {
        section.rows.push_back({one.name, one.up ? "up" : "down", std::to_string(one.count),
                                per_frame(one.count, outcome.frames), std::to_string(one.bytes), one.memory});
    }
    if (section.rows.empty()) section = {section.title, "none"};
    return section;
}

Section waits_of(const Outcome& outcome) {
    Section section;
    section.title = "waits of the host";
    section.header = {"in", "for", "waits", "a frame"};
    for (const Waited& one : outcome.waits) {
        section.rows.push_back(
            {one.inside, one.waits_for, std::to_string(one.count), per_frame(one.count, outcome.frames)});
    }
    if (section.rows.empty()) section = {section.title, "none"};
    return section;
}

}  // namespace

std::string per_frame(std::uint64_t count, std::uint64_t frames) {
    if (frames == 0) return std::to_string(count);
    if (count % frames == 0) return std::to_string(count / frames);
    const double each = static_cast<double>(count) / static_cast<double>(frames);
    return each < 0.05 ? "< 0.1" : fmt::format("{:.1f}", each);
}

std::string one_line(const Outcome& outcome) {
    const std::string where = outcome.machine.empty() ? outcome.device : outcome.machine;
    if (!outcome.problem.empty()) return fmt::format("{}: {}", where, outcome.problem);
    const std::string kinds = outcome.kinds();
    std::string line =
        fmt::format("{}: {}; {}; {}", where, kinds.empty() ? "no memory" : kinds, counted(outcome.refused(), "refusal"),
                    each_frame(outcome.copied(), outcome.frames, "copy", "copies"));
    if (outcome.copied() > 0) line += fmt::format(" ({} bytes)", outcome.copied_bytes() / outcome.frames);
    if (outcome.attaches > 0) {
        line += "; " + each_frame(outcome.attaches, outcome.frames, "attach", "attaches");
    }
    if (outcome.prefetches > 0) {
        line += "; " + each_frame(outcome.prefetches, outcome.frames, "prefetch", "prefetches");
    }
    line += "; " + each_frame(outcome.waited(), outcome.frames, "wait", "waits");
    if (outcome.hand_over_seconds) {
        line += fmt::format("; {} ms a frame for the hand-overs",
                            milliseconds(*outcome.hand_over_seconds / static_cast<double>(outcome.frames)));
    }
    return line;
}

std::string as_text(const Outcome& outcome, const TextStyle& style) {
    Section first;
    first.title = outcome.machine.empty() ? "replay" : "replay on " + outcome.machine;
    first.text = one_line(outcome);
    if (!outcome.problem.empty()) return as_text({first}, style);
    first.text += fmt::format(". {}, {}", frames_of(outcome),
                              outcome.launches == 1 ? "1 launch" : fmt::format("{} launches", outcome.launches));
    std::vector<Section> sections{first, memory_of(outcome), refusals_of(outcome), copies_of(outcome),
                                  waits_of(outcome)};
    std::string rest;
    if (outcome.skipped > 0) {
        rest += fmt::format("{} calls were left out, because memory that they use was refused. ", outcome.skipped);
    }
    if (outcome.allowed > 0) {
        rest += fmt::format("{} calls that were refused where this was recorded work here. ", outcome.allowed);
    }
    if (!outcome.profile.empty()) rest += fmt::format("Profile: {}. ", outcome.profile);
    for (const std::string& note : outcome.notes) rest += note + ". ";
    if (!rest.empty()) {
        rest.pop_back();
        sections.push_back({"notes", rest});
    }
    return as_text(sections, style);
}

std::string as_table(const std::vector<Outcome>& outcomes, const TextStyle& style) {
    Section section;
    section.title = "replay";
    std::string frames = "no frames";
    bool timed = false;
    for (const Outcome& one : outcomes) {
        if (one.problem.empty()) frames = frames_of(one);
        timed = timed || one.hand_over_seconds.has_value();
    }
    section.text = frames + "; numbers are of one frame, except for refusals";
    section.header = {"machine", "memory", "refused", "copies", "bytes", "attaches", "prefetches", "waits"};
    if (timed) section.header.push_back("ms");
    for (const Outcome& one : outcomes) {
        const auto each = [&](std::uint64_t count) { return per_frame(count, one.frames); };
        std::vector<std::string> row{one.machine,
                                     one.problem.empty() ? one.kinds() : one.problem,
                                     std::to_string(one.refused()),
                                     each(one.copied()),
                                     std::to_string(one.copied_bytes() / one.frames),
                                     each(one.attaches),
                                     each(one.prefetches),
                                     each(one.waited())};
        if (!one.problem.empty()) std::fill(row.begin() + 2, row.end(), "-");
        if (timed) {
            row.push_back(one.hand_over_seconds ? milliseconds(*one.hand_over_seconds / static_cast<double>(one.frames))
                                                : "-");
        }
        section.rows.push_back(std::move(row));
    }
    return as_text({section}, style);
}

}  // namespace isthmus::tools::replay
