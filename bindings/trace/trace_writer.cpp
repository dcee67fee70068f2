// SPDX-License-Identifier: Apache-2.0
// The trace event format: tracks of threads and streams, arrows from an operation to the wait for it, and counters.
#include "trace_writer.hpp"

#include <isthmus/version.hpp>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace isthmus::trace {
namespace {

constexpr int host = 1;     // the process of the threads' tracks
constexpr int streams = 2;  // of the streams' tracks

struct Entry {
    const RecordedEvent* event;
    std::uint64_t thread;
    std::size_t number;  // in its thread
};

std::vector<Entry> in_order(const std::vector<ThreadEvents>& threads) {
    std::vector<Entry> all;
    for (const ThreadEvents& one : threads) {
        for (std::size_t at = 0; at < one.count; ++at) all.push_back({&one.events[at], one.thread, at});
    }
    std::stable_sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.event->ns < b.event->ns; });
    return all;
}

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        if (character == '"' || character == '\\') {
            out += '\\';
            out += character;
        } else if (byte < 0x20 || byte == 0x7F) {
            std::array<char, 8> escaped{};
            (void)std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(byte));
            out += escaped.data();
        } else {
            out += character;
        }
    }
    out += '"';
}

// The fields of one JSON object.
class Fields {
public:
    explicit Fields(std::string& out) : out_(out) { out_ += '{'; }
    // Of an event, whose other fields follow.
    Fields(std::string& out, std::string_view phase, int process, std::uint64_t track) : Fields(out) {
        text("ph", phase).number("pid", static_cast<std::uint64_t>(process)).number("tid", track);
    }
    Fields(const Fields&) = delete;
    Fields& operator=(const Fields&) = delete;
    ~Fields() { out_ += '}'; }

    Fields& text(std::string_view key, std::string_view value) {
        name(key);
        append_quoted(out_, value);
        return *this;
    }
    Fields& number(std::string_view key, std::uint64_t value) {
        name(key);
        out_ += std::to_string(value);
        return *this;
    }
    // Microseconds, the format's unit, with three digits behind the point.
    Fields& time(std::string_view key, std::uint64_t ns) {
        name(key);
        std::array<char, 32> written{};
        (void)std::snprintf(written.data(), written.size(), "%" PRIu64 ".%03u", ns / 1000,
                            static_cast<unsigned>(ns % 1000));
        out_ += written.data();
        return *this;
    }
    std::string& raw(std::string_view key) {
        name(key);
        return out_;
    }

private:
    void name(std::string_view key) {
        if (!first_) out_ += ',';
        first_ = false;
        append_quoted(out_, key);
        out_ += ':';
    }
    std::string& out_;
    bool first_ = true;
};

std::string hexadecimal(std::uint64_t value) {
    std::array<char, 24> written{};
    (void)std::snprintf(written.data(), written.size(), "0x%" PRIx64, value);
    return written.data();
}

// What a stream was given last, for the arrow to a wait for it.
struct Given {
    std::uint64_t position;
    std::uint64_t flow;
    std::uint64_t ends_ns;
};

class Writer {
public:
    Writer(std::vector<Entry> all, std::uint64_t dropped) : all_(std::move(all)), dropped_(dropped) {}

    std::string write() {
        out_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":";
        Fields(out_)
            .text("isthmus", ISTHMUS_VERSION_STRING)
            .number("recorded", all_.size())
            .number("dropped", dropped_);
        out_ += ",\"traceEvents\":[";
        name_tracks();
        first_ns_ = all_.empty() ? 0 : all_.front().event->ns;
        for (const Entry& entry : all_) {
            if (entry.event->phase == Phase::begin) begin(entry);
            if (entry.event->phase == Phase::end) end(entry);
            if (entry.event->phase == Phase::mark) mark(entry);
        }
        out_ += "\n]}\n";
        return std::move(out_);
    }

private:
    // Where the object of the next event goes.
    std::string& next() {
        out_ += separate_ ? ",\n" : "\n";
        separate_ = true;
        return out_;
    }
    void name_track(std::string_view what, int process, std::uint64_t track, std::string_view name) {
        Fields fields(next(), "M", process, track);
        fields.text("name", what);
        Fields(fields.raw("args")).text("name", name);
    }
    void name_tracks() {
        name_track("process_name", host, 0, "host");
        name_track("process_name", streams, 0, "streams: what was given to them");
        std::map<std::uint64_t, std::uint32_t> seen_streams;
        std::map<std::uint64_t, bool> seen_threads;
        for (const Entry& entry : all_) {
            seen_threads[entry.thread] = true;
            if (entry.event->stream != 0) seen_streams.emplace(entry.event->stream, entry.event->device);
        }
        for (const auto& [thread, seen] : seen_threads) {
            name_track("thread_name", host, thread, "thread " + std::to_string(thread));
        }
        for (const auto& [stream, device] : seen_streams) {
            name_track("thread_name", streams, stream,
                       "stream " + std::to_string(stream) + " of device " + std::to_string(device));
        }
    }

    std::uint64_t since_begin(std::uint64_t ns) const { return ns - first_ns_; }

    static void arguments(Fields& fields, const RecordedEvent& event, const std::string& inside = {}) {
        Fields arguments(fields.raw("args"));
        arguments.number("device", event.device);
        if (event.stream != 0) arguments.number("stream", event.stream);
        if (event.position != 0) arguments.number("position", event.position);
        if (event.bytes != 0) arguments.number("bytes", event.bytes);
        if (event.address != 0) arguments.text("address", hexadecimal(event.address));
        if (event.kind != MemoryKind::unknown) arguments.text("memory", isthmus::name(event.kind));
        if (event.code != 0) arguments.text("code", isthmus::name(static_cast<Code>(event.code)));
        if (event.error.length != 0) arguments.text("error", event.error.view());
        if (event.reason.length != 0) arguments.text("reason", event.reason.view());
        if (event.is(Span::wait)) arguments.text("waits_for", event.name.view());
        if (event.is(Span::wait) && !inside.empty()) arguments.text("inside", inside);
    }
    // The call that a wait of the thread is inside. A view that is open does not count unless the wait follows its
    // begin: then the call that opens it waits.
    std::string inside(std::uint64_t thread) {
        const auto opening = opening_.find(thread);
        if (opening != opening_.end() && opening->second != nullptr) return label(*opening->second);
        std::vector<const RecordedEvent*>& open = open_[thread];
        const auto call = std::find_if(open.rbegin(), open.rend(), [](const RecordedEvent* one) {
            return !is_scope(*one) && !one->is(Span::wait);
        });
        return call == open.rend() ? std::string() : std::string(category(**call)) + " " + label(**call);
    }

    static bool is_scope(const RecordedEvent& event) {
        return event.is(Span::host_view) || event.is(Span::native_scope);
    }
    static bool gives_work(const RecordedEvent& event) {
        return event.is(Span::launch) || event.is(Span::copy) || event.is(Span::fill) || event.is(Span::graph_launch) ||
               event.is(Span::native_work) || (event.is(Span::hint) && event.position != 0);
    }
    static std::string_view category(const RecordedEvent& event) {
        return event.phase == Phase::mark ? isthmus::name(static_cast<Mark>(event.what))
                                          : isthmus::name(static_cast<Span>(event.what));
    }
    // "a wait for brighten", "pinned memory"
    static std::string label(const RecordedEvent& event) {
        std::string text(event.name.view());
        if (event.is(Span::wait)) return "wait for " + text;
        if (event.is(Span::allocate) || event.is(Span::release)) {
            return std::string(category(event)) + " " + text + " memory";
        }
        if (event.phase == Phase::mark) return std::string(category(event)) + ": " + text;
        return text;
    }
    // Scopes may overlap on a thread, and end on another: they have tracks of their own, found by their address.
    static std::string scope_id(const RecordedEvent& event) {
        return event.is(Span::native_scope) ? "s" + std::to_string(event.stream) : hexadecimal(event.address);
    }

    void begin(const Entry& entry) {
        const RecordedEvent& event = *entry.event;
        const std::string call = event.is(Span::wait) ? inside(entry.thread) : std::string();
        {
            Fields fields(next(), is_scope(event) ? "b" : "B", host, entry.thread);
            fields.time("ts", since_begin(event.ns)).text("cat", category(event)).text("name", label(event));
            if (is_scope(event)) fields.text("id", scope_id(event));
            arguments(fields, event, call);
        }
        if (event.is(Span::wait)) arrive(entry);
        if (!event.is(Span::wait)) opening_[entry.thread] = event.is(Span::host_view) ? &event : nullptr;
        open_[entry.thread].push_back(&event);
    }

    void end(const Entry& entry) {
        const RecordedEvent& event = *entry.event;
        {
            Fields fields(next(), is_scope(event) ? "e" : "E", host, entry.thread);
            fields.time("ts", since_begin(event.ns)).text("cat", category(event)).text("name", label(event));
            if (is_scope(event)) fields.text("id", scope_id(event));
            arguments(fields, event);
        }
        if (!event.is(Span::wait)) opening_[entry.thread] = nullptr;
        if (event.code == 0) count_memory(entry);
        std::vector<const RecordedEvent*>& open = open_[entry.thread];
        const auto begun = std::find_if(open.rbegin(), open.rend(), [&](const RecordedEvent* one) {
            return one->what == event.what && one->address == event.address;
        });
        if (begun == open.rend()) return;
        if (gives_work(event) && event.code == 0 && event.stream != 0) give(entry, (*begun)->ns);
        open.erase(std::next(begun).base());
    }

    void mark(const Entry& entry) {
        const RecordedEvent& event = *entry.event;
        {
            Fields fields(next(), "i", host, entry.thread);
            fields.time("ts", since_begin(event.ns)).text("cat", category(event)).text("name", label(event));
            fields.text("s", "t");
            arguments(fields, event);
        }
        if (event.is(Mark::upload)) count("copied up", event.ns, uploaded_ += event.bytes);
        if (event.is(Mark::download)) count("copied down", event.ns, downloaded_ += event.bytes);
    }

    // On the stream's track: where the operation was given to it. When it runs is not known here.
    void give(const Entry& entry, std::uint64_t begun_ns) {
        const RecordedEvent& event = *entry.event;
        std::vector<Given>& given = given_[event.stream];
        const std::uint64_t from = given.empty() ? begun_ns : std::max(begun_ns, given.back().ends_ns);
        const std::uint64_t until = std::max(from, event.ns);
        given.push_back({event.position, ++flows_, until});
        {
            // Behind the call, so that the events stay in the order of their times.
            Fields fields(next(), "X", streams, event.stream);
            fields.time("ts", since_begin(event.ns)).time("dur", 0);
            fields.text("cat", category(event)).text("name", label(event));
            Fields arguments(fields.raw("args"));
            arguments.number("thread", entry.thread).time("call_us", until - from);
            if (event.position != 0) arguments.number("position", event.position);
            if (event.bytes != 0) arguments.number("bytes", event.bytes);
        }
        Fields fields(next(), "s", streams, event.stream);
        fields.time("ts", since_begin(event.ns)).text("cat", "order").text("name", "waited for").number("id", flows_);
    }
    void arrive(const Entry& entry) {
        const RecordedEvent& event = *entry.event;
        const std::vector<Given>& given = given_[event.stream];
        const auto last = std::find_if(given.rbegin(), given.rend(),
                                       [&](const Given& one) { return one.position <= event.position; });
        if (last == given.rend()) return;
        Fields fields(next(), "f", host, entry.thread);
        fields.time("ts", since_begin(event.ns)).text("cat", "order").text("name", "waited for");
        fields.number("id", last->flow).text("bp", "e");
    }

    void count(std::string_view what, std::uint64_t ns, std::uint64_t bytes) {
        Fields fields(next(), "C", host, 0);
        fields.time("ts", since_begin(ns)).text("name", what);
        Fields(fields.raw("args")).number("bytes", bytes);
    }
    void count_memory(const Entry& entry) {
        const RecordedEvent& event = *entry.event;
        if (!event.is(Span::allocate) && !event.is(Span::release)) return;
        std::uint64_t& bytes = live_[event.kind];
        if (event.is(Span::allocate)) bytes += event.bytes;
        if (event.is(Span::release)) bytes -= std::min(bytes, event.bytes);
        count(std::string(isthmus::name(event.kind)) + " memory in use", event.ns, bytes);
    }

    const std::vector<Entry> all_;
    const std::uint64_t dropped_;
    std::string out_;
    bool separate_ = false;
    std::uint64_t first_ns_ = 0;
    std::uint64_t flows_ = 0;
    std::uint64_t uploaded_ = 0;
    std::uint64_t downloaded_ = 0;
    std::map<std::uint64_t, std::vector<const RecordedEvent*>> open_;
    std::map<std::uint64_t, const RecordedEvent*> opening_;  // the view whose call goes on; nullptr: none
    std::map<std::uint64_t, std::vector<Given>> given_;
    std::map<MemoryKind, std::uint64_t> live_;
};

}  // namespace

std::string trace_json(const std::vector<ThreadEvents>& threads, std::uint64_t dropped) {
    return Writer(in_order(threads), dropped).write();
}

}  // namespace isthmus::trace
