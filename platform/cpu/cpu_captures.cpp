// SPDX-License-Identifier: Apache-2.0
// Captures of CPU streams: participating streams, the position of each event, and the recorded steps.
#include "cpu_captures.hpp"

#include <algorithm>
#include <cerrno>

namespace isthmus::platform::cpu {
namespace {

constexpr Status done{};

template <class Clock>
std::uint64_t steps_of(const Clock& clock, StreamHandle stream) {
    const auto found = clock.find(stream);
    return found == clock.end() ? 0 : found->second;
}

// A branch waits for a point of another: its next step comes after everything before either.
template <class Branch>
void join(Branch& branch, const Branch& point) {
    const auto covers = [](const auto& clock, const auto& other) {
        return std::all_of(other.begin(), other.end(),
                           [&](const auto& entry) { return steps_of(clock, entry.first) >= entry.second; });
    };
    if (covers(branch.before, point.before)) return;
    branch.last = covers(point.before, branch.before) ? point.last : NodeHandle::none;
    for (const auto& [stream, steps] : point.before) {
        branch.before[stream] = std::max(steps_of(branch.before, stream), steps);
    }
}

}  // namespace

// Requires the lock.
std::shared_ptr<CpuCaptures::Capture> CpuCaptures::capture_of(StreamHandle stream) const {
    const auto found = captured_.find(stream);
    return found == captured_.end() ? nullptr : found->second;
}

void CpuCaptures::close(const std::shared_ptr<Capture>& capture) {
    for (const auto& [stream, clock] : capture->streams) captured_.erase(stream);
    open_.fetch_sub(1, std::memory_order_release);
}

Status CpuCaptures::begin(StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    if (capture_of(stream)) return {Code::capture_error, EBUSY, "begin_capture"};
    auto capture = std::make_shared<Capture>();
    capture->origin = stream;
    capture->id = ++last_id_;
    capture->streams[stream];
    captured_[stream] = std::move(capture);
    open_.fetch_add(1, std::memory_order_release);
    return done;
}

// Calls from another thread or stream than the first are refused, and the capture continues; if a forked stream was not
// joined, the capture ends without a graph.
Status CpuCaptures::end(StreamHandle stream, GraphHandle& out) {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Capture> capture = capture_of(stream);
    if (!capture) return {Code::capture_error, EINVAL, "end_capture"};
    if (capture->origin != stream || capture->thread != std::this_thread::get_id()) {
        return {Code::capture_error, EPERM, "end_capture"};
    }
    close(capture);
    const Clock& reached = capture->streams[stream].before;
    for (const auto& [other, branch] : capture->streams) {
        if (steps_of(branch.before, other) > steps_of(reached, other)) {
            return {Code::capture_error, ECHILD, "end_capture"};
        }
    }
    out = static_cast<GraphHandle>(++last_id_);
    graphs_[out] = std::move(capture->steps);
    return done;
}

Status CpuCaptures::state(StreamHandle stream, CaptureState& out) {
    std::uint64_t id = 0;
    return info(stream, out, id);
}

Status CpuCaptures::info(StreamHandle stream, CaptureState& out, std::uint64_t& id) {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Capture> capture = capture_of(stream);
    out = capture ? CaptureState::open : CaptureState::none;
    id = capture ? capture->id : 0;
    return done;
}

Status CpuCaptures::last_node(StreamHandle stream, NodeHandle& out) {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Capture> capture = capture_of(stream);
    out = capture ? capture->streams[stream].last : NodeHandle::none;
    return done;
}

bool CpuCaptures::keep(StreamHandle stream, std::shared_ptr<const Step> step) {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Capture> capture = capture_of(stream);
    if (!capture) return false;
    Branch& branch = capture->streams[stream];
    ++branch.before[stream];
    branch.last = static_cast<NodeHandle>(step->id());
    capture->steps.push_back(std::move(step));
    return true;
}

Status CpuCaptures::launch(const LaunchRequest& request) {
    if (!request.kernel || !request.kernel->twin) return {Code::unsupported, ENOEXEC, "launch"};
    if (open_.load(std::memory_order_acquire) == 0) return run_kernel(request, workers_);
    return keep(request.stream, Step::of(request)) ? done : run_kernel(request, workers_);
}

bool CpuCaptures::recorded(EventHandle event, StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    marks_.erase(event);
    const std::shared_ptr<Capture> capture = capture_of(stream);
    if (!capture) return false;
    marks_[event] = {capture, capture->streams[stream]};
    return true;
}

Status CpuCaptures::waited(StreamHandle stream, EventHandle event) {
    if (open_.load(std::memory_order_acquire) == 0) return done;  // the event's work is done already
    const std::lock_guard lock(mutex_);
    const auto mark = marks_.find(event);
    const std::shared_ptr<Capture> into = capture_of(stream);
    const std::shared_ptr<Capture> from = mark == marks_.end() ? nullptr : mark->second.capture.lock();
    const bool open = from && capture_of(from->origin) == from;
    if (!into && !open) return done;
    if (!open || (into && into != from)) return {Code::capture_error, EXDEV, "wait_event"};
    captured_[stream] = from;
    join(from->streams[stream], mark->second.at);
    return done;
}

Status CpuCaptures::outside(EventHandle event, const char* call) {
    if (open_.load(std::memory_order_acquire) == 0) return done;
    const std::lock_guard lock(mutex_);
    const auto mark = marks_.find(event);
    const std::shared_ptr<Capture> capture = mark == marks_.end() ? nullptr : mark->second.capture.lock();
    if (!capture || capture_of(capture->origin) != capture) return done;
    return {Code::capture_error, EBUSY, call};
}

void CpuCaptures::forget(EventHandle event) {
    const std::lock_guard lock(mutex_);
    marks_.erase(event);
}

// Destroying the capture's first stream closes the capture, which cannot be ended then. Another stream only leaves it;
// its work must still have been joined.
void CpuCaptures::forget(StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Capture> capture = capture_of(stream);
    if (!capture) return;
    if (capture->origin == stream) return close(capture);
    captured_.erase(stream);
}

std::shared_ptr<Instance> CpuCaptures::instance_of(GraphInstanceHandle instance) const {
    const std::lock_guard lock(mutex_);
    const auto found = instances_.find(instance);
    return found == instances_.end() ? nullptr : found->second;
}

Status CpuCaptures::steps_of_graph(GraphHandle graph, const char* call, Steps& out) const {
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find(graph);
    if (found == graphs_.end()) return {Code::invalid_handle, EINVAL, call};
    out = found->second;
    return done;
}

Status CpuCaptures::append(StreamHandle stream, GraphHandle graph) {
    Steps steps;
    if (const Status status = steps_of_graph(graph, "append_graph", steps); !status.ok()) return status;
    const bool kept =
        keep(stream, Step::of([steps = std::move(steps), &workers = workers_] { return cpu::run(steps, workers); }));
    return kept ? done : Status{Code::capture_error, EINVAL, "append_graph"};
}

Status CpuCaptures::append_conditional(StreamHandle stream, const ConditionalBody& request) {
    Steps steps;
    const Status status = steps_of_graph(request.body, "append_conditional", steps);
    if (!status.ok()) return status;
    const auto* const word = reinterpret_cast<const std::int32_t*>(static_cast<std::uintptr_t>(request.word));
    const bool kept =
        keep(stream, Step::of([steps = std::move(steps), word, loops = request.loops, &workers = workers_]() -> Status {
                 // volatile: the body changes the word, which the compiler cannot see.
                 while (*static_cast<const volatile std::int32_t*>(word) != 0) {
                     if (const Status turn = cpu::run(steps, workers); !turn.ok()) return turn;
                     if (!loops) break;
                 }
                 return done;
             }));
    return kept ? done : Status{Code::capture_error, EINVAL, "append_conditional"};
}

// The body becomes a step of the outer capture when it ends: its steps are complete then.
Status CpuCaptures::begin_body(StreamHandle outer, StreamHandle inside, ConditionalBody& /*body*/) {
    CaptureState now = CaptureState::none;
    if (const Status status = state(outer, now); !status.ok()) return status;
    if (now != CaptureState::open) return {Code::capture_error, EINVAL, "begin_body"};
    return begin(inside);
}

Status CpuCaptures::finish_body(StreamHandle /*inside*/, const ConditionalBody& /*body*/) {
    return done;  // the word is read before each turn
}

Status CpuCaptures::end_body(StreamHandle outer, StreamHandle inside, const ConditionalBody& body) {
    ConditionalBody whole = body;
    if (const Status ended = end(inside, whole.body); !ended.ok()) return ended;
    const Status added = append_conditional(outer, whole);
    const Status destroyed = destroy(whole.body);
    return added.ok() ? destroyed : added;
}

Status CpuCaptures::instantiate(GraphHandle graph, GraphInstanceHandle& out) {
    Steps steps;
    if (const Status status = steps_of_graph(graph, "instantiate", steps); !status.ok()) return status;
    const std::lock_guard lock(mutex_);
    out = static_cast<GraphInstanceHandle>(++last_id_);
    instances_[out] = std::make_shared<Instance>(std::move(steps));
    return done;
}

Status CpuCaptures::launch(GraphInstanceHandle instance, StreamHandle stream) {
    const std::shared_ptr<Instance> launched = instance_of(instance);
    if (!launched) return {Code::invalid_handle, EINVAL, "launch_graph"};
    CaptureState now = CaptureState::none;
    if (const Status status = state(stream, now); !status.ok()) return status;
    if (now != CaptureState::none) return {Code::capture_error, EBUSY, "launch_graph"};
    return launched->run(workers_);
}

Status CpuCaptures::resolve_for_nodes(const KernelInfo& kernel, FunctionHandle& out) {
    if (!kernel.twin) return {Code::unsupported, ENOEXEC, "resolve"};
    out = static_cast<FunctionHandle>(reinterpret_cast<std::uintptr_t>(&kernel));
    return done;
}

Status CpuCaptures::set_kernel_arguments(GraphInstanceHandle instance, NodeHandle node, const LaunchRequest& request) {
    const std::shared_ptr<Instance> changed = instance_of(instance);
    if (!changed) return {Code::invalid_handle, EINVAL, "set_kernel_arguments"};
    return changed->set_kernel(static_cast<std::uint64_t>(node), request);
}

Status CpuCaptures::update(GraphInstanceHandle instance, GraphHandle graph, const char*& why) {
    why = "";
    const std::shared_ptr<Instance> changed = instance_of(instance);
    if (!changed) return {Code::invalid_handle, EINVAL, "update_graph"};
    Steps steps;
    if (const Status status = steps_of_graph(graph, "update_graph", steps); !status.ok()) return status;
    why = changed->update(std::move(steps));
    return *why == '\0' ? done : Status{Code::invalid_argument, EINVAL, "update_graph"};
}

Status CpuCaptures::destroy(GraphHandle graph) {
    const std::lock_guard lock(mutex_);
    return graphs_.erase(graph) == 1 ? done : Status{Code::invalid_handle, EINVAL, "destroy_graph"};
}

Status CpuCaptures::destroy(GraphInstanceHandle instance) {
    const std::lock_guard lock(mutex_);
    return instances_.erase(instance) == 1 ? done : Status{Code::invalid_handle, EINVAL, "destroy_graph"};
}

}  // namespace isthmus::platform::cpu
