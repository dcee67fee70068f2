// SPDX-License-Identifier: Apache-2.0
// The state of the simulated driver: one per process, created by cuInit, never destroyed (threads of the program may
// outlive main). The objects behind handles are listed here, so that a stale handle is recognised.
#pragma once

#include "chunks.hpp"
#include "engine/engine.hpp"
#include "handles.hpp"
#include "kernel_heap.hpp"
#include "launch_settings.hpp"
#include "machine.hpp"
#include "protection.hpp"
#include "regions.hpp"
#include "types.hpp"
#include "virtual_memory.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::sim {

struct Context {
    int device = 0;
    bool primary = false;
    unsigned flags = 0;
    std::uint64_t id = 0;
    std::set<int> peers;                // devices whose memory this context may reach (cuCtxEnablePeerAccess)
    unsigned uses = 1;                  // of a created context: by its maker and by cuCtxAttach
    GreenContext* green = nullptr;      // whose context this is; all but its streams is the primary context's
    bool was_green = false;             // of a handle whose green context is destroyed, until it is reused
    std::map<int, std::size_t> limits;  // that the program set, by CUlimit
    int cache_preference = 0;           // CUfunc_cache
    engine::StreamId gate = engine::StreamId::none;    // context_events.hpp
    engine::StreamId legacy = engine::StreamId::none;  // of a created context (legacy_stream_of)
};

struct Stream {
    engine::StreamId id = engine::StreamId::none;
    Context* context = nullptr;
    unsigned flags = 0;  // 1: does not wait for the legacy stream
    int priority = 0;
    GreenContext* green = nullptr;  // that it belongs to
    std::uint64_t thread = 0;       // whose default stream it is (per_thread.hpp); 0: an ordinary stream
    StreamSettings settings;
    // The last answer of cuStreamGetCaptureInfo: valid until the next call for the stream.
    std::vector<NodeObject*> capture_dependencies;
    std::vector<EdgeData> capture_edges;
};

struct Event {
    engine::EventId id = engine::EventId::none;
    Context* context = nullptr;
    unsigned flags = 0;                   // 1 blocking wait, 2 no timing, 4 interprocess
    std::shared_ptr<SharedEvent> shared;  // of interprocess events
    std::uint64_t own_record = 0;         // the number of the last record by this process
};

// A dma-buf of other drivers that the program imported.
struct ExternalMemory {
    int file = -1;
    unsigned long long bytes = 0;
    int device = -1;
};

struct Pool {
    Location location{1, 0};
    int allocation_type = 1;  // 1 pinned in its location, 2 managed
    int device = 0;           // -1: host memory, or no particular device
    bool by_default = false;
    std::uint64_t max_bytes = 0;  // 0: no limit
    std::uint64_t release_threshold = 0;
    int reuse[3] = {1, 1, 1};
    std::uint64_t used_bytes = 0, used_high = 0, reserved_bytes = 0, reserved_high = 0;
    std::size_t regions = 0;     // allocations that refer to the pool, also those of graphs
    std::map<int, int> devices;  // access of other devices: 1 read, 3 read and write
    int handle_types = 0;        // 1: may be shared by descriptors
    bool imported = false;       // another process's
    int file = -1;               // names the pool; -1: not exported
    std::uint64_t nonce = 0;     // of that file, or of the one that it was imported from

    int access(int of_device) const {
        const auto found = devices.find(of_device);
        return of_device == device ? 3 : found == devices.end() ? 0 : found->second;
    }
};

// The default pool of a location, and its current pool (cuMemSetMemPool).
struct PoolSlot {
    Pool standard;
    Pool* current = nullptr;
};

// What the program asked for when it made a condition.
struct ConditionFacts {
    GraphObject* graph = nullptr;  // for whose nodes it was made; nullptr: the graph is gone
    bool used = false;             // by a node: documented for one only
    std::optional<unsigned> initial;
};

// Facts that every launch or synchronisation needs, read once.
struct DeviceLimits {
    unsigned block[3] = {}, grid[3] = {};  // 0: not recorded
    int threads_per_block = 0, shared_bytes = 0;
    bool phase_guarded = false;  // CONCURRENT_MANAGED_ACCESS is 0
};

struct DeviceState {
    DeviceLimits limits;
    Context primary;      // alive while `active`
    int retained = 0;     // references; a reset does not change them
    bool active = false;  // from the first retain to the last release or a reset
    unsigned primary_flags = 0;
    StreamSettings legacy_settings;  // of the legacy stream
    Pool default_pool;
    Pool* pool = nullptr;
    std::uint64_t total_bytes = 0;  // the record's, unless a test reduced it
    std::uint64_t used_bytes = 0;   // allocations, reserves of pools, memory of graphs
    Chunks chunks;                  // of small allocations; used_bytes counts them
    // Of graphs, in steps; both figures of the driver, used and reserved, with a high-water mark each.
    std::uint64_t graph_bytes = 0, graph_used_high = 0, graph_reserved_high = 0;
};

class Driver {
public:
    explicit Driver(const Machine& machine);

    const Machine& machine;
    // Guards all below; never held while waiting for work, nor by an operation's body while it runs a twin.
    std::mutex mutex;
    Regions regions;
    Protection protection;
    std::vector<DeviceState> devices;
    std::uint64_t pinned_bytes = 0;  // of the host's memory, by all devices
    Handles<Context> contexts;
    Handles<Stream> streams;
    Handles<Event> events;
    Handles<Module> modules;
    Handles<Function> functions;
    Handles<LinkState> links;
    Handles<Pool> pools;
    std::map<std::array<int, 3>, PoolSlot> location_pools;  // by allocation type, location type and id; not for devices
    std::list<Pool> retired_pools;                          // destroyed, but their memory is still in use
    VirtualMemory virtual_memory;
    Handles<GraphObject> graphs;
    Handles<GraphExec> instances;
    Handles<NodeObject> nodes;
    Handles<UserObject> user_objects;
    Handles<GreenContext> green_contexts;
    Handles<ExternalMemory> external_memories;
    Handles<Array> arrays;
    Handles<MipmappedArray> mipmapped_arrays;
    Handles<Texture> textures;
    Handles<Surface> surfaces;
    Handles<Semaphore> semaphores;
    Handles<ResourceDescription> resource_descriptions;
    std::map<const Context*, KernelHeap> heaps;                      // of malloc() in kernels
    std::uint64_t splits = 0;                                        // of multiprocessors, so far
    std::vector<std::shared_ptr<std::atomic<unsigned>>> conditions;  // by handle, from 1; never removed
    std::vector<ConditionFacts> condition_facts;                     // of the same handles
    // Of open captures, by capture id; created by the first query.
    std::map<std::uint64_t, GraphObject*> captured_graphs;
    // Of threads, by thread and context; an entry may name a stream that ended with its context (per_thread.hpp).
    std::map<std::pair<std::uint64_t, const Context*>, Stream*> default_streams;
    std::uint64_t next_context_id = 1;
    std::atomic<std::uint64_t> context_changes{1};  // incremented when a context ends or is revived
    std::atomic<int> gpu_work{0};                   // operations that are running, but for those on values in memory

    engine::Engine& engine() { return *engine_; }
    bool valid(DeviceOrdinal device) const { return device >= 0 && device < static_cast<int>(devices.size()); }
    bool phase_guarded = false;  // true if any device is phase-guarded
    bool seeded = false;         // work proceeds only inside calls
    int fact(DeviceOrdinal device, int id) const { return machine.attribute(device, id); }

private:
    std::unique_ptr<engine::Hooks> hooks_;
    std::unique_ptr<engine::Engine> engine_;
};

// nullptr until cuInit succeeded.
Driver* driver() noexcept;

// The calling thread's current context, or the primary one that a current green context shares; nullptr: no live one.
// Locks the driver's mutex, as the next three functions do.
Context* current_context(Driver& d);
GreenContext* current_green(Driver& d);  // nullptr: an ordinary context is current, or none
// Whether the calling thread's current context was destroyed; fast while no context is created or destroyed.
bool current_is_dead(Driver& d);

// The stream that a handle denotes. 1 is the legacy stream of the current context's device, 2 the calling thread's
// default stream in the current context, 0 one of both (per_thread.hpp).
struct StreamTarget {
    engine::StreamId id = engine::StreamId::none;
    int device = -1;
    Context* context = nullptr;
    bool legacy = false;
    bool blocking = true;      // ordered with the legacy stream
    Stream* stream = nullptr;  // nullptr: the legacy stream
};
Result resolve(Driver& d, Stream* stream, StreamTarget& out);
// As resolve(), for a call that submits work to the stream: also returns sticky codes, and applies the rule for the
// legacy stream during captures.
Result resolve_for_work(Driver& d, Stream* stream, StreamTarget& out);

// 201 without a current context, 709 with a destroyed one, the sticky code of its device, or 0.
Result need_context(Driver& d, Context*& context);

// Operates on the calling thread's stack; false: the stack is full.
bool push_current(Context* context);
void pop_if_current(const Context* context);

bool alive(const Driver& d, const Context* context);
// Each context has a legacy stream of its own; a green one has that of the primary context.
engine::StreamId legacy_stream_of(Driver& d, const Context& context);
// 0; 709 where the context was destroyed (assumed for explicit handles); 201 where it never was a context.
Result context_code(const Driver& d, const Context* context);
std::size_t count_contexts(const Driver& d);
// Devices whose memory this one may access: by cuCtxEnablePeerAccess, through pools, or through mappings.
std::set<int> peers_of_device(const Driver& d, int device);

// For calls whose effect a real driver leaves undefined: with ISTHMUS_SIM_STRICT, prints program, function and reason
// and aborts; otherwise the call goes on as observed or assumed.
void undefined(const char* what);

// The code for a handle that is not alive. The documentation calls the use of an object of a destroyed context
// undefined; assumed: the driver reports it.
template <class T>
Result lost_or_unknown(const Handles<T>& handles, const T* handle) {
    if (handles.lost(handle) || handles.was_alive(handle)) undefined("a handle of an object that is destroyed");
    return handles.lost(handle) ? result::context_is_destroyed : result::invalid_handle;
}

// A stream of the context, and of a green one where that is given. Requires the driver's mutex.
Stream* create_stream(Driver& d, Context& context, GreenContext* green, unsigned flags, int priority);
// Takes a reference of the device's primary context. Requires the driver's mutex.
void retain_primary(Driver& d, int device);
// Gives one back, or resets the context.
Result release_primary(Driver& d, DeviceOrdinal device, bool reset);

// Whether cuCtxCreate and cuCtxSetFlags take these CU_CTX_FLAGS: one way to wait at most, and no unknown bit.
bool are_context_flags(unsigned flags);
// What cuCtxDestroy does, of a created context.
Result destroy_context(Driver& d, Context* context);
// Releases the objects of a context: its streams, events, modules, and memory except that of pools.
void release_context_resources(Driver& d, Context* context);

// Prints "isthmus simulator: ..." on stderr: the simulator may print, the library may not.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
// For calls that crash the real driver: prints the reason, then raises SIGSEGV.
[[noreturn]] void die_like_the_driver(const char* what);

}  // namespace isthmus::sim
