// What becomes of a recording: the driver's graph, what was recorded in it, and instances that can be launched.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include "buffer_state.hpp"
#include "graph_uses.hpp"
#include "recording.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace isthmus::inline v0::detail {

// The graph as its driver has it. Instances need it as long as they live, because it names their nodes; what its
// operations use is held by those who can still launch it: GraphState, and each instance for itself.
struct DriverGraph {
    // The end of one that a host function lets go of is put off.
    static std::shared_ptr<DriverGraph> make(std::shared_ptr<DeviceState> owner, platform::GraphHandle recorded,
                                             std::uint64_t recording);
    DriverGraph(std::shared_ptr<DeviceState> owner, platform::GraphHandle recorded, std::uint64_t recording) noexcept
        : device(std::move(owner)), handle(recorded), id(recording) {}
    ~DriverGraph();

    const std::shared_ptr<DeviceState> device;  // the origin's: where it is launched
    const platform::GraphHandle handle;
    const std::uint64_t id;                             // of the recording; never reused
    std::vector<std::shared_ptr<DeviceState>> devices;  // all that take part; constant once made
    bool allocates = false;                             // constant once made
    bool conditional = false;                           // has loops or branches; constant once made
    // Of host functions, and graphs that became a part of it; constant once made.
    std::vector<std::shared_ptr<void>> closures;

    std::mutex mutex;  // graphs of a driver are for one thread at a time; guards `instances`, too
    int instances = 0;

    // Did a device that takes part report a fault? Refuses for it; nothing else is asked.
    bool is_lost() const noexcept;
    Result<void> usable(const char* what) const;
    const std::shared_ptr<DeviceState>& device_at(std::size_t index) const noexcept;
    // Errors: in_use (it allocates and has an instance), device_lost, driver_error. Counts the instance.
    Result<platform::GraphInstanceHandle> instantiate();
    // The driver's instance is over, or its device is: another may be made of a graph that allocates.
    void end_instance(platform::GraphInstanceHandle instance);
};

struct GraphState {
    explicit GraphState(std::shared_ptr<DriverGraph> recorded) noexcept : driver(std::move(recorded)) {}
    const std::shared_ptr<DriverGraph> driver;
    std::vector<RecordedOperation> operations;  // they hold the buffers that they use
};

// An operation of an instance, with what it uses now.
struct InstanceOperation {
    struct Use {
        BufferState* buffer;  // GraphUses holds it
        ArgumentUse use;
        std::uint32_t argument;
        rules::ByteRange range{};  // for the order checker
    };
    const char* name = "";
    const KernelInfo* kernel = nullptr;
    std::size_t device = 0;
    platform::NodeHandle node = platform::NodeHandle::none;  // of InstanceState::made_from
    std::vector<std::uint32_t> after;
    std::vector<Use> uses;                                               // by argument
    platform::FunctionHandle function = platform::FunctionHandle::none;  // for nodes; none: not asked for yet
};
std::vector<InstanceOperation> instance_operations(const std::vector<RecordedOperation>& recorded);

// How two recordings differ in what the driver pairs its nodes by: number, edges, kernels against anything else.
// Empty: operation i of one stands for operation i of the other. Pure.
std::string shape_difference(const std::vector<InstanceOperation>& ours, const std::vector<RecordedOperation>& theirs);

// Locks: its mutex comes before a stream's, and is held while the driver is given a launch or a change of the instance,
// which a driver takes from one thread at a time.
struct InstanceState {
    // What the driver launches, and everything that has to live as long.
    struct Made {
        std::shared_ptr<DriverGraph> from;
        platform::GraphInstanceHandle handle = platform::GraphInstanceHandle::none;
        GraphUses uses;                          // of all operations
        std::vector<BufferState::Use> launches;  // the last one on each stream
        // Whose host functions it calls: earlier launches may still call those of before an update.
        std::vector<std::shared_ptr<DriverGraph>> closures_of;

        void launched(const std::shared_ptr<StreamState>& stream, std::uint64_t position);
        bool idle() const;        // have all launches ended, as far as anybody asked?
        bool poll_idle() const;   // … of the driver, too; never on a lost device, whose launches nobody sees end
        Result<void> wait_for();  // … after waiting for them
        void destroy();
    };

    // As DriverGraph::make().
    static std::shared_ptr<InstanceState> make(const GraphState& graph, platform::GraphInstanceHandle handle);
    explicit InstanceState(const GraphState& graph, platform::GraphInstanceHandle handle);
    ~InstanceState();

    // Asked before `mutex` is locked: on the CPU device a launch holds it while it calls host functions, and in a
    // forked child another thread of the parent may have held it.
    const std::shared_ptr<DeviceState> device;
    platform::Captures& captures;  // of its driver

    std::mutex mutex;  // guards what follows
    Made made;
    std::shared_ptr<DriverGraph> as_of;  // whose operations these are: made.from, or what it was updated to in place
    std::vector<InstanceOperation> operations;
    std::vector<Made> replaced;  // by update(): what still runs

    // All of these expect `mutex` to be held.
    void adopt(const GraphState& graph);  // from now on it does what the graph says
    // Those of `replaced` whose launches have ended, destroyed; what they hold is let go without the lock.
    std::vector<Made> end_replaced();
};

}  // namespace isthmus::inline v0::detail
