// SPDX-License-Identifier: Apache-2.0
// Prints steps as text.
#include "steps.hpp"

#include <array>

namespace exploration {
namespace {

std::string named(const char* what, unsigned slot) {
    return what + std::to_string(slot);
}
std::string stream(unsigned slot) {
    return named("stream", slot);
}
std::string event(unsigned slot) {
    return named("event", slot);
}
std::string buffer(unsigned slot) {
    return named("buffer", slot);
}
std::string number(std::int32_t value) {
    return std::to_string(value);
}

std::string allocation(const Step& step) {
    constexpr std::array<const char*, kind_count> names = {"device", "pinned", "shared", "managed", "pool", "stream"};
    const std::string to = buffer(step.at) + " = ";
    if (static_cast<Kind>(step.other) == Kind::stream_pool) {
        return to + stream(static_cast<unsigned>(step.value)) + ".allocate()";
    }
    return to + named("device", step.with) + ".allocate(" + names[step.other % kind_count] + ")";
}

std::string view(const Step& step) {
    constexpr std::array<const char*, 4> names = {"read", "write", "read_write", "concurrent"};
    constexpr std::array<const char*, 4> parts = {"", ".part(0, 4)", ".part(4, 4)", "?"};
    const bool never = (step.other & view_never_waits) != 0;
    return named("view", step.at) + " = " + buffer(step.with) + parts[step.other >> 3 & 3] + "." +
           names[step.other & 3] + "_on_host(" + (never ? "never" : "") + ")" +
           ((step.other & 3) % 3 != 0 ? ", writing " + number(step.value) : "");
}

std::string of_objects(const Step& step) {
    switch (step.act) {
        case Act::open_stream: return stream(step.at) + " = " + named("device", step.with) + ".create_stream()";
        case Act::close_stream: return stream(step.at) + " is destroyed";
        case Act::record:
            return step.value != 0 ? stream(step.with) + ".record(" + event(step.at) + ")"
                                   : event(step.at) + " = " + stream(step.with) + ".record()";
        case Act::drop_event: return event(step.at) + " is destroyed";
        case Act::wait_event: return stream(step.at) + ".wait(" + event(step.with) + ")";
        case Act::wait_stream: return stream(step.at) + ".wait_stream(" + stream(step.with) + ")";
        case Act::event_finished: return event(step.at) + ".finished()";
        case Act::event_sync: return event(step.at) + ".synchronize()";
        case Act::stream_finished: return stream(step.at) + ".finished()";
        case Act::stream_sync: return stream(step.at) + ".synchronize()";
        case Act::device_sync: return named("device", step.at) + ".synchronize()";
        case Act::allocate: return allocation(step);
        case Act::release: return buffer(step.at) + ".release()";
        case Act::drop_buffer: return buffer(step.at) + " is destroyed";
        case Act::open_view: return view(step);
        case Act::close_view: return named("view", step.at) + " is closed";
        default: return {};
    }
}

std::string of_work(const Step& step) {
    const std::string on = stream(step.at);
    switch (step.act) {
        case Act::bump: return on + ".launch(bump, " + buffer(step.with) + ", " + number(step.value) + ")";
        case Act::bump_half:
            return on + ".launch(bump, " + buffer(step.with) + ".part(" + (step.other % 2 == 0 ? "0" : "4") + ", 4), " +
                   number(step.value) + ")";
        case Act::mix:
            return on + ".launch(mix, " + buffer(step.with) + ", " + buffer(step.other) + ", " + number(step.value) +
                   ")";
        case Act::join: return on + ".launch(join, " + buffer(step.with) + ", " + buffer(step.other) + ")";
        case Act::look: return on + ".launch(look, " + buffer(step.with) + ")";
        case Act::fill: return on + ".fill(" + buffer(step.with) + ", " + number(step.value) + ")";
        case Act::copy: return on + ".copy(" + buffer(step.with) + ", " + buffer(step.other) + ")";
        case Act::copy_half: return on + ".copy(" + buffer(step.with) + "[4..8), " + buffer(step.other) + "[0..4))";
        case Act::begin_capture: return named("capture", step.at) + " = " + stream(step.with) + ".begin_capture()";
        case Act::end_capture: return named("graph", step.with) + " = " + named("capture", step.at) + ".end()";
        case Act::drop_capture: return named("capture", step.at) + " is destroyed";
        case Act::instantiate: return named("instance", step.at) + " = " + named("graph", step.with) + ".instantiate()";
        case Act::drop_graph: return named("graph", step.at) + " is destroyed";
        case Act::drop_instance: return named("instance", step.at) + " is destroyed";
        case Act::launch_graph: return on + ".launch(" + named("instance", step.with) + ")";
        default: return "?";
    }
}

}  // namespace

std::string text(const Step& step) {
    const std::string object = of_objects(step);
    return object.empty() ? of_work(step) : object;
}

}  // namespace exploration
