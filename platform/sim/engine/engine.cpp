// SPDX-License-Identifier: Apache-2.0
// Creates and ends the engine, and handles sticky errors of devices and graph launches.
#include "core.hpp"

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include <unistd.h>

namespace isthmus::sim::engine {

Core::Core(const Options& given, Hooks* given_hooks)
    : options(given), hooks(given_hooks), process(getpid()), random_state(given.seed) {
    devices.resize(static_cast<std::size_t>(given.devices > 0 ? given.devices : 1));
    for (std::size_t i = 0; i < devices.size(); ++i) {
        Stream& legacy = add_stream(static_cast<int>(i), {});
        devices[i].legacy = legacy.options.legacy = legacy.id;
    }
}

Stream* Core::find(StreamId id) {
    const auto found = streams.find(static_cast<std::uint64_t>(id));
    return found == streams.end() ? nullptr : &found->second;
}

Event* Core::find(EventId id) {
    const auto found = events.find(static_cast<std::uint64_t>(id));
    return found == events.end() ? nullptr : &found->second;
}

Engine::Engine(const Options& options, Hooks* hooks) : core_(std::make_shared<Core>(options, hooks)) {}

Engine::~Engine() {
    // A forked child must not even destroy the locks: threads that it does not have may hold them.
    if (getpid() != core_->process) {
        static_cast<void>(new std::shared_ptr<Core>(core_));
        return;
    }
    core_->shut_down();
}

void Engine::await_destruction() {
    if (getpid() != core_->process) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    Core::Lock lock(*core_);
    while ((!core_->graveyard.empty() || core_->burying != 0) && std::chrono::steady_clock::now() < until) {
        lock.release_and_clear();
        std::this_thread::yield();
        lock.acquire();
    }
}

int Engine::device_code(int device) const {
    Core::Lock lock(*core_);
    return core_->devices[device].code;
}

void Engine::latch(int device, int code) {
    Core::Lock lock(*core_);
    core_->lose(device, code);
}

void Engine::progress() {
    if (core_->options.mode != Mode::seeded || host_function_flag()) return;
    Core::Lock lock(*core_);
    while (core_->ready_count + core_->sleeping.size() != 0 && core_->next_random() % 2 != 0) core_->step(lock);
}

bool Engine::set_seed(std::uint64_t seed) {
    if (core_->options.mode != Mode::seeded) return false;
    Core::Lock lock(*core_);
    core_->random_state = seed;
    return true;
}

std::uint64_t Engine::now_ns() const {
    Core::Lock lock(*core_);
    return core_->now_ns();
}

bool Engine::in_host_function() noexcept {
    return host_function_flag();
}

std::uint64_t& Engine::reached() noexcept {
    return *reached_by_running_work();
}

StreamId Engine::running_stream() noexcept {
    return engine::running_stream();
}

namespace {

int run_here(const Graph& graph);

int run_by_condition(const Graph& body, const Condition& condition) {
    if (condition.choice != Condition::Choice::none) {
        const unsigned value = condition.value->load(std::memory_order_relaxed);
        const bool by_index = condition.choice == Condition::Choice::by_index;
        const std::size_t chosen = by_index ? value : value != 0 ? 0 : 1;
        return chosen < body.size() ? run_here(*body.node(static_cast<NodeIndex>(chosen)).child) : code::ok;
    }
    while (condition.value->load(std::memory_order_relaxed) != 0) {
        if (const int code = run_here(body)) return code;
        if (!condition.loops) break;
    }
    return code::ok;
}

// Runs the body of a conditional node as one operation, node after node, on the current worker.
int run_here(const Graph& graph) {
    std::vector<bool> ran(graph.size(), false);
    int failed = code::ok;
    const std::function<void(NodeIndex)> run = [&](NodeIndex index) {
        if (ran[index]) return;
        ran[index] = true;
        const GraphNode& node = graph.node(index);
        for (const NodeIndex dependency : node.dependencies) run(dependency);
        if (failed != code::ok) return;
        if (node.disabled) return;
        if (node.condition) {
            failed = run_by_condition(*node.child, *node.condition);
        } else if (node.child) {
            failed = run_here(*node.child);
        } else if (node.operation.body) {
            failed = node.operation.body();
        }
    };
    for (NodeIndex i = 0; i < graph.size(); ++i) run(i);
    return failed;
}

Operation conditional_operation(const GraphNode& node, int device) {
    Operation whole;
    whole.kind = Kind::kernel;
    whole.label = "a conditional node";
    whole.device = device;
    whole.body = [body = *node.child, condition = *node.condition] { return run_by_condition(body, condition); };
    return whole;
}

// Creates work for every node of one launch; a child graph becomes its nodes between two empty operations.
struct Launch {
    Core& core;
    const Stream& stream;
    WorkRef exit;
    std::vector<WorkRef> works;  // in the order of sealing

    WorkRef make(Operation operation) {
        works.push_back(core.make_work(stream, std::move(operation)));
        return works.back();
    }
    WorkRef add_node(const GraphNode& node, const std::vector<WorkRef>& after) {
        WorkRef work = make(node.condition                ? conditional_operation(node, stream.device)
                            : node.child || node.disabled ? Operation{}
                                                          : node.operation);
        for (const WorkRef& before : after) core.link(before, work);
        if (node.condition) return core.issue(*exit, stream.device), work;
        if (node.child) return add_graph(*node.child, work);
        if (node.disabled) return work;
        const Event* awaited = node.operation.kind == Kind::wait ? core.find(node.operation.event) : nullptr;
        if (awaited) core.link(awaited->record, work);
        // Branches run in parallel, so the host learns only from the end of the launch that its GPU work is over.
        if (is_gpu_work(node.operation.kind)) core.issue(*exit, work->operation.device);
        return work;
    }
    // Adds every node, its roots after `entry`; returns an empty operation that follows all of them.
    WorkRef add_graph(const Graph& graph, const WorkRef& entry) {
        std::vector<WorkRef> ends(graph.size());
        // Dependencies may have higher indices (cuGraphAddDependencies): missing ones are added first.
        const std::function<void(NodeIndex)> add = [&](NodeIndex index) {
            if (ends[index]) return;
            std::vector<WorkRef> after;
            for (NodeIndex dependency : graph.node(index).dependencies) {
                add(dependency);
                after.push_back(ends[dependency]);
            }
            if (after.empty()) after.push_back(entry);
            ends[index] = add_node(graph.node(index), after);
        };
        for (NodeIndex i = 0; i < graph.size(); ++i) add(i);
        WorkRef end = make(Operation{});
        core.link(entry, end);
        for (const WorkRef& work : ends) core.link(work, end);
        return end;
    }
};

}  // namespace

// Every node becomes work that follows its dependencies or, without any, the stream's entry. One empty operation after
// all of them is the stream's new tail.
int Engine::launch(StreamId id, GraphInstance& instance, Operation first) {
    Core::Lock lock(*core_);
    Core& core = *core_;
    Stream* stream = core.find(id);
    if (!stream) return code::invalid_handle;
    if (stream->capture) {
        if (stream->capture->invalidated) return code::capture_invalidated;
        stream->capture->invalidated = true;  // observed: only a graph becomes a child graph, by a separate call
        return code::capture_unsupported;
    }
    if (const int code = core.devices[stream->device].code; code != code::ok) return code;

    const WorkRef entry = core.make_work(*stream, std::move(first));
    core.link_entry(*stream, entry);
    core.link(instance.last_launch, entry);
    const WorkRef exit = core.make_work(*stream, Operation{});
    // The launch keeps a copy, so that patching or destroying the instance does not affect it.
    exit->launched = instance.graph;
    core.link(entry, exit);
    Launch parts{core, *stream, exit, {}};
    core.link(parts.add_graph(instance.graph, entry), exit);
    for (const WorkRef& work : parts.works) {
        Event* recorded = work->operation.kind == Kind::event_record ? core.find(work->operation.event) : nullptr;
        if (recorded) *recorded = Event{recorded->timing, work, nullptr, {}};
        if (work->operation.device != stream->device) {
            Device& device = core.devices[work->operation.device];
            core.adopt(device, {work, false, device.legacy});
        }
    }
    stream->tail = exit;
    instance.last_launch = exit;
    core.seal(entry);
    for (const WorkRef& work : parts.works) core.seal(work);
    core.seal(exit);
    return code::ok;
}

}  // namespace isthmus::sim::engine
