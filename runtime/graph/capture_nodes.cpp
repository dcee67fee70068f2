// SPDX-License-Identifier: Apache-2.0
// Additions made through a Capture: kernels that keep a node name, and whole graphs.
#include <isthmus/graph.hpp>
#include <isthmus/stream.hpp>

#include "composed.hpp"
#include "condition_kernel.hpp"
#include "device_state.hpp"
#include "graph_errors.hpp"
#include "graph_state.hpp"
#include "launch_judge.hpp"
#include "launch_node.hpp"
#include "operation.hpp"
#include "stream_state.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace {

// Checked before any lock: host functions must not wait for one, and in a forked child it may never be released.
Result<void> usable(const detail::Recording* recording, const char* what) {
    if (recording == nullptr) return make_error<errors::recording_into_ended_capture>();
    if (recording->device->bars(rules::PublicCall::append_to_capture))
        return recording->device->refusal(rules::PublicCall::append_to_capture, what);
    return {};
}

// The stream on which the capture began.
Result<std::shared_ptr<detail::StreamState>> origin_of(detail::Recording* recording) {
    if (recording == nullptr) return make_error<errors::recording_into_ended_capture>();
    const std::lock_guard lock(recording->mutex);
    if (recording->state != detail::Recording::State::open || !recording->branches.front().stream) {
        return make_error<errors::recording_into_ended_capture>();
    }
    return recording->branches.front().stream;
}

Result<void> takes_part(const detail::Recording* recording, detail::StreamState& stream) {
    if (recording == nullptr) return make_error<errors::recording_into_ended_capture>();
    if (stream.recording_id() == recording->id) return {};
    return make_error<errors::stream_outside_of_capture>(stream.id);
}

// Refuses graphs that cannot be part of another graph, whether run once or conditionally.
Result<void> refuse_part(const detail::StreamState& stream, const detail::DriverGraph& driver) {
    if (Result<void> well = driver.usable("appending a graph to a capture"); !well) return well;
    if (driver.device != stream.device) return make_error<errors::appended_graph_of_another_device>();
    if (driver.allocates) return make_error<errors::appended_graph_allocates>();
    // the driver returns 801 (observed)
    if (driver.conditional) return make_error<errors::appended_graph_is_conditional>();
    return {};
}

// The new graph takes over the buffers; the driver copies the rest.
Result<void> append_to(detail::StreamState& stream, const detail::GraphState& graph) {
    detail::DriverGraph& driver = *graph.driver;
    if (Result<void> part = refuse_part(stream, driver); !part) return part;
    detail::Operation operation(stream, "a graph", nullptr);
    std::vector<detail::RecordedUse> uses = detail::merged_uses(graph.operations);
    for (const detail::RecordedUse& use : uses) operation.uses(*use.buffer, use.use, 0);
    // Only the closures: keeping them on a lost device must not keep that device open.
    if (!driver.closures.empty()) {
        operation.keeps(std::make_shared<std::vector<std::shared_ptr<void>>>(driver.closures));
    }
    operation.keeps_code(driver.code);
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

// Drivers refuse such a body only at instantiation (code 1); here the caller can still correct it.
Result<void> refuse_body(const detail::StreamState& stream, const detail::DriverGraph& body) {
    if (Result<void> part = refuse_part(stream, body); !part) return part;
    if (!body.closures.empty()) return make_error<errors::conditional_body_calls_the_host>();
    if (body.devices.size() > 1) return make_error<errors::conditional_body_of_several_devices>();
    return {};
}

Result<void> refuse_word(const detail::StreamState& stream, const std::shared_ptr<detail::BufferState>& word) {
    if (!word || word->memory->bytes < sizeof(std::int32_t)) return make_error<errors::condition_word_is_empty>();
    if (word->device != stream.device) return make_error<errors::condition_word_of_another_device>();
    if (word->memory->path == LaunchPath::refuse || !stream.device->reaches(word->memory->kind)) {
        return make_error<errors::condition_word_out_of_reach>(name(word->memory->kind));
    }
    return {};
}

}  // namespace

Result<void> Capture::append_conditional(const std::shared_ptr<detail::BufferState>& word, const Graph& graph,
                                         bool loops) {
    const char* const what = loops ? "a loop" : "a branch";
    if (Result<void> well = usable(recording_.get(), what); !well) return well;
    Result<std::shared_ptr<detail::StreamState>> origin = origin_of(recording_.get());
    if (!origin) return std::move(origin).error();
    detail::StreamState& stream = **origin;
    detail::DriverGraph& body = *graph.state()->driver;
    if (Result<void> fits = refuse_body(stream, body); !fits) return fits;
    if (Result<void> fits = refuse_word(stream, word); !fits) return fits;
    std::optional<detail::CallInFlight> loading;
    if (!stream.device->execution.is_resolved(detail::set_condition)) {
        constexpr rules::DriverUse use = rules::DriverUse::load_code;
        loading = stream.device->services.enter(use);
        if (!loading) {
            const std::string asked = composed("{}, whose condition's code is not loaded yet,", what);
            return stream.device->services.refusal(use, asked);
        }
    }
    detail::Operation operation(stream, what, nullptr);
    operation.uses(*word, ArgumentUse::read, 0);
    std::vector<detail::RecordedUse> uses = detail::merged_uses(graph.state()->operations);
    for (const detail::RecordedUse& use : uses) {
        // The body may not run: write-only uses then keep the earlier content, as read_write does.
        operation.uses(*use.buffer, use.use == ArgumentUse::write ? ArgumentUse::read_write : use.use, 0);
    }
    operation.keeps_code(body.code);
    const std::lock_guard lock(body.mutex);
    platform::Status status;
    Result<std::uint64_t> issued = operation.issue([&] {
        if (stream.recording == nullptr) return platform::Status{Code::capture_error, 0, "append_conditional"};
        const platform::ConditionalBody request{loops, body.handle, word->memory->device_address,
                                                &detail::set_condition};
        status = stream.device->driver->captures()->append_conditional(stream.handle, request);
        if (status.ok()) stream.recording->conditional = true;
        if (status.code == Code::capture_error) stream.recording->spoiled = true;
        return status;
    });
    if (issued) return {};
    if (status.code != Code::unsupported) return std::move(issued).error();
    return make_error<errors::no_conditional_nodes>(what);
}

Result<void> Capture::loop_while(const TypedBuffer<std::int32_t>& word, const Graph& body) {
    return append_conditional(word.state(), body, true);
}
Result<void> Capture::run_if(const TypedBuffer<std::int32_t>& word, const Graph& body) {
    return append_conditional(word.state(), body, false);
}

Result<detail::NodeName> Capture::launch_packed(const Stream* on, const LaunchOptions& options,
                                                const KernelInfo& kernel, const Extent& extent, void* pack,
                                                const detail::LaunchArgument* arguments, std::size_t count) {
    if (Result<void> well = usable(recording_.get(), kernel.name); !well) return std::move(well).error();
    Result<std::shared_ptr<detail::StreamState>> stream =
        on != nullptr ? Result<std::shared_ptr<detail::StreamState>>(on->state()) : origin_of(recording_.get());
    if (!stream) return std::move(stream).error();
    if (Result<void> part = takes_part(recording_.get(), **stream); !part) return std::move(part).error();
    if (Result<void> possible = detail::check_extent(kernel, extent); !possible) return std::move(possible).error();
    if (extent.x == 0 || extent.y == 0 || extent.z == 0) {
        return make_error<errors::captured_kernel_without_items>(kernel.name);
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

}  // namespace v0
}  // namespace isthmus
