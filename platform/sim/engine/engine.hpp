// SPDX-License-Identifier: Apache-2.0
// The asynchronous part of the simulated driver: streams, events and graphs over operations with dependency counts.
// Every function may be called from any thread and returns a code (0, or a CUresult value). Only synchronisations
// block. Call them, progress() and end_capture() without a lock that an operation's body, or the destructor of a
// captured object, takes. Everything else may be called under such a lock.
#pragma once

#include "graph.hpp"
#include "operation.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace isthmus::sim::engine {

// threads: each ready operation gets a thread at once, so operations that wait for each other all proceed.
// seeded: no threads; operations run only inside progress() and the synchronisations, on the calling thread, in an
// order drawn from the seed. An operation that spins for the host, or for another operation, then never ends.
enum class Mode : std::uint8_t { threads, seeded };

struct Options {
    Mode mode = Mode::threads;
    std::uint64_t seed = 1;
    int devices = 1;
    bool track_observation = false;          // for has_unobserved_work(): machines with attribute 89 = 0
    std::uint64_t grace_ns = 1'000'000'000;  // how long waits give running work after a sticky error
    std::uint64_t idle_thread_ns = 2'000'000'000;
};

struct StreamOptions {
    bool blocking = true;              // ordered with the legacy stream of its context
    int priority = 0;                  // a smaller number is more urgent
    StreamId legacy = StreamId::none;  // of its context; none: of the device's first
};

class Core;

// Destroying the engine drops operations that have not begun, gives running ones the grace time, and then leaves them.
// `hooks` must outlive every operation; nullptr: none.
class Engine {
public:
    Engine(const Options& options, Hooks* hooks);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // --- streams
    StreamId legacy_stream(int device) const;   // of the device's first context: cannot be destroyed
    StreamId create_legacy_stream(int device);  // of one more context
    StreamId create_stream(int device, StreamOptions options);
    void set_priority(StreamId stream, int priority);  // of operations that are submitted from now on
    int destroy_stream(StreamId stream);               // returns at once: its work continues, its id is stale
    bool stream_exists(StreamId stream) const;
    int stream_device(StreamId stream) const;  // -1: stale
    // Appends to the stream, or to the graph into which the stream is being captured. `work` receives a reference to
    // wait for (none while capturing). Refuses with the device's sticky code.
    int submit(StreamId stream, Operation operation, WorkRef* work = nullptr);
    int query(StreamId stream);  // 0 or 600
    int synchronize(StreamId stream);
    int synchronize(const WorkRef& work);      // waits for one operation; none is complete
    int synchronize_device(int device);        // waits for every stream of the device, also destroyed ones
    int synchronize_context(StreamId legacy);  // as synchronize_device, for the streams of one context
    // A wait ends before another thread has destroyed the captured objects of the awaited work. For counts of what is
    // left: returns once those of all ended work are destroyed, or after 10 s. Not called from such a destructor.
    void await_destruction();

    // --- events
    EventId create_event(bool timing);
    int destroy_event(EventId event);
    int record(EventId event, StreamId stream);
    // Records an event after all work submitted to these streams, a context's legacy stream and its destroyed ones;
    // the record itself is in no stream's order. 900 where one of them is being captured; that capture is lost.
    int record_all(EventId event, const std::vector<StreamId>& streams, StreamId legacy);
    int wait(StreamId stream, EventId event);  // for the current record; may cross devices
    int query_event(EventId event);            // 0 without a record. In a capture: 907, or 1 once the capture has ended
    int synchronize_event(EventId event);
    int elapsed_ns(EventId start, EventId end, std::int64_t& nanoseconds);  // 400 without timing or record, 600 early
    std::uint64_t event_capture(EventId event) const;                       // the capture of its last record; 0: none

    // --- capture (the API above decides which calls are valid; these functions keep the state)
    // `into` may have nodes; the first operations follow `dependencies`.
    int begin_capture(StreamId stream, CaptureMode mode, Graph into = {}, std::vector<NodeIndex> dependencies = {});
    // On failure the capture is gone too, except with 903, which only invalidates it. With 904 `unjoined` receives the
    // streams that were not joined.
    int end_capture(StreamId stream, Graph& graph, std::vector<StreamId>* unjoined = nullptr);
    CaptureInfo capture_info(StreamId stream) const;
    int set_capture_dependencies(StreamId stream, std::vector<NodeIndex> nodes);
    int invalidate_capture(StreamId stream);
    bool invalidate_captures(StreamId legacy);  // true: the context had one (whole-context synchronisation)
    // For a call that may be unsafe in a capture: 0, or 900 after invalidating every capture that forbids it to this
    // thread (rules of cuThreadExchangeStreamCaptureMode).
    int unsafe_call();
    static CaptureMode exchange_thread_capture_mode(CaptureMode mode);
    bool would_join_capture(StreamId legacy) const;  // a blocking stream of its context is capturing: 906
    template <class Visit>
    int with_capture_graph(StreamId stream, Visit visit);  // calls visit(Graph&) with the engine locked

    // --- graphs
    // Submits every node, behind `first`; 900 invalidates a capture.
    int launch(StreamId stream, GraphInstance& instance, Operation first = {});

    // --- errors
    int device_code(int device) const;  // the sticky code; 0: none
    void latch(int device, int code);   // a planned fault or a lost device

    // --- progress, time, observation
    void progress();                    // seeded: runs some ready work; threads: nothing
    bool set_seed(std::uint64_t seed);  // seeded: draws from this seed from now on; threads: false
    std::uint64_t now_ns() const;       // seeded: virtual
    // Of the work that this thread runs: the stream that it was given to. A graph's nodes run in the stream of the
    // launch, not in those that they were captured on. none: no work, or a node of another device than the stream's.
    static StreamId running_stream() noexcept;
    // Of the work that this thread runs: 0 at its first call, then what the body left there. Bodies that answer
    // code::later are called again, in seeded mode.
    static std::uint64_t& reached() noexcept;
    static bool in_host_function() noexcept;  // this thread runs user code for the engine: the call answers 800
    // Whether there is GPU work of the device (or of the stream, also if destroyed) whose end the host has not observed
    // by a synchronisation or a successful query. A host function observes the work before it.
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
