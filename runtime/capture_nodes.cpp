// What a capture is given through itself: kernels that keep a name, and whole graphs.
#include <isthmus/graph.hpp>
#include <isthmus/stream.hpp>

#include "device_state.hpp"
#include "graph_state.hpp"
#include "launch_node.hpp"
#include "operation.hpp"
#include "stream_state.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::inline v0 {
namespace {

Error capture_is_over() {
    return {Code::invalid_handle, "the capture has ended already, or was moved from",
            "record before end(); an instance of the graph is launched with Stream::launch()"};
}

// Before any lock: a host function must not wait for one, and in a forked child it may never be free.
Result<void> usable(const detail::Recording* recording, const char* what) {
    if (recording == nullptr) return capture_is_over();
    if (!recording->device->usable()) return recording->device->unusable(what);
    return {};
}

// The stream that the capture began on.
Result<std::shared_ptr<detail::StreamState>> origin_of(detail::Recording* recording) {
    if (recording == nullptr) return capture_is_over();
    const std::lock_guard lock(recording->mutex);
    if (recording->state != detail::Recording::State::open || !recording->branches.front().stream) {
        return capture_is_over();
    }
    return recording->branches.front().stream;
}

Result<void> takes_part(const detail::Recording* recording, detail::StreamState& stream) {
    if (recording == nullptr) return capture_is_over();
    if (stream.recording_id() == recording->id) return {};
    return Error(Code::capture_error, "stream " + std::to_string(stream.id) + " takes no part in this capture",
                 "let it wait for an event of the capture first: it joins by that");
}

// Its buffers become the new graph's, which copies the rest.
Result<void> append_to(detail::StreamState& stream, const detail::GraphState& graph) {
    detail::DriverGraph& driver = *graph.driver;
    if (Result<void> well = driver.usable("appending a graph to a capture"); !well) return well;
    if (driver.device != stream.device) {
        return Error(Code::wrong_device, "the graph was recorded on another device than this stream's",
                     "append it on a stream of the device that recorded it");
    }
    if (driver.allocates) {
        return Error(Code::unsupported, "a graph that allocates memory cannot be a part of another one",
                     "allocate before the captures, or record the work itself in this one");
    }
    detail::Operation operation(stream, "a graph", nullptr);
    std::vector<detail::RecordedUse> uses = detail::merged_uses(graph.operations);
    for (const detail::RecordedUse& use : uses) operation.uses(*use.buffer, use.use, 0);
    // The closures alone: who keeps them on a lost device is not to keep that device open.
    if (!driver.closures.empty()) {
        operation.keeps(std::make_shared<std::vector<std::shared_ptr<void>>>(driver.closures));
    }
    const std::lock_guard lock(driver.mutex);
    Result<std::uint64_t> issued = operation.issue([&] {
        if (stream.recording == nullptr) return platform::Status{Code::capture_error, 0, "append"};
        detail::Recording& recording = *stream.recording;
        recording.further.insert(recording.further.end(), driver.devices.begin(), driver.devices.end());
        const platform::Status status = stream.device->driver->captures()->append(stream.handle, driver.handle);
        if (status.code == Code::capture_error) recording.spoiled = true;
        return status;
    });
    return issued ? Result<void>() : Result<void>(std::move(issued).error());
}

}  // namespace

Result<detail::NodeName> Capture::launch_packed(const Stream* on, const LaunchOptions& options,
                                                const KernelInfo& kernel, const Extent& extent, void* pack,
                                                const detail::LaunchArgument* arguments, std::size_t count) {
    if (Result<void> well = usable(recording_.get(), kernel.name); !well) return std::move(well).error();
    Result<std::shared_ptr<detail::StreamState>> stream =
        on != nullptr ? Result<std::shared_ptr<detail::StreamState>>(on->state()) : origin_of(recording_.get());
    if (!stream) return std::move(stream).error();
    if (Result<void> part = takes_part(recording_.get(), **stream); !part) return std::move(part).error();
    if (extent.x == 0 || extent.y == 0 || extent.z == 0) {
        return Error(Code::invalid_argument,
                     "kernel '" + std::string(kernel.name) + "' was given an empty index space, which makes no node",
                     "leave it out of the graph, or give it at least one item");
    }
    Result<std::uint32_t> at = detail::launch_for_node(**stream, options, kernel, extent, pack, arguments, count);
    if (!at) return std::move(at).error();
    return detail::NodeName{recording_->id, *at};
}

Result<void> Capture::append(const Graph& graph) {
    if (Result<void> well = usable(recording_.get(), "appending a graph to a capture"); !well) return well;
    Result<std::shared_ptr<detail::StreamState>> stream = origin_of(recording_.get());
    if (!stream) return std::move(stream).error();
    return append(Stream(*stream), graph);
}

Result<void> Capture::append(const Stream& stream, const Graph& graph) {
    if (Result<void> well = usable(recording_.get(), "appending a graph to a capture"); !well) return well;
    if (Result<void> part = takes_part(recording_.get(), *stream.state()); !part) return part;
    return append_to(*stream.state(), *graph.state());
}

}  // namespace isthmus::inline v0
