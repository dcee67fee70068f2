// SPDX-License-Identifier: Apache-2.0
// The reference model: what every call has to answer, and what every kernel has to read. It knows no stream position,
// fence or driver: an operation is a node, and what comes before it is a set of nodes.
//
// The whole of order, as the public headers promise it:
//   * a stream has a past: what ends before its next operation begins. An operation joins the past of its stream;
//   * an event keeps the past that its stream had when it was recorded; wait(event) adds that to the waiter's past;
//   * the host has a past: what it waited for, or was told to be over. What is issued later comes after it;
//   * memory that a stream allocated in its order is there before anybody's use of it;
//   * a copy that meets memory of another device comes behind what uses it there, and what that device's streams, as
//     far as they used it for work of their own device, are given later comes behind the copy; not so where that memory
//     is pageable, which has been read or written at return, nor where the calling thread copies;
//   * the runtime orders more than it promises, where it needs that itself: memory of a pool that several streams used
//     is freed on one of them, which waits for the others; a copy between devices may be carried by another stream, and
//     streams that used either buffer wait for that one; a staged buffer is uploaded on one stream, and other streams
//     that use it wait for the upload. Which stream waits is not promised. A step that races by the rules above with
//     such an operation and is answered ok comes behind it; whether the host saw it end is not known;
//   * a launch of a graph comes after its stream's past and after the instance's last launch; inside it, operations
//     are ordered as the pasts of the captured streams were. A stream that waits for an event of a capture joins it;
//     what it was given before stays outside, and what joined streams record has to be in the past of the first one
//     at the end.
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

// What the model has to be told of the machine: which kinds of memory a device hands out, and how it uses them.
struct KindFacts {
    bool there = false;
    bool viewable = false;  // the host may look at it
    bool turns = false;     // it belongs to one side, and one stream, at a time (89=0)
    bool whole = false;     // its parts go from side to side together
    bool shares = false;    // the host may use it while the device does
    bool moves = false;     // its pages are brought to the device before a use, which counts as one of their own
    bool pooled = false;    // given back in the order of a stream
    bool plain = false;     // used in place, and copied by the driver: the host takes no part
    bool on_host = false;   // host memory that is used in place
    bool pageable = false;  // and that is not locked: the calling thread copies between it and other host memory
};
struct MachineFacts {
    std::size_t gpus = 1;
    bool order_checked = false;  // RuntimeOptions::order_check = refuse
    bool forks = false;          // other streams may join a capture
    std::array<std::array<KindFacts, kind_count>, 2> kinds;
};

struct Expectation {
    bool skip = false;        // an object that the step names is not there, or it would leave the model's bounds
    bool race = false;        // it uses a buffer that an earlier operation uses, and nothing orders the two
    Past unordered;           // those earlier ones; none where both are recorded in one capture
    std::uint64_t codes = 1;  // one bit per Code that may be answered
    bool may(isthmus::Code code) const { return (codes >> static_cast<int>(code) & 1) != 0; }
};

struct Answer {
    isthmus::Code code = isthmus::Code::ok;
    std::string text;            // of the error
    bool flag = false;           // finished()
    std::optional<Values> read;  // what a host view showed
};

class Model {
public:
    explicit Model(const MachineFacts& machine);
    ~Model();  // captures and their streams know each other
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    Expectation expect(const Step& step) const;
    // Is the answer lawful? Nothing: yes; otherwise what is wrong. `ran`: what the kernels say so far.
    std::string judge(const Step& step, const Expectation& expected, const Answer& answer,
                      const std::vector<Run>& ran) const;
    void apply(const Step& step, const Expectation& expected, const Answer& answer);

    std::uint32_t next_mark() const { return next_mark_; }  // what a kernel of the next step is to be launched with
    // A wait_stream() that would order what `step` uses behind what races with it.
    std::optional<Step> mend(const Step& step) const;
    // After the last synchronisation: did every kernel run once per launch, after all that comes before it, and read
    // what it had to?
    std::string judge_runs(const std::vector<Run>& ran) const;
    // What a buffer holds; nothing: it was never written, or there is no such buffer.
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
    // Of a buffer, what an operation touches: one bit for each half.
    struct Access {
        Node node;
        bool writes;
        unsigned halves;
        std::shared_ptr<Stream> stream;
        bool between;  // by a copy between devices, which another stream may have carried
    };
    // A host view that is open. Readers go together, and concurrent views do.
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
        std::shared_ptr<Stream> turn_of;  // memory that goes by turns: who had it last, and no view since
        // An operation that would have used it was refused: whoever asks without waiting may be told to wait for the
        // next one of that stream, and the order checker may still count what was claimed for it.
        bool refused_since = false;
        Past made;                      // memory in the order of a stream: its allocation, and what that came after
        std::shared_ptr<Stream> maker;  // … and that stream
        bool let_go = false;            // by the sequence: it ends now, or with the last graph that holds it
    };
    struct Use {
        std::shared_ptr<Buffer> buffer;
        bool writes;
        unsigned halves = both_halves;
    };
    // What a step gives to a stream.
    struct Work {
        Act act;
        std::int32_t value;
        std::uint32_t mark;
        std::vector<Use> uses;        // in the order of the step's arguments
        unsigned part = both_halves;  // bump_half: the half
    };
    struct Recorded {
        Work work;
        Past after;  // indices of earlier ones of this capture
    };
    static Past shifted(const Past& indices, Node first) { return indices << first; }
    struct Capture {
        std::shared_ptr<Stream> origin;
        std::vector<Recorded> recorded;
        std::vector<std::shared_ptr<Stream>> members;  // that take part, the origin first
        bool open = true;
    };
    struct Stream {
        std::size_t device;
        Past past;
        std::shared_ptr<Capture> capture;
        Past recorded_past;          // as `past`, of the capture's own operations
        bool works_unasked = false;  // it may give memory back, to the host or to a pool, in its own order
        // An event recorded on it may stand behind such a release, its own or of a stream that it waited for, or behind
        // a wait that the runtime gave it: such an event may be unfinished although all that the model knows of is
        // over.
        bool behind_unasked = false;
    };
    struct Event {
        std::size_t device;
        Past past;
        std::shared_ptr<Capture> capture;  // it was recorded in: then it is of that capture alone
        Past recorded_past;
        bool works_unasked;  // as of the stream when it was recorded
        bool behind_unasked;
    };
    struct Graph {
        unsigned devices;  // that take part, one bit for each
        std::vector<Recorded> recorded;
        int instances = 0;  // ever made: marks do not tell their runs apart
    };
    struct Instance {
        std::shared_ptr<Graph> graph;
        Past launched;
    };
    struct View {
        std::shared_ptr<Buffer> buffer;
        Opened opened;
        unsigned halves;  // that it shows
    };
    struct Happened {
        std::size_t device;
        Past before;
        bool kernel;
        std::uint32_t mark;
        std::size_t run;  // the how manieth run of its mark
        std::optional<std::uint32_t> digest;
        std::shared_ptr<Graph> graph;
        bool early;  // the host may have done it as soon as its own buffers were free
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
    std::map<std::uint32_t, std::size_t> runs_of_;  // by mark, of those that have to run
    std::uint32_t next_mark_ = 1;
    Past host_;
    std::array<std::shared_ptr<Stream>, max_streams> streams_;
    std::array<std::optional<Event>, max_events> events_;
    std::array<std::shared_ptr<Buffer>, max_buffers> buffers_;
    std::vector<std::shared_ptr<Buffer>> all_buffers_;  // those that were let go as well
    Past between_;                                      // copies between devices, and all that may come before them
    std::array<std::optional<View>, max_views> views_;
    std::array<std::shared_ptr<Capture>, max_captures> captures_;
    std::array<std::shared_ptr<Graph>, max_graphs> graphs_;
    std::array<std::shared_ptr<Instance>, max_instances> instances_;
};

}  // namespace exploration
