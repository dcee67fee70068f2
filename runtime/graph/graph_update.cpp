// SPDX-License-Identifier: Apache-2.0
// GraphInstance::update: replaces an instance's work by another graph's, in place if the driver can.
#include <isthmus/graph.hpp>

#include "composed.hpp"
#include "device_state.hpp"
#include "graph_errors.hpp"
#include "graph_state.hpp"
#include "stream_state.hpp"

#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

std::string shape_difference(const std::vector<InstanceOperation>& ours, const std::vector<RecordedOperation>& theirs) {
    if (ours.size() != theirs.size()) {
        return composed("the graphs have {} and {} operations", ours.size(), theirs.size());
    }
    for (std::size_t at = 0; at < ours.size(); ++at) {
        const std::string which = composed("operation {} ", at);
        if ((ours[at].kernel == nullptr) != (theirs[at].kernel == nullptr)) {
            return composed("{}is a kernel in one graph only ('{}' and '{}')", which, ours[at].name, theirs[at].name);
        }
        if (ours[at].after != theirs[at].after) return composed("{}follows other operations", which);
    }
    return {};
}

}  // namespace detail

namespace {

using detail::DeviceState;
using detail::GraphState;
using detail::InstanceState;

// The driver's reason for refusing, as text; or an error that a new instance would not solve.
Result<std::string> update_in_place(InstanceState& instance, const GraphState& graph) {
    detail::DriverGraph& driver = *graph.driver;
    DeviceState& device = *driver.device;
    const char* why = "";
    const std::lock_guard lock(driver.mutex);
    const platform::Status status = device.driver->captures()->update(instance.made.handle, driver.handle, why);
    if (status.ok()) return std::string();
    Error error = device.failure(status, "updating a graph instance");
    if (device.is_lost()) return error;
    return *why != '\0' ? std::string(why) : std::string(error.message());
}

// Why the update is not possible in place; empty: done.
Result<std::string> try_in_place(InstanceState& instance, const GraphState& graph) {
    if (instance.made.from->allocates || graph.driver->allocates) {
        return std::string("a graph that allocates memory cannot be updated in place");
    }
    if (instance.made.from->conditional || graph.driver->conditional) {
        return std::string("a graph with loops or branches cannot be updated in place");
    }
    // The driver matches nodes in its own order: the recorded order if the recordings agree. Nodes then keep their
    // names.
    std::string differs = detail::shape_difference(instance.operations, graph.operations);
    return differs.empty() ? update_in_place(instance, graph) : Result<std::string>(std::move(differs));
}

}  // namespace

Result<GraphUpdate> GraphInstance::update(const Graph& graph) {
    InstanceState& instance = *state_;
    if (instance.device->bars(rules::PublicCall::update_graph))
        return instance.device->refusal(rules::PublicCall::update_graph);
    const GraphState& wanted = *graph.state();
    std::vector<InstanceState::Made> ended_earlier;  // destroyed after the lock is released, like the earlier buffers
    detail::GraphUses before;
    std::vector<std::shared_ptr<detail::DriverGraph>> no_longer_called;
    const std::lock_guard lock(instance.mutex);
    if (wanted.driver->device != instance.made.from->device) {
        return make_error<errors::update_to_graph_of_another_device>();
    }
    if (Result<void> well = wanted.driver->usable("updating a graph instance"); !well) return std::move(well).error();
    if (Result<void> well = instance.made.from->usable("updating a graph instance"); !well) {
        return std::move(well).error();
    }
    ended_earlier = instance.end_replaced();
    Result<std::string> why = try_in_place(instance, wanted);
    if (!why) return std::move(why).error();
    if (why->empty()) {
        // Nodes keep their names from the first graph, by which the driver identifies this instance's nodes.
        std::vector<detail::InstanceOperation> named = std::move(instance.operations);
        before = std::move(instance.made.uses);
        // Host functions of earlier graphs are no longer called once all launches have ended. Dropping them bounds what
        // an often updated instance keeps.
        if (!instance.made.closures_of.empty() && instance.made.poll_idle()) {
            no_longer_called.swap(instance.made.closures_of);
        }
        instance.adopt(wanted);
        for (std::size_t at = 0; at < named.size(); ++at) instance.operations[at].node = named[at].node;
        return GraphUpdate{true, {}};
    }
    Result<platform::GraphInstanceHandle> made = wanted.driver->instantiate();
    if (!made) return std::move(made).error();
    instance.replaced.push_back(std::move(instance.made));
    instance.made = {};
    instance.made.from = wanted.driver;
    instance.made.handle = *made;
    instance.adopt(wanted);
    std::vector<InstanceState::Made> idle = instance.end_replaced();
    for (InstanceState::Made& one : idle) ended_earlier.push_back(std::move(one));
    return GraphUpdate{false, std::move(*why)};
}

}  // namespace v0
}  // namespace isthmus
