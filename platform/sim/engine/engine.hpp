// SPDX-License-Identifier: Apache-2.0
// The asynchronous half of the simulated driver: streams, events and graphs over dependency-counted operations.
// Every function may be called from any thread and returns a code (0, or a CUresult value). Only synchronisations
// block; call them, progress() and end_capture() without holding a lock that an operation's body, or the destructor
// of what it captured, takes. Everything else may be called under such a lock.
#pragma once

#include "graph.hpp"
#include "operation.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace isthmus::sim::engine {

// threads: each ready operation has a thread at once, so operations that wait for each other both go on.
// seeded: no threads; operations run only inside progress() and the synchronisations, on the calling thread, in an
// order drawn from the seed. An operation that spins for the host, or for another operation, then never ends.
enum class Mode : std::uint8_t { threads, seeded };

struct Options {
    Mode mode = Mode::threads;
    std::uint64_t seed = 1;
    int devices = 1;
    bool track_observation = false;          // for has_unobserved_work(): machines with attribute 89 = 0
    std::uint64_t grace_ns = 1'000'000'000;  // after a sticky error, how long waits give what still runs
    std::uint64_t idle_thread_ns = 2'000'000'000;
};

struct StreamOptions {
    bool blocking = true;  // ordered with the legacy stream of its device
    int priority = 0;      // smaller is more urgent
};

class Core;

// Dropping the engine drops what has not begun, gives what runs the grace time, then leaves it to end by itself.
// `hooks` outlive every operation; nullptr: none.
class Engine {
public:
    Engine(const Options& options, Hooks* hooks);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // --- streams
    StreamId legacy_stream(int device) const;  // exists from the start, cannot be destroyed
    StreamId create_stream(int device, StreamOptions options);
    int destroy_stream(StreamId stream);  // at once: its work goes on, its identity is stale
    bool stream_exists(StreamId stream) const;
    int stream_device(StreamId stream) const;  // -1: stale
    // Appends to the stream, or to the graph that the stream is being captured into. `work` receives a reference
    // to wait for (none while capturing). Refuses with the device's sticky code.
    int submit(StreamId stream, Operation operation, WorkRef* work = nullptr);
    int query(StreamId stream);  // 0 or 600
    int synchronize(StreamId stream);
    int synchronize(const WorkRef& work);  // exactly one operation; none is complete
    int synchronize_device(int device);    // every stream of it, destroyed ones too

    // --- events
    EventId create_event(bool timing);
    int destroy_event(EventId event);
    int record(EventId event, StreamId stream);
    // After all that was put into these streams, the device's legacy stream and its destroyed ones; in no stream's
    // order itself. 900 where one of them is being captured, and that capture is lost.
    int record_all(EventId event, const std::vector<StreamId>& streams, int device);
    int wait(StreamId stream, EventId event);  // for the record current now; may cross devices
    int query_event(EventId event);            // never recorded: complete. In a capture: 907, or 1 once that has ended
    int synchronize_event(EventId event);
    int elapsed_ns(EventId start, EventId end, std::int64_t& nanoseconds);  // 400 without timing or record, 600 early
    std::uint64_t event_capture(EventId event) const;  // the capture it was last recorded in; 0: none

    // --- capture (the calling API room decides what is lawful; these keep the state)
    // Into a graph that may have nodes; the first operations follow `dependencies`.
    int begin_capture(StreamId stream, CaptureMode mode, Graph into = {}, std::vector<NodeIndex> dependencies = {});
    // On failure the capture is gone, too, except with 903, which loses it. `unjoined` receives the streams behind a
    // 904.
    int end_capture(StreamId stream, Graph& graph, std::vector<StreamId>* unjoined = nullptr);
    CaptureInfo capture_info(StreamId stream) const;
    int set_capture_dependencies(StreamId stream, std::vector<NodeIndex> nodes);
    int invalidate_capture(StreamId stream);
    bool invalidate_captures(int device);  // true: there was one (whole-context synchronisation)
    // A call that may be unsafe in a capture: 0, or 900 after invalidating every capture that forbids it to this
    // thread (cuThreadExchangeStreamCaptureMode's rules).
    int unsafe_call();
    static CaptureMode exchange_thread_capture_mode(CaptureMode mode);
    bool legacy_stream_would_join_capture(int device) const;  // a blocking stream of it is capturing: 906
    template <class Visit>
    int with_capture_graph(StreamId stream, Visit visit);  // visit(Graph&), engine locked

    // --- graphs
    int launch(StreamId stream, GraphInstance& instance);  // submits every node; 900 loses a capture

    // --- errors
    int device_code(int device) const;  // the sticky code; 0: none
    void latch(int device, int code);   // a planned fault or a lost device

    // --- progress, time, observation
    void progress();                          // seeded: runs some ready work; threads: nothing
    bool set_seed(std::uint64_t seed);        // seeded: draws from it from here on; threads: false
    std::uint64_t now_ns() const;             // seeded: virtual
    static bool in_host_function() noexcept;  // this thread runs user code for the engine: answer 800
    // Whether the host has not yet observed, by a synchronisation or a successful query, the end of some GPU work of
    // the device (stream: of that stream, also if destroyed). A host function observes what it follows.
    bool has_unobserved_work(int device) const;
    bool has_unobserved_work(StreamId stream) const;

private:
    Graph* lock_capture_graph(StreamId stream, int& code);
    void unlock_capture_graph();
    std::shared_ptr<Core> core_;
};

template <class Visit>
int Engine::with_capture_graph(StreamId stream, Visit visit) {
    int code = 0;
    Graph* graph = lock_capture_graph(stream, code);
    if (!graph) return code;
    visit(*graph);
    unlock_capture_graph();
    return code::ok;
}

}  // namespace isthmus::sim::engine
