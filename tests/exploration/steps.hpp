// SPDX-License-Identifier: Apache-2.0
// The steps of a sequence. They name objects by slot, so that any step can be left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace exploration {

inline constexpr std::size_t max_streams = 6;  // the first ones are the devices' default streams
inline constexpr std::size_t max_events = 4;
inline constexpr std::size_t max_buffers = 5;
inline constexpr std::size_t max_views = 2;
inline constexpr std::size_t max_captures = 2;
inline constexpr std::size_t max_graphs = 2;
inline constexpr std::size_t max_instances = 3;
inline constexpr std::size_t elements = 8;  // of every buffer

// The arguments of a step are `at`, `with` and `other`: slots, in the order of the comments below.
enum class Act : std::uint8_t {
    open_stream,     // stream, device
    close_stream,    // stream
    record,          // event, stream; value: record into the existing event, if there is one
    drop_event,      // event
    wait_event,      // stream, event
    wait_stream,     // stream, stream
    event_finished,  // event
    event_sync,      // event
    stream_finished,
    stream_sync,
    device_sync,
    allocate,       // buffer, device, kind; value: the stream, for stream-ordered memory
    release,        // buffer
    drop_buffer,    // buffer
    bump,           // stream, buffer: a kernel that reads and writes it
    bump_half,      // stream, buffer, which half: the same kernel on a part
    mix,            // stream, buffer written, buffer read: a kernel
    join,           // stream, buffer read and written, buffer read: a kernel
    look,           // stream, buffer: a kernel that reads it
    fill,           // stream, buffer
    copy,           // stream, to, from
    copy_half,      // stream, to, from: the first half into the second
    open_view,      // view, buffer, how (ViewUse; plus 4: without waiting; plus 8 or 16: the first or second half)
    close_view,     // view
    begin_capture,  // capture, stream
    end_capture,    // capture, graph
    drop_capture,   // capture
    instantiate,    // instance, graph
    drop_graph,     // graph
    drop_instance,  // instance
    launch_graph,   // stream, instance
};
inline constexpr std::size_t act_count = static_cast<std::size_t>(Act::launch_graph) + 1;

enum class Kind : std::uint8_t { device, pinned, shared, managed, pool, stream_pool };
inline constexpr std::size_t kind_count = 6;
enum class ViewUse : std::uint8_t { read, write, read_write, concurrent };
inline constexpr std::uint8_t view_never_waits = 4;
inline constexpr std::uint8_t view_ways = 24;  // whole buffer, first and second half, each with and without waiting

// One bit for each half of a buffer.
inline constexpr unsigned both_halves = 3;
constexpr unsigned halves_of_view(unsigned how) {
    return (how >> 3) == 0 ? both_halves : how >> 3;
}
constexpr std::size_t first_of(unsigned halves) {
    return halves == 2 ? elements / 2 : 0;
}
constexpr std::size_t end_of(unsigned halves) {
    return halves == 1 ? elements / 2 : elements;
}

struct Step {
    Act act = Act::look;
    std::uint8_t at = 0;
    std::uint8_t with = 0;
    std::uint8_t other = 0;
    std::int32_t value = 0;
};
using Sequence = std::vector<Step>;

std::string text(const Step& step);  // as the call would be written in C++

// splitmix64: gives the same numbers with every standard library.
class Numbers {
public:
    explicit Numbers(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }

private:
    std::uint64_t state_;
};

}  // namespace exploration
