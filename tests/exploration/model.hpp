// SPDX-License-Identifier: Apache-2.0
// The reference model: what every call has to answer, and what every kernel has to read. It knows no stream position,
// fence or driver: an operation is a node, and what comes before it is a set of nodes.
//
// The order that the public headers promise:
//   * a stream has a past: what ends before its next operation begins. An operation joins the past of its stream;
//   * an event keeps the past that its stream had when it was recorded; wait(event) adds that to the waiter's past;
//   * the host has a past: what it waited for, or was told has ended. What is issued later comes after it;
//   * stream-ordered memory exists before any use of it;
//   * a copy to or from memory of another device comes after the uses of that memory on its device. Later work of
//     that device's streams that used it for work of their own device comes after the copy. Neither holds for pageable
//     memory, which has been read or written at return, nor where the calling thread copies;
//   * the runtime orders more than it promises where it needs to: memory of a pool that several streams used is freed
//     on one of them, which waits for the others; a copy between devices may run on another stream, and streams that
//     used either buffer wait for that one; a staged buffer is uploaded on one stream, and other streams that use it
//     wait for the upload. Which stream waits is not promised. A step that races, by the rules above, with such an
//     operation and is answered ok comes after it; whether the host saw it end is not known;
//   * a launch of a graph comes after its stream's past and after the instance's last launch; inside it, operations
//     are ordered as the pasts of the captured streams were. A stream that waits for an event of a capture joins it;
//     its earlier work stays outside. What joined streams record must be in the past of the origin stream at the end.
#pragma once

#include "kernels.hpp"
#include "steps.hpp"

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace exploration {

inline constexpr std::size_t max_nodes = 512;
using Past = std::bitset<max_nodes>;
using Values = std::array<std::int32_t, elements>;

// What the model needs to know of the machine: which kinds of memory each device allocates, and their properties.
struct KindFacts {
    bool there = false;
    bool viewable = false;  // a host view can be opened
    bool turns = false;     // one side, and one stream, may use it at a time (89=0)
    bool whole = false;     // its halves migrate together
    bool shares = false;    // host and device may use it at the same time
    bool moves = false;     // its pages are copied to the device before a use, and that copy counts as a use
    bool pooled = false;    // freed in stream order
    bool plain = false;     // used in place and copied by the driver, without the host
    bool on_host = false;   // host memory that is used in place
    bool pageable = false;  // and pageable: the calling thread copies between it and other host memory
};
struct MachineFacts {
    std::size_t gpus = 1;
    bool order_checked = false;  // RuntimeOptions::order_check = refuse
    bool forks = false;          // other streams may join a capture
    std::array<std::array<KindFacts, kind_count>, 2> kinds;
};

struct Expectation {
    bool skip = false;        // an object of the step does not exist, or the step would exceed the model's limits
    bool race = false;        // it uses a buffer that an unordered earlier operation uses
    Past unordered;           // those earlier operations; none where both are in one capture
    std::uint64_t codes = 1;  // one bit per allowed Code
    bool may(isthmus::Code code) const { return (codes >> static_cast<int>(code) & 1) != 0; }
};

struct Answer {
    isthmus::Code code = isthmus::Code::ok;
    std::string text;            // of the error
    bool flag = false;           // result of finished()
    std::optional<Values> read;  // contents of the host view
};

class Model {
public:
    explicit Model(const MachineFacts& machine);
    ~Model();  // breaks the reference cycle between captures and their streams
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    Expectation expect(const Step& step) const;
    // Judges the answer. Empty: lawful; otherwise what is wrong. `ran`: the kernel runs recorded so far.
    std::string judge(const Step& step, const Expectation& expected, const Answer& answer,
                      const std::vector<Run>& ran) const;
    void apply(const Step& step, const Expectation& expected, const Answer& answer);

    std::uint32_t next_mark() const { return next_mark_; }  // the mark for the next step's kernel
    // A wait_stream() that orders the uses of `step` after those that race with it.
    std::optional<Step> mend(const Step& step) const;
    // After the last synchronization: whether every kernel ran once per launch, after everything before it, and read
    // the right values.
    std::string judge_runs(const std::vector<Run>& ran) const;
    // The contents of a buffer; nothing: never written, or no such buffer.
    std::optional<Values> contents(std::size_t buffer) const;
    bool has_buffer(std::size_t slot) const { return buffers_[slot] != nullptr; }
    bool has_stream(std::size_t slot) const { return streams_[slot] != nullptr; }
    std::size_t stream_device(std::size_t slot) const;
    std::size_t buffer_device(std::size_t slot) const;
    bool has_view(std::size_t slot) const { return views_[slot].has_value(); }
    bool has_capture(std::size_t slot) const { return captures_[slot] != nullptr; }

private:
    using Node = std::size_t;
    struct Stream;
    // What an operation touches of a buffer: one bit per half.
    struct Access {
        Node node;
        bool writes;
        unsigned halves;
        std::shared_ptr<Stream> stream;
        bool between;  // a copy between devices, which another stream may have carried out
    };
    // An open host view. Readers may overlap, and so may concurrent views.
    struct Opened {
        ViewUse use;
        unsigned halves;
    };
    struct Buffer {
        std::size_t device;
        KindFacts facts;
        Values values{};
        bool known = false;
        std::vector<Access> accesses;
        std::vector<Opened> open;
        std::shared_ptr<Stream> turn_of;  // exclusive memory: the stream that used it last, with no view since
        // An operation on this memory was refused: a caller that does not wait may be told to wait for the stream's
        // next operation, and the order checker may still count the refused operation's claim.
        bool refused_since = false;
        Past made;                      // stream-ordered memory: its allocation, and what precedes it
        std::shared_ptr<Stream> maker;  // the stream of that allocation
        bool let_go = false;            // released by the sequence: it ends now, or with the last graph that holds it
    };
    struct Use {
        std::shared_ptr<Buffer> buffer;
        bool writes;
        unsigned halves = both_halves;
    };
    // What a step adds to a stream.
    struct Work {
        Act act;
        std::int32_t value;
        std::uint32_t mark;
        std::vector<Use> uses;        // in the order of the step's arguments
        unsigned part = both_halves;  // bump_half: which half
    };
    struct Recorded {
        Work work;
        Past after;  // indices of earlier operations of this capture
    };
    static Past shifted(const Past& indices, Node first) { return indices << first; }
    struct Capture {
        std::shared_ptr<Stream> origin;
        std::vector<Recorded> recorded;
        std::vector<std::shared_ptr<Stream>> members;  // participating streams, the origin first
        bool open = true;
    };
    struct Stream {
        std::size_t device;
        Past past;
        std::shared_ptr<Capture> capture;
        Past recorded_past;          // as `past`, for the capture's own operations
        bool works_unasked = false;  // the runtime may release memory, to the host or to a pool, in this stream's order
        // Its events may come after such a release, on this stream or on one that it waited for, or after a wait that
        // the runtime added: they may be unfinished although everything that the model knows has ended.
        bool behind_unasked = false;
    };
    struct Event {
        std::size_t device;
        Past past;
        std::shared_ptr<Capture> capture;  // the capture in which it was recorded, the only one that may use it
        Past recorded_past;
        bool works_unasked;  // of the stream when it was recorded
        bool behind_unasked;
    };
    struct Graph {
        unsigned devices;  // participating devices, one bit each
        std::vector<Recorded> recorded;
        int instances = 0;  // number ever made: runs of different instances have the same marks
    };
    struct Instance {
        std::shared_ptr<Graph> graph;
        Past launched;
    };
    struct View {
        std::shared_ptr<Buffer> buffer;
        Opened opened;
        unsigned halves;  // that the view covers
    };
    struct Happened {
        std::size_t device;
        Past before;
        bool kernel;
        std::uint32_t mark;
        std::size_t run;  // which run of its mark, counted in order
        std::optional<std::uint32_t> digest;
        std::shared_ptr<Graph> graph;
        bool early;  // the host may have carried it out as soon as its own buffers were free
    };

    // --- what a step names
    std::optional<Work> work_of(const Step& step) const;
    bool captured(std::size_t stream) const { return streams_[stream]->capture != nullptr; }
    bool any_capture() const;
    bool held_by_graph(const Buffer& buffer) const;
    // --- order
    Past past_of(const Stream& stream, const Work& work) const;
    Past past_of_launch(const Stream& stream, const Instance& instance) const;
    bool may_wait(const Stream& stream, const Event& event) const;
    static void wait(const std::shared_ptr<Stream>& stream, const Event& event);
    Event event_of(const Stream& stream) const;
    Past race(const Past& past, const Work& work) const;
    bool recorded_race(const Stream& stream, const Work& work) const;
    Past conflicts(const Buffer& buffer, bool writes, unsigned halves = both_halves) const;
    std::string not_over(const Past& claimed, const std::vector<Run>& ran) const;
    Expectation with_race(Expectation expected, const Past& unordered, bool recorded) const;
    Past closure(const Past& nodes) const;
    Past with_before(const Past& nodes) const;
    Past wholly(const Past& nodes) const;
    static std::vector<std::shared_ptr<Stream>> streams_of(const Buffer& buffer);
    Past ordered_unasked() const;
    static void may_wait_unasked(const Buffer& buffer);
    void learn_from_race(const std::shared_ptr<Stream>& stream, const Past& unordered);
    Node happen(const std::shared_ptr<Stream>& stream, const Work& work, const Past& before,
                const std::shared_ptr<Graph>& graph = nullptr);
    void change(const Work& work, std::optional<std::uint32_t>& digest);
    // --- expectations
    Expectation expect_stream(const Step& step) const;
    Expectation expect_event(const Step& step) const;
    Expectation expect_memory(const Step& step) const;
    Expectation expect_view(const Step& step) const;
    Expectation expect_capture(const Step& step) const;
    Expectation expect_graph_launch(const Step& step) const;
    Expectation expect_work(const Step& step) const;
    bool refused_by_view(const Use& use) const;
    static Opened opened_by(const Step& step, const Buffer& buffer);
    // --- effects
    void apply_stream(const Step& step, const Answer& answer);
    void apply_memory(const Step& step);
    void apply_view(const Step& step);
    void apply_capture(const Step& step, const Answer& answer);
    static bool copied_by_host(const Work& work);
    void apply_work(const Step& step);
    void apply_graph_launch(const Step& step);
    void close(const std::shared_ptr<Capture>& capture);
    bool unjoined(const Capture& capture) const;

    MachineFacts machine_;
    std::vector<Happened> nodes_;
    std::map<std::uint32_t, std::size_t> runs_of_;  // by mark, of kernels that have to run
    std::uint32_t next_mark_ = 1;
    Past host_;
    std::array<std::shared_ptr<Stream>, max_streams> streams_;
    std::array<std::optional<Event>, max_events> events_;
    std::array<std::shared_ptr<Buffer>, max_buffers> buffers_;
    std::vector<std::shared_ptr<Buffer>> all_buffers_;  // including released ones
    Past between_;                                      // copies between devices, and everything that may precede them
    std::array<std::optional<View>, max_views> views_;
    std::array<std::shared_ptr<Capture>, max_captures> captures_;
    std::array<std::shared_ptr<Graph>, max_graphs> graphs_;
    std::array<std::shared_ptr<Instance>, max_instances> instances_;
};

}  // namespace exploration
