// Graph and GraphInstance: launching what was recorded, as one operation that uses all of its buffers.
#include <isthmus/graph.hpp>
#include <isthmus/stream.hpp>

#include "device_state.hpp"
#include "operation.hpp"
#include "process.hpp"
#include "recording.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <string>

namespace isthmus::inline v0 {
namespace detail {

GraphState::~GraphState() {
    if (device->config->forked() || is_lost()) return;
    const platform::Status status = device->driver->captures()->destroy(handle);
    if (!status.ok()) device->config->say(Severity::warning, device->failure(status, "destroying a graph").text());
}

// A running instance is not pulled away under its kernels; one that hangs is given up with all that it holds (R5).
InstanceState::~InstanceState() {
    DeviceState& device = *graph->device;
    if (device.config->forked()) return;
    for (const BufferState::Use& launch : launches) {
        if (graph->is_lost()) break;  // nothing runs any more
        Result<void> waited = launch.stream->wait_until(launch.last, Wait{});
        if (waited || graph->is_lost()) continue;
        device.config->say(Severity::error, "a graph instance was given up: " + waited.error().text());
        process::keep_until_exit(graph);
        return;
    }
    if (!graph->is_lost()) {
        const platform::Status status = device.driver->captures()->destroy(handle);
        if (!status.ok()) {
            device.config->say(Severity::warning, device.failure(status, "destroying a graph instance").text());
        }
    }
    graph->instance_ended();  // not before: until then the driver refuses another one of a graph that allocates
}

bool GraphState::is_lost() const noexcept {
    return std::any_of(devices.begin(), devices.end(),
                       [](const std::shared_ptr<DeviceState>& takes_part) { return takes_part->is_lost(); });
}

void GraphState::instance_ended() noexcept {
    const std::lock_guard lock(mutex);
    --instances;
}

}  // namespace detail

std::size_t Graph::size() const noexcept {
    return state_->operations.size();
}

Result<GraphInstance> Graph::instantiate() const {
    detail::GraphState& graph = *state_;
    detail::DeviceState& device = *graph.device;
    if (!device.usable()) return device.unusable("instantiating a graph");
    for (const std::shared_ptr<detail::DeviceState>& takes_part : graph.devices) {
        if (takes_part->is_lost()) return takes_part->unusable("instantiating a graph");
    }
    const std::lock_guard lock(graph.mutex);
    // The driver answers 801: the addresses of a graph's own memory are the graph's, not the instance's.
    if (graph.allocates && graph.instances > 0) {
        return Error(Code::in_use, "a graph that allocates memory can have one instance at a time",
                     "destroy the other instance first, or allocate before the capture");
    }
    platform::GraphInstanceHandle handle = platform::GraphInstanceHandle::none;
    const platform::Status status = device.driver->captures()->instantiate(graph.handle, handle);
    if (!status.ok()) return device.failure(status, "instantiating a graph");
    ++graph.instances;
    return GraphInstance(std::make_shared<detail::InstanceState>(state_, handle));
}

Result<void> Stream::launch(const GraphInstance& instance) {
    detail::StreamState& stream = *state_;
    detail::InstanceState& launched = *instance.state();
    if (!stream.device->usable()) return stream.device->unusable("launching a graph");
    if (launched.graph->device != stream.device) {
        return Error(Code::wrong_device, "the graph was recorded on another device than this stream's",
                     "launch it on a stream of the device that recorded it");
    }
    for (const std::shared_ptr<detail::DeviceState>& takes_part : launched.graph->devices) {
        if (takes_part->is_lost()) return takes_part->unusable("launching a graph");
    }
    detail::Operation operation(stream, "a graph", nullptr);
    for (const detail::RecordedUse& use : launched.graph->uses) operation.uses(*use.buffer, use.use, 0);
    Result<std::uint64_t> issued =
        operation.issue([&] { return stream.device->driver->captures()->launch(launched.handle, stream.handle); });
    if (!issued) return std::move(issued).error();
    const std::lock_guard lock(launched.mutex);
    for (detail::BufferState::Use& earlier : launched.launches) {
        if (earlier.stream == state_) return earlier.last = *issued, Result<void>();
    }
    // Streams may come and go while the instance stays: those that are done are not kept.
    std::erase_if(launched.launches,
                  [](const detail::BufferState::Use& earlier) { return earlier.stream->reached(earlier.last); });
    launched.launches.push_back({state_, *issued, *issued});
    return {};
}

}  // namespace isthmus::inline v0
