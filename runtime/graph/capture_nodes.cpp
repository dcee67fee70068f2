// SPDX-License-Identifier: Apache-2.0
// Additions made through a Capture: kernels that keep a node name, whole graphs, and bodies of loops and branches.
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
    std::vector<detail::RecordedUse> uses = detail::merged_uses(graph.operations);
    detail::Operation operation(stream, "a graph", nullptr);
    for (const detail::RecordedUse& use : uses) operation.uses(use.buffer, use.use, 0);
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

// The code of the kernel that sets conditions is loaded at the first use, for which no service may run.
Result<std::optional<detail::CallInFlight>> enter_loading(detail::DeviceState& device, const char* what) {
    std::optional<detail::CallInFlight> loading;
    if (device.execution.is_resolved(detail::set_condition)) return loading;
    constexpr rules::DriverUse use = rules::DriverUse::load_code;
    loading = device.services.enter(use);
    if (loading) return loading;
    return device.services.refusal(use, worded("{}, whose condition's code is not loaded yet,", what));
}

constexpr const char* name_of_body(bool loops) noexcept {
    return loops ? "a loop" : "a branch";
}

// The body may not run: write-only uses then keep the earlier content, as read_write does.
constexpr ArgumentUse perhaps(ArgumentUse use) noexcept {
    return use == ArgumentUse::write ? ArgumentUse::read_write : use;
}

// The outer capture goes on; if the body is not whole, it will make no graph.
void leave_body(detail::Recording& outer, bool whole) {
    const std::lock_guard lock(outer.mutex);
    outer.body_open = false;
    outer.body_failed = outer.body_failed || !whole;
}

// Ends the capture of a body, which must be this thread's.
Result<void> end_body_recording(detail::Recording& body) {
    platform::GraphHandle none = platform::GraphHandle::none;
    std::vector<std::shared_ptr<detail::DeviceState>> devices;
    Result<void> ended = detail::end_recording(body, none, devices);
    leave_body(*body.outer, ended.ok());
    return ended;
}

}  // namespace

namespace detail {

void throw_away_body(const std::shared_ptr<Recording>& body) {
    if (Result<void> ended = end_body_recording(*body); !ended && !body->device->config->forked()) {
        give_up_recording(*body);
    }
    leave_body(*body->outer, false);
}

}  // namespace detail

Result<Stream> Capture::stream() const {
    Result<std::shared_ptr<detail::StreamState>> origin = origin_of(recording_.get());
    if (!origin) return std::move(origin).error();
    return Stream(*std::move(origin));
}

Result<Capture> Capture::begin_body(const std::shared_ptr<detail::BufferState>& word, bool loops) {
    const char* const what = name_of_body(loops);
    if (Result<void> well = usable(recording_.get(), what); !well) return std::move(well).error();
    Result<std::shared_ptr<detail::StreamState>> origin = origin_of(recording_.get());
    if (!origin) return std::move(origin).error();
    detail::StreamState& around = **origin;
    if (Result<void> fits = refuse_word(around, word); !fits) return std::move(fits).error();
    const Result<std::optional<detail::CallInFlight>> loading = enter_loading(*around.device, what);
    if (!loading) return loading.error();
    // A stream of the body's own: two streams' locks are never held at once, and nobody else knows this one yet.
    const std::shared_ptr<detail::StreamState> inside = detail::StreamState::make(around.device, 0);
    around.device->add_stream(inside);
    platform::StreamHandle handle = platform::StreamHandle::none;
    {
        const std::lock_guard lock(inside->mutex);
        if (Result<void> opened = inside->open_handle(); !opened) return std::move(opened).error();
        handle = inside->handle;
    }
    auto body = std::make_shared<detail::Recording>(inside, handle);
    body->body = {loops, platform::GraphHandle::none, word->memory->device_address, 0, &detail::set_condition};
    body->outer = recording_;
    {
        const std::lock_guard lock(around.mutex);
        Result<detail::HeldCapture> held = around.capture();
        if (!held) return std::move(held).error();
        if (!*held) return make_error<errors::recording_into_ended_capture>();
        const platform::Status status =
            around.device->driver->captures()->begin_body(around.handle, handle, body->body);
        if (status.code == Code::capture_error) (*held)->body_failed = true;
        if (status.code == Code::unsupported) return make_error<errors::no_conditional_nodes>(what);
        if (!status.ok()) return around.device->failure(status, what);
        (*held)->conditional = true;
        (*held)->body_open = true;
    }
    around.device->books->captures.begun();
    const std::lock_guard lock(inside->mutex);
    inside->recording = body;
    return Capture(std::move(body));
}

Result<void> Capture::end_body(Capture& inside, const std::shared_ptr<detail::BufferState>& word) {
    const std::shared_ptr<detail::Recording> body = inside.recording_;
    if (!body || body->outer != recording_) {
        if (recording_) leave_body(*recording_, false);
        return make_error<errors::body_capture_moved_away>();
    }
    const char* const what = name_of_body(body->body.loops);
    Result<std::shared_ptr<detail::StreamState>> stream = origin_of(body.get());
    if (!stream) return std::move(stream).error();
    std::vector<detail::RecordedUse> uses;
    {
        const std::lock_guard lock((*stream)->mutex);
        Result<detail::HeldCapture> held = (*stream)->capture();  // refuses while a nested body is open
        if (!held) return std::move(held).error();
        const platform::Status finished = body->device->driver->captures()->finish_body((*stream)->handle, body->body);
        if (!finished.ok()) return body->device->failure(finished, what);
        uses = detail::merged_uses(body->operations);
    }
    inside.recording_.reset();
    if (Result<void> ended = end_body_recording(*body); !ended) {
        detail::give_up_recording(*body);  // nothing, unless it is still open
        return ended;
    }
    Result<std::shared_ptr<detail::StreamState>> origin = origin_of(recording_.get());
    if (!origin) return std::move(origin).error();
    detail::Operation operation(**origin, what, nullptr);
    operation.uses(word, ArgumentUse::read, 0);
    for (const detail::RecordedUse& use : uses) operation.uses(use.buffer, perhaps(use.use), 0);
    // The node is there already.
    Result<std::uint64_t> recorded = operation.issue([&] {
        const bool open = (*origin)->recording == recording_;
        return open ? platform::Status{} : platform::Status{Code::capture_error, 0, "end_body"};
    });
    if (recorded) return {};
    leave_body(*recording_, false);
    return std::move(recorded).error();
}

Result<void> Capture::append_conditional(const std::shared_ptr<detail::BufferState>& word, const Graph& graph,
                                         bool loops) {
    const char* const what = name_of_body(loops);
    if (Result<void> well = usable(recording_.get(), what); !well) return well;
    Result<std::shared_ptr<detail::StreamState>> origin = origin_of(recording_.get());
    if (!origin) return std::move(origin).error();
    detail::StreamState& stream = **origin;
    detail::DriverGraph& body = *graph.state()->driver;
    if (Result<void> fits = refuse_body(stream, body); !fits) return fits;
    if (Result<void> fits = refuse_word(stream, word); !fits) return fits;
    const Result<std::optional<detail::CallInFlight>> loading = enter_loading(*stream.device, what);
    if (!loading) return loading.error();
    std::vector<detail::RecordedUse> uses = detail::merged_uses(graph.state()->operations);
    detail::Operation operation(stream, what, nullptr);
    operation.uses(word, ArgumentUse::read, 0);
    for (const detail::RecordedUse& use : uses) {
        operation.uses(use.buffer, perhaps(use.use), 0);
    }
    operation.keeps_code(body.code);
    const std::lock_guard lock(body.mutex);
    platform::Status status;
    Result<std::uint64_t> issued = operation.issue([&] {
        if (stream.recording == nullptr) return platform::Status{Code::capture_error, 0, "append_conditional"};
        const platform::ConditionalBody request{loops, body.handle, word->memory->device_address, 0,
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
    if (recording_->outer) {
        if (Result<void> fits = refuse_body(*stream.state(), *graph.state()->driver); !fits) return fits;
    }
    return append_to(*stream.state(), *graph.state());
}

}  // namespace v0
}  // namespace isthmus
