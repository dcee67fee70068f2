// SPDX-License-Identifier: Apache-2.0
// State of finished recordings: the driver's graph, its operations, and launchable instances.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include "buffer_state.hpp"
#include "graph_uses.hpp"
#include "polled_lock.hpp"
#include "recording.hpp"
#include "store_lock.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The driver's graph. Instances keep it alive, because it names their nodes. GraphState and each instance hold the
// buffers of the operations, each for itself.
struct DriverGraph {
    // If the last reference is dropped in a host function, destruction is deferred.
    static std::shared_ptr<DriverGraph> make(std::shared_ptr<DeviceState> owner, platform::GraphHandle recorded,
                                             std::uint64_t recording);
    DriverGraph(std::shared_ptr<DeviceState> owner, platform::GraphHandle recorded, std::uint64_t recording) noexcept
        : device(std::move(owner)), handle(recorded), id(recording) {}
    ~DriverGraph();

    const std::shared_ptr<DeviceState> device;  // the origin's device: launches go there
    const platform::GraphHandle handle;
    const std::uint64_t id;                             // of the recording; never reused
    std::vector<std::shared_ptr<DeviceState>> devices;  // all participating devices; constant once made
    bool allocates = false;                             // constant once made
    bool conditional = false;                           // has loops or branches; constant once made
    // Closures of host functions and of graphs appended to it; constant once made.
    std::vector<std::shared_ptr<void>> closures;
    HeldCodes code;  // of ready-made modules; constant once made

    PolledLock mutex;  // the driver allows one thread at a time per graph; also guards `instances`
    int instances = 0;

    // true: a participating device reported a fault. usable() refuses then, and if anything else bars graphs on one.
    bool is_lost() const noexcept;
    Result<void> usable(const char* what) const;
    const std::shared_ptr<DeviceState>& device_at(std::size_t index) const noexcept;
    // Errors: in_use (it allocates and has an instance), device_lost, driver_error. Counts the instance.
    Result<platform::GraphInstanceHandle> instantiate();
    // Call when the driver's instance or its device is gone: a graph that allocates may then have another instance.
    void end_instance(platform::GraphInstanceHandle instance);
};

// Ends the capture of a body that was not recorded to its end; the outer capture will make no graph.
void throw_away_body(const std::shared_ptr<Recording>& body);

struct GraphState {
    explicit GraphState(std::shared_ptr<DriverGraph> recorded) noexcept : driver(std::move(recorded)) {}
    const std::shared_ptr<DriverGraph> driver;
    std::vector<RecordedOperation> operations;  // each holds its buffers
};

// One operation of an instance and its current uses.
struct InstanceOperation {
    struct Use {
        BufferState* buffer;  // held by GraphUses
        ArgumentUse use;
        std::uint32_t argument;
        rules::ByteRange range{};  // for the order checker
    };
    const char* name = "";
    const KernelInfo* kernel = nullptr;
    std::size_t device = 0;
    platform::NodeHandle node = platform::NodeHandle::none;  // node of the graph InstanceState::made.from
    std::vector<std::uint32_t> after;
    std::vector<Use> uses;                                               // in the order of the arguments
    platform::FunctionHandle function = platform::FunctionHandle::none;  // function for nodes; none: not resolved yet
    Extent extent{0, 0, 0};  // the last that set_arguments() took; empty: none yet
};
std::vector<InstanceOperation> instance_operations(const std::vector<RecordedOperation>& recorded);

// How two recordings differ in the properties by which the driver matches nodes: their number, their edges, kernel or
// not. Empty: operation i of one corresponds to operation i of the other. Pure.
std::string shape_difference(const std::vector<InstanceOperation>& ours, const std::vector<RecordedOperation>& theirs);

// Lock order: `mutex` before a stream's. It is held during the driver calls that launch or change the instance, because
// the driver allows one thread at a time to make them.
struct InstanceState {
    // The driver's instance, and everything that must live as long.
    struct Made {
        std::shared_ptr<DriverGraph> from;
        platform::GraphInstanceHandle handle = platform::GraphInstanceHandle::none;
        GraphUses uses;                          // of all operations
        std::vector<BufferState::Use> launches;  // last launch on each stream
        // Graphs whose host functions or modules may run: launches from before an update may still call the earlier
        // graph's.
        std::vector<std::shared_ptr<DriverGraph>> closures_of;

        void launched(const std::shared_ptr<StreamState>& stream, std::uint64_t position);
        bool idle() const;  // true: all launches are known to have ended, or a device is lost
        // the same, after querying the driver; false on a lost device, where the end of a launch cannot be seen
        bool poll_idle() const;
        Result<void> wait_for();  // waits for all launches
        void destroy();
    };

    // As DriverGraph::make().
    static std::shared_ptr<InstanceState> make(const GraphState& graph, platform::GraphInstanceHandle handle);
    explicit InstanceState(const GraphState& graph, platform::GraphInstanceHandle handle);
    ~InstanceState();

    // Read before `mutex` is locked: on the CPU device a launch holds it while it calls host functions, and in a forked
    // child a thread of the parent may have held it.
    const std::shared_ptr<DeviceState> device;
    platform::Captures& captures;  // of the device's driver

    StoreLock mutex;  // guards the members below
    Made made;
    // the graph of `operations`: made.from, or the graph of the last in-place update
    std::shared_ptr<DriverGraph> as_of;
    std::vector<InstanceOperation> operations;
    std::vector<Made> replaced;  // replaced by update(), still running

    // These require `mutex`.
    void adopt(const GraphState& graph);  // takes over the graph's operations and uses
    // Destroys and returns entries of `replaced` whose launches have ended; the caller drops them without the lock.
    std::vector<Made> end_replaced();
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
