// SPDX-License-Identifier: Apache-2.0
// Prints the report of a run, as text and as JSON.
#include "summary.hpp"

#include <nlohmann/json.hpp>

#include <cstdarg>
#include <cstdio>

namespace isthmus::tools::camera {
namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, pattern);
    std::vsnprintf(line, sizeof line, pattern, arguments);
    va_end(arguments);
    return line;
}

double ms(std::uint64_t ns) {
    return static_cast<double>(ns) / 1e6;
}
unsigned long long number(std::uint64_t value) {
    return value;
}
double per_second(const Summary& summary) {
    return summary.wall_ns == 0 ? 0 : static_cast<double>(summary.frames) * 1e9 / static_cast<double>(summary.wall_ns);
}
const char* signal_name(int signal) {
    return signal == 1 ? "SIGHUP" : signal == 2 ? "SIGINT" : signal == 15 ? "SIGTERM" : "a signal";
}

std::string size_text(std::uint32_t width, std::uint32_t height) {
    return std::to_string(width) + "x" + std::to_string(height);
}

// Describes the picture itself, and adds that frames have its luma alone and, where panned, a part of it.
std::string input_text(const Summary& summary) {
    const std::string frames = size_text(summary.shape.width, summary.shape.height);
    if (!summary.picture) return summary.input + ", " + frames + " " + std::string(name(summary.shape.format)) + "\n";
    const PictureFacts& picture = *summary.picture;
    const std::string whole = size_text(picture.width, picture.height);
    std::string text = summary.input + ", " + std::string(picture.format) + " of " + whole +
                       (picture.colour ? " in colour, of which the luma is used\n" : " in gray\n");
    if (whole != frames)
        text += "           frames of " + frames + ": a window that moves over the picture (--frames)\n";
    return text;
}

std::string buffers_text(const Summary& summary) {
    std::string text;
    for (const BufferLine& buffer : summary.buffers) {
        const std::string kind = buffer.kind == buffer.host_kind ? buffer.kind : buffer.host_kind + " + " + buffer.kind;
        text += format("  %-8s %s, %s", buffer.name.c_str(), kind.c_str(), buffer.path.c_str());
        text += ": " + buffer.reason + "\n";
    }
    return text;
}

std::string stages_text(const Summary& summary) {
    std::string text = format("  %-10s %-8s %12s %12s\n", "stage", "where", "p50 ms", "p99 ms");
    for (const Samples& stage : summary.stages) {
        text += format("  %-10s %-8s %12.3f %12.3f\n", stage.name, stage.where, ms(percentile(stage.values, 50)),
                       ms(percentile(stage.values, 99)));
    }
    return text;
}

nlohmann::ordered_json stage_json(const Samples& stage) {
    return {{"name", stage.name},
            {"where", stage.where},
            {"p50_ns", percentile(stage.values, 50)},
            {"p99_ns", percentile(stage.values, 99)},
            {"total_ns", stage.total()}};
}

}  // namespace

std::string as_text(const RanOn& where) {
    std::string text = "device     " + where.number + ": " + where.device + " (" + where.model + ")";
    if (!where.simulated) return text + "\n";
    return text + ", simulated" + (where.machine.empty() ? "" : ": " + where.machine) +
           "\n           times and rates are a simulator's: they mean nothing\n";
}

std::string as_text(const Summary& summary) {
    std::string text = as_text(summary.where);
    text += "input      " + input_text(summary);
    text += "shared buffers\n" + buffers_text(summary);
    text += format("frames     %llu in %.3f s, %.1f per second%s\n", number(summary.frames),
                   static_cast<double>(summary.wall_ns) / 1e9, per_second(summary),
                   summary.signal == 0 ? "" : (std::string(", ended by ") + signal_name(summary.signal)).c_str());
    text += stages_text(summary);
    text += format("copied     %llu bytes per frame (p50), %llu (p99), %llu in all\n",
                   number(percentile(summary.bytes_copied.values, 50)),
                   number(percentile(summary.bytes_copied.values, 99)), number(summary.bytes_copied.total()));
    text += format("corners    %llu, digest %s\n", number(summary.corners), summary.corners_digest.c_str());
    if (summary.frames_full > 0) {
        text += format("           %llu frames had more than the list holds: see --threshold and --max-corners\n",
                       number(summary.frames_full));
    }
    if (summary.frames_broken > 0) {
        text +=
            format("           %llu frames of the camera were damaged and left out\n", number(summary.frames_broken));
    }
    text +=
        format("tracks     %llu; %llu of %llu corners continue one from the frame before, digest %s\n",
               number(summary.tracks), number(summary.matched), number(summary.corners), summary.tracks_digest.c_str());
    if (summary.files.size() > 3) {
        text += "written    " + summary.files.front() + " to " + summary.files.back() + "\n";
    } else {
        for (const std::string& file : summary.files) text += "written    " + file + "\n";
    }
    return text;
}

std::string as_json(const Summary& summary) {
    nlohmann::ordered_json buffers = nlohmann::ordered_json::array();
    for (const BufferLine& buffer : summary.buffers) {
        buffers.push_back({{"name", buffer.name},
                           {"kind", buffer.kind},
                           {"host_kind", buffer.host_kind},
                           {"path", buffer.path},
                           {"reason", buffer.reason}});
    }
    nlohmann::ordered_json stages = nlohmann::ordered_json::array();
    for (const Samples& stage : summary.stages) stages.push_back(stage_json(stage));
    nlohmann::ordered_json document = {
        {"command", "run"},
        {"machine", summary.where.machine},
        {"simulated", summary.where.simulated},
        {"device", {{"number", summary.where.number}, {"name", summary.where.device}, {"model", summary.where.model}}},
        {"input",
         {{"name", summary.input},
          {"width", summary.shape.width},
          {"height", summary.shape.height},
          {"format", name(summary.shape.format)},
          {"pitch_bytes", summary.shape.pitch_bytes}}},
        {"buffers", buffers},
        {"frames", summary.frames},
        {"wall_ns", summary.wall_ns},
        {"stages", stages},
        {"bytes_copied",
         {{"p50", percentile(summary.bytes_copied.values, 50)},
          {"p99", percentile(summary.bytes_copied.values, 99)},
          {"total", summary.bytes_copied.total()}}},
        {"corners",
         {{"count", summary.corners}, {"frames_full", summary.frames_full}, {"digest", summary.corners_digest}}},
        {"tracks", {{"count", summary.tracks}, {"matched", summary.matched}, {"digest", summary.tracks_digest}}},
        {"frames_broken", summary.frames_broken},
        {"files", summary.files},
        {"ended_by", summary.signal == 0 ? "end of input" : signal_name(summary.signal)},
    };
    if (summary.picture) {
        document["input"]["picture"] = {{"format", summary.picture->format},
                                        {"colour", summary.picture->colour},
                                        {"width", summary.picture->width},
                                        {"height", summary.picture->height}};
    }
    // File names need not be UTF-8; JSON must be.
    return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace isthmus::tools::camera
