// SPDX-License-Identifier: Apache-2.0
// The engine's state behind one lock, and the scheduling of work; private to this directory.
#pragma once

#include "engine.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace isthmus::sim::engine {

// A position in a stream's GPU work: all of it up to `sequence` precedes the holder of the mark.
struct Mark {
    StreamId stream = StreamId::none;
    int device = 0;
    std::uint64_t sequence = 0;
};

struct Work {
    Operation operation;
    StreamId stream = StreamId::none;
    int priority = 0;
    std::uint32_t pending = 1;  // unfinished dependencies, plus one until seal()
    bool done = false;
    int code = 0;
    std::uint64_t ended_ns = 0;
    std::uint64_t reached = 0;  // what a body that is called again keeps
    std::vector<WorkRef> successors;
    std::optional<Graph> launched;  // keeps the captured objects of a graph until the end of its launch
    std::vector<Mark> marks;        // only with Options::track_observation
};

struct Capture {
    std::uint64_t id = 0;
    CaptureMode mode = CaptureMode::global;
    std::thread::id owner;
    StreamId origin = StreamId::none;
    bool invalidated = false;
    bool ended = false;
    Graph graph;
    std::vector<NodeIndex> excused;  // removed from a stream's dependencies by the program: need not be joined
    // Destroyed streams, with their dependencies at that time.
    std::vector<std::pair<StreamId, std::vector<NodeIndex>>> left;
};

// A stream is its last operation (the tail); while captured, it is the nodes that stand for the tail.
struct Stream {
    StreamId id = StreamId::none;
    int device = 0;
    StreamOptions options;
    WorkRef tail;
    int failure = 0;  // the first non-sticky code, for the next synchronisation
    std::shared_ptr<Capture> capture;
    std::vector<NodeIndex> capture_tail;
};

// An event refers to the operation that recorded it, or to a point in a capture.
struct Event {
    bool timing = true;
    WorkRef record;
    std::shared_ptr<Capture> capture;
    std::vector<NodeIndex> capture_nodes;
};

// The last operation of a destroyed stream, or of a graph with nodes on another device.
struct Orphan {
    WorkRef tail;
    bool blocking = true;
    StreamId legacy = StreamId::none;
};

struct Device {
    int code = 0;
    std::uint64_t grace_until_ns = 0;
    StreamId legacy = StreamId::none;  // of its first context
    std::vector<Orphan> orphans;
};

class Core : public std::enable_shared_from_this<Core> {
public:
    Core(const Options& options, Hooks* hooks);

    // Holds the lock. Releasing it wakes or starts the executors that new ready work needs.
    class Lock {
    public:
        explicit Lock(Core& core);
        ~Lock();
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;
        void release();
        void release_and_clear();  // also destroys the captured objects of finished work
        void acquire();
        std::unique_lock<std::mutex>& inner() { return lock_; }

    private:
        Core& core_;
        std::unique_lock<std::mutex> lock_;
    };

    // --- scheduler.cpp: everything below expects the lock to be held
    WorkRef make_work(const Stream& stream, Operation operation);
    void link(const WorkRef& before, const WorkRef& after);      // `after` waits for `before`
    void seal(const WorkRef& work);                              // no more links: ready when no dependency is pending
    void link_entry(const Stream& stream, const WorkRef& work);  // adds the dependencies of stream order and barriers
    WorkRef append(Stream& stream, Operation operation, const WorkRef& also_after = nullptr);
    void complete(const WorkRef& work);
    bool latch(int device, int code);  // true: the device had no sticky code before
    bool lose(int device, int code);   // the same, and tells the hooks before a caller can see the code
    bool is_dropped(const Work& work) const;
    WorkRef take();  // next ready operation, or nullptr
    void run(Lock& lock, const WorkRef& work);
    void call_later(Lock& lock, const WorkRef& work);
    bool step(Lock& lock);  // seeded: runs one operation; false: none can run
    int await(Lock& lock, const WorkRef& work, int device);
    std::uint64_t now_ns() const;

    // --- streams.cpp
    void adopt(Device& device, Orphan orphan);                  // keeps it until it has ended
    int wait_for_all(Lock& lock, int device, StreamId legacy);  // none: of every context
    Stream& add_stream(int device, const StreamOptions& options);

    // --- observation.cpp
    void issue(Work& work, int device);  // `work` is GPU work of its stream
    void merge_marks(const Work& before, Work& after);
    void observe(const Work& work);
    void observe_device(int device, std::uint64_t up_to_sequence);

    // --- executors.cpp
    void run_executor();
    void start_executors(std::size_t count);  // call it without the lock
    void shut_down();

    Stream* find(StreamId id);
    Event* find(EventId id);

    const Options options;
    Hooks* const hooks;
    const pid_t process;

    std::mutex mutex;
    std::condition_variable ended;    // work ended, or a device got a sticky code
    std::condition_variable wake;     // for idle executors
    std::condition_variable delayed;  // for planned delays: a device got a sticky code
    std::condition_variable gone;     // an executor ended

    std::uint64_t next_id = 1;
    std::map<std::uint64_t, Stream> streams;  // ordered: seeded runs link in the same order everywhere
    std::unordered_map<std::uint64_t, Event> events;
    std::vector<Device> devices;
    std::size_t open_captures = 0;  // fast answer for most calls

    std::map<int, std::deque<WorkRef>> ready;  // by priority
    std::size_t ready_count = 0;
    std::size_t unannounced = 0;                              // ready operations not yet announced to an executor
    std::vector<std::pair<std::uint64_t, WorkRef>> sleeping;  // seeded: planned delays by virtual time
    // Operations that ended without running, and graphs whose launch ended. The destructors of their captured objects
    // may take the locks of the API above, so they run without the engine's lock, and only where the caller holds no
    // lock either: on executors, and in waits.
    std::vector<std::shared_ptr<const void>> graveyard;
    std::atomic<std::size_t> burying = 0;  // threads that destroy some, outside the lock
    void bury(Operation operation);
    std::size_t waiters = 0;
    std::size_t running = 0;
    std::size_t fruitless = 0;  // seeded: bodies in a row that want to be called later
    bool stopping = false;

    std::size_t executors = 0;  // alive or starting
    std::size_t starting = 0;
    std::size_t idle = 0;

    std::uint64_t random_state;
    std::uint64_t virtual_ns = 0;
    std::uint64_t next_random();

    std::uint64_t last_sequence = 0;
    std::vector<Mark> unobserved;  // for each stream and device, its last GPU work whose end the host has not observed
};

void leave_capture(Core& core, Stream& stream);
void add_once(std::vector<NodeIndex>& nodes, NodeIndex node);

// Whether this thread runs a host function or a stream callback.
bool& host_function_flag() noexcept;
// The stream whose work this thread runs, for work of that stream's device; none: no work, or a graph's node of
// another device.
StreamId& running_stream() noexcept;
// Of the work that this thread runs: Work::reached.
std::uint64_t*& reached_by_running_work() noexcept;

}  // namespace isthmus::sim::engine
