// SPDX-License-Identifier: Apache-2.0
// Graph and GraphInstance: lifetime, and launching the recorded work as one operation that uses all of its buffers.
#include <isthmus/graph.hpp>
#include <isthmus/stream.hpp>

#include "composed.hpp"
#include "device_state.hpp"
#include "graph_dot.hpp"
#include "graph_errors.hpp"
#include "graph_state.hpp"
#include "launch_access.hpp"
#include "operation.hpp"
#include "process.hpp"
#include "stream_state.hpp"
#include "told.hpp"

#include <isthmus/parameter_name.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

namespace {
// Destruction calls the driver, which refuses calls from host functions: deferred there, as for streams and buffers
// (S20).
template <class T>
void end_of(T* ended) {
    if (process::here.in_host_function && !ended->device->config->forked()) {
        ended->device->books->after_host_functions.put_off([ended] { delete ended; });
    } else {
        delete ended;
    }
}
}  // namespace

std::shared_ptr<DriverGraph> DriverGraph::make(std::shared_ptr<DeviceState> owner, platform::GraphHandle recorded,
                                               std::uint64_t recording) {
    return {new DriverGraph(std::move(owner), recorded, recording), end_of<DriverGraph>};
}

std::shared_ptr<InstanceState> InstanceState::make(const GraphState& graph, platform::GraphInstanceHandle handle) {
    return {new InstanceState(graph, handle), end_of<InstanceState>};
}

DriverGraph::~DriverGraph() {
    if (device->config->forked() || is_lost()) return;
    const platform::Status status = device->driver->captures()->destroy(handle);
    if (!status.ok()) device->config->say(Severity::warning, device->failure(status, "destroying a graph").text());
}

bool DriverGraph::is_lost() const noexcept {
    return std::any_of(devices.begin(), devices.end(),
                       [](const std::shared_ptr<DeviceState>& takes_part) { return takes_part->is_lost(); });
}

Result<void> DriverGraph::usable(const char* what) const {
    if (device->bars(rules::PublicCall::use_graph)) return device->refusal(rules::PublicCall::use_graph, what);
    for (const std::shared_ptr<DeviceState>& takes_part : devices) {
        if (takes_part != device && takes_part->bars(rules::PublicCall::use_graph))
            return takes_part->refusal(rules::PublicCall::use_graph, what);
    }
    return {};
}

const std::shared_ptr<DeviceState>& DriverGraph::device_at(std::size_t index) const noexcept {
    for (const std::shared_ptr<DeviceState>& takes_part : devices) {
        if (takes_part->index == index) return takes_part;
    }
    return device;
}

Result<platform::GraphInstanceHandle> DriverGraph::instantiate() {
    if (Result<void> well = usable("instantiating a graph"); !well) return std::move(well).error();
    const std::lock_guard lock(mutex);
    // The driver returns 801: a graph's own memory has the graph's addresses, not the instance's.
    if (allocates && instances > 0) return make_error<errors::graph_allocates_and_has_instance>();
    if (conditional && instances > 0) {  // the driver returns 801 (observed)
        return make_error<errors::graph_is_conditional_and_has_instance>();
    }
    platform::GraphInstanceHandle instance = platform::GraphInstanceHandle::none;
    const platform::Status status = device->driver->captures()->instantiate(handle, instance);
    if (!status.ok()) return device->failure(status, "instantiating a graph");
    ++instances;
    return instance;
}

void DriverGraph::end_instance(platform::GraphInstanceHandle instance) {
    if (!is_lost()) {
        const platform::Status status = device->driver->captures()->destroy(instance);
        if (!status.ok()) {
            device->config->say(Severity::warning, device->failure(status, "destroying a graph instance").text());
        }
    }
    const std::lock_guard lock(mutex);
    --instances;  // last: until the instance is destroyed, the driver refuses another one of a graph that allocates
}

std::vector<InstanceOperation> instance_operations(const std::vector<RecordedOperation>& recorded) {
    std::vector<InstanceOperation> made;
    made.reserve(recorded.size());
    for (const RecordedOperation& one : recorded) {
        InstanceOperation operation{one.name, one.kernel, one.device, one.node, one.after, {}, {}};
        for (const RecordedUse& use : one.uses)
            operation.uses.push_back({use.buffer.get(), use.use, use.argument, use.range});
        made.push_back(std::move(operation));
    }
    return made;
}

void InstanceState::Made::launched(const std::shared_ptr<StreamState>& stream, std::uint64_t position) {
    for (BufferState::Use& earlier : launches) {
        if (earlier.stream != stream) continue;
        earlier.last = position;
        return;
    }
    // Streams may come and go while the instance lives: drop those whose launches have ended.
    std::erase_if(launches, [](const BufferState::Use& earlier) { return earlier.stream->reached(earlier.last); });
    launches.push_back({{position, position, position}, stream});
}

bool InstanceState::Made::idle() const {
    return from->is_lost() || std::all_of(launches.begin(), launches.end(), [](const BufferState::Use& launch) {
               return launch.stream->reached(launch.last);
           });
}

bool InstanceState::Made::poll_idle() const {
    if (idle()) return !from->is_lost();
    // A stream that cannot be queried now, such as an external one that was destroyed, counts as running.
    for (const BufferState::Use& launch : launches) (void)launch.stream->poll();
    return idle() && !from->is_lost();
}

Result<void> InstanceState::Made::wait_for() {
    for (const BufferState::Use& launch : launches) {
        // A failed call may succeed when repeated; work that exceeds the timeout hangs.
        for (int tries = 3; !from->is_lost();) {  // a lost device runs nothing more
            Result<void> waited = launch.stream->wait_until(launch.last, Wait{});
            if (waited) break;
            if ((--tries == 0 || waited.code() == Code::timed_out) && !from->is_lost()) return waited;
        }
    }
    return {};
}

void InstanceState::Made::destroy() {
    const bool ended = std::all_of(launches.begin(), launches.end(),
                                   [](const BufferState::Use& launch) { return launch.stream->reached(launch.last); });
    if (!ended && from->is_lost()) {
        // A fault does not stop a host function that is running. Its graph may be destroyed, and the device with it.
        for (const std::shared_ptr<DriverGraph>& graph : closures_of) {
            for (const std::shared_ptr<void>& closure : graph->closures) process::keep_until_exit(closure);
        }
    }
    for (const std::shared_ptr<DriverGraph>& graph : closures_of) {
        for (const std::shared_ptr<HeldCode>& code : graph->code) {
            for (const BufferState::Use& launch : launches) code->used_until(*launch.stream, launch.last);
        }
    }
    from->end_instance(handle);
}

InstanceState::InstanceState(const GraphState& graph, platform::GraphInstanceHandle handle)
    : device(graph.driver->device), captures(*device->driver->captures()) {
    made.from = graph.driver;
    made.handle = handle;
    adopt(graph);
}

// Waits for running launches; an instance that hangs is given up with all that it holds (R5).
InstanceState::~InstanceState() {
    if (made.from->device->config->forked()) return;
    replaced.push_back(std::move(made));
    for (Made& one : replaced) {
        if (Result<void> waited = one.wait_for(); !waited) {
            one.from->device->config->say(Severity::error,
                                          composed("a graph instance was given up: {}", waited.error().text()));
            process::keep_until_exit(std::make_shared<Made>(std::move(one)));
        } else {
            one.destroy();
        }
    }
}

void InstanceState::adopt(const GraphState& graph) {
    GraphUses uses;
    for (const RecordedOperation& operation : graph.operations) {
        for (const RecordedUse& use : operation.uses) uses.add(use.buffer, use.use);
    }
    made.uses = std::move(uses);
    as_of = graph.driver;
    std::vector<std::shared_ptr<DriverGraph>>& kept = made.closures_of;
    const bool holds = !graph.driver->closures.empty() || !graph.driver->code.empty();
    if (holds && std::find(kept.begin(), kept.end(), graph.driver) == kept.end()) {
        kept.push_back(graph.driver);
    }
    operations = instance_operations(graph.operations);
}

std::vector<InstanceState::Made> InstanceState::end_replaced() {
    std::vector<Made> over, running;
    for (Made& one : replaced) {
        const bool idle = one.idle();
        if (idle) one.destroy();
        (idle ? over : running).push_back(std::move(one));
    }
    replaced = std::move(running);
    return over;
}

}  // namespace detail

namespace {

// The CPU device opens every buffer like a host view, for the duration of the launch.
using Scopes = detail::Few<detail::ViewScope, 8>;
Result<void> open_all(const detail::GraphUses& uses, Scopes& scopes) {
    for (const detail::GraphUses::Entry& entry : uses.entries()) {
        Result<detail::ViewScope> scope = detail::open_for_launch(*entry.held.buffer, entry.held.use);
        if (!scope) {
            const Error& error = scope.error();
            return make_error_as<errors::graph_buffer_not_usable>(error.code(), detail::message_in_words(error),
                                                                  detail::remedy_in_words(error));
        }
        scopes.push_back(std::move(scope).value());
    }
    return {};
}

// Managed memory of a phase-guarded device (89=0) is attached to the stream of the launch (K6), which has to be one of
// that device: cuStreamAttachMemAsync gives the memory to that stream's device alone.
Result<void> refuse_attached_elsewhere(const detail::StreamState& stream, const detail::GraphUses& uses) {
    for (const detail::GraphUses::Entry& entry : uses.entries()) {
        const detail::BufferState& buffer = *entry.held.buffer;
        if (buffer.memory->path != LaunchPath::attach || buffer.device == stream.device || stream.device->synchronous) {
            continue;
        }
        return make_error<errors::launched_graph_attaches_elsewhere>(named(*buffer.device), named(*stream.device));
    }
    return {};
}

// Fast path of most replays, like launch_at_once() for kernels. Conditions: one device; the stream launched the
// instance last and owes no fence; the buffers are device-only, and this stream has used them before. false: nothing
// was done. Requires the instance's lock.
bool replay_at_once(detail::StreamState& stream, detail::InstanceState& launched, platform::Status& status) {
    detail::InstanceState::Made& made = launched.made;
    if (made.launches.size() != 1 || made.launches.front().stream.get() != &stream || !launched.replaced.empty() ||
        made.from->devices.size() != 1 || stream.device->books->order != nullptr || stream.external) {
        return false;
    }
    const std::lock_guard lock(stream.mutex);
    if (stream.handle == platform::StreamHandle::none || !stream.tail.empty() || stream.recording != nullptr) {
        return false;
    }
    for (const detail::GraphUses::Entry& entry : made.uses.entries()) {
        if (!entry.held.buffer->only_for(stream, *stream.device)) return false;
    }
    // Before the call: a concurrent release of a buffer then waits for this launch.
    const std::uint64_t position = stream.advance("a graph");
    stream.gives("a graph");
    for (const detail::GraphUses::Entry& entry : made.uses.entries()) entry.held.buffer->first_use.raise(position);
    status = launched.captures.launch(made.handle, stream.handle);
    if (status.ok()) made.launches.front().last = position;
    return true;
}

detail::DotOperation drawn(const detail::DriverGraph& graph, const detail::RecordedOperation& operation) {
    detail::DotOperation node;
    node.name = operation.name;
    node.kernel = operation.kernel != nullptr;
    node.stream = operation.stream_id;
    node.device = graph.device_at(operation.device)->driver->facts().name;
    node.after = operation.after;
    for (const detail::RecordedUse& use : operation.uses) {
        const detail::BufferState& buffer = *use.buffer;
        const auto address = buffer.memory->device_address != 0 ? buffer.memory->device_address
                                                                : reinterpret_cast<std::uintptr_t>(buffer.memory->host);
        char where[40];
        (void)std::snprintf(where, sizeof where, "0x%" PRIx64, static_cast<std::uint64_t>(address));
        node.arguments.push_back(
            {node.kernel ? std::string(parameter_name(*operation.kernel, use.argument)) : std::string(), use.use,
             composed("{} bytes of {} at {}", buffer.memory->bytes, detail::described(buffer), where)});
    }
    return node;
}

[[gnu::cold]] void tell_uses(detail::StreamState& stream, const detail::InstanceState& launched) noexcept {
    for (const detail::GraphUses::Entry& entry : launched.made.uses.entries()) {
        detail::tell_use(stream, *entry.held.buffer, entry.held.use);
    }
}

// Stream::launch() without the observer.
Result<void> launch_untold(detail::StreamState& stream, detail::InstanceState& launched) {
    if (stream.device->bars(rules::PublicCall::launch_graph))
        return stream.device->refusal(rules::PublicCall::launch_graph);
    std::vector<detail::InstanceState::Made> ended_earlier;  // destroyed after the lock is released
    const std::lock_guard lock(launched.mutex);
    if (stream.device->observer()) [[unlikely]]
        tell_uses(stream, launched);
    if (platform::Status status;
        !stream.device->synchronous && launched.device == stream.device && replay_at_once(stream, launched, status)) {
        if (!status.ok()) return stream.device->failure(status, "a graph");
        return {};
    }
    // closed before the lock is released: a thread that waits for it must not find them open
    Scopes scopes;
    const detail::DriverGraph& graph = *launched.made.from;
    if (std::find(graph.devices.begin(), graph.devices.end(), stream.device) == graph.devices.end()) {
        return make_error<errors::launched_graph_of_another_device>();
    }
    if (Result<void> well = graph.usable("launching a graph"); !well) return well;
    if (Result<void> own = refuse_attached_elsewhere(stream, launched.made.uses); !own) return own;
    if (stream.recording_id() != 0) return make_error<errors::instance_on_captured_stream>();
    if (stream.device->synchronous) {
        if (Result<void> opened = open_all(launched.made.uses, scopes); !opened) return opened;
    }
    detail::Operation operation(stream, "a graph", nullptr);
    if (!stream.device->synchronous) {
        for (const detail::GraphUses::Entry& entry : launched.made.uses.entries()) {
            operation.uses(entry.held.buffer, entry.held.use, 0);
        }
        if (stream.device->books->order != nullptr) {
            for (const detail::InstanceOperation& inside : launched.operations) {
                for (const detail::InstanceOperation::Use& use : inside.uses) {
                    operation.within({use.buffer, use.use, use.argument, use.range, inside.name, inside.kernel});
                }
            }
            // A launch is ordered after the instance's earlier launches on any stream (cuGraphLaunch).
            for (const detail::BufferState::Use& launch : launched.made.launches) {
                operation.driver_orders_behind(*launch.stream, launch.last);
            }
        }
    }
    Result<std::uint64_t> issued = operation.issue([&] {
        // Another thread has begun a capture meanwhile: the driver would return 900 and drop the capture.
        if (stream.recording != nullptr) return platform::Status{Code::capture_error, 0, "cuGraphLaunch"};
        return stream.device->driver->captures()->launch(launched.made.handle, stream.handle);
    });
    if (!issued) return std::move(issued).error();
    launched.made.launched(stream.weak_from_this().lock(), *issued);
    if (!launched.replaced.empty()) ended_earlier = launched.end_replaced();
    return {};
}

}  // namespace

std::size_t Graph::size() const noexcept {
    return state_->operations.size();
}

std::string Graph::dot() const {
    std::vector<detail::DotOperation> operations;
    for (const detail::RecordedOperation& operation : state_->operations) {
        operations.push_back(drawn(*state_->driver, operation));
    }
    return detail::graph_dot(composed("graph {}", state_->driver->id), operations);
}

Result<GraphInstance> Graph::instantiate() const {
    Result<platform::GraphInstanceHandle> made = state_->driver->instantiate();
    if (!made) return std::move(made).error();
    return GraphInstance(detail::InstanceState::make(*state_, *made));
}

Result<void> Stream::launch(const GraphInstance& instance) {
    detail::ObservedSpan span(state_->device->observer(), Span::graph_launch, "a graph",
                              [&] { return state_->observed(); });
    Result<void> done = launch_untold(*state_, *instance.state());
    span.over(done);
    return done;
}

}  // namespace v0
}  // namespace isthmus
