// SPDX-License-Identifier: Apache-2.0
// Capture: streams whose operations are recorded into a graph, how further streams join, and what ends or invalidates a
// capture.
#include "core.hpp"

#include <algorithm>
#include <utility>

namespace isthmus::sim::engine {

namespace {

CaptureMode& thread_mode() noexcept {
    static thread_local CaptureMode mode = CaptureMode::global;
    return mode;
}

// Removes every stream from the capture. Events keep a reference to it, so that they still count as captured.
Graph dissolve(Core& core, const std::shared_ptr<Capture>& capture) {
    capture->ended = true;
    --core.open_captures;
    for (auto& [id, stream] : core.streams) {
        if (stream.capture != capture) continue;
        stream.capture = nullptr;
        stream.capture_tail.clear();
    }
    return std::exchange(capture->graph, Graph{});
}

// cuThreadExchangeStreamCaptureMode: which captures forbid this thread a potentially unsafe call.
bool forbids_unsafe_call(const Capture& capture) {
    const CaptureMode mode = thread_mode();
    if (mode == CaptureMode::relaxed || capture.mode == CaptureMode::relaxed) return false;
    if (capture.owner == std::this_thread::get_id()) return true;
    return mode == CaptureMode::global && capture.mode == CaptureMode::global;
}

}  // namespace

// A destroyed stream leaves the capture, which continues; its work must still be joined (observed). Without its first
// stream the capture cannot be ended any more, so it is dissolved.
void leave_capture(Core& core, Stream& stream) {
    const std::shared_ptr<Capture> capture = stream.capture;
    if (capture->origin == stream.id) {
        core.graveyard.push_back(std::make_shared<const Graph>(dissolve(core, capture)));
    } else {
        capture->left.push_back({stream.id, std::move(stream.capture_tail)});
    }
}

void add_once(std::vector<NodeIndex>& nodes, NodeIndex node) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

int Engine::begin_capture(StreamId id, CaptureMode mode, Graph into, std::vector<NodeIndex> dependencies) {
    Core::Lock lock(*core_);
    Stream* stream = core_->find(id);
    if (!stream) return code::invalid_handle;
    if (stream->capture) return code::illegal_state;
    if (stream->options.legacy == id) return code::capture_unsupported;
    if (const int code = core_->devices[stream->device].code; code != code::ok) return code;
    auto capture = std::make_shared<Capture>();
    capture->id = core_->next_id++;
    capture->mode = mode;
    capture->owner = std::this_thread::get_id();
    capture->origin = id;
    capture->graph = std::move(into);
    stream->capture = std::move(capture);
    stream->capture_tail = std::move(dependencies);
    ++core_->open_captures;
    return code::ok;
}

namespace {

// The streams whose work does not precede the end of the capture.
std::vector<StreamId> find_unjoined(const Core& core, const std::shared_ptr<Capture>& capture, const Stream& origin) {
    std::vector<NodeIndex> from = origin.capture_tail;
    from.insert(from.end(), capture->excused.begin(), capture->excused.end());
    const std::vector<bool> joined = capture->graph.ancestors(from);
    std::vector<StreamId> unjoined;
    const auto check = [&](StreamId id, const std::vector<NodeIndex>& tail) {
        if (!std::all_of(tail.begin(), tail.end(), [&](NodeIndex node) { return joined[node]; })) {
            unjoined.push_back(id);
        }
    };
    for (const auto& [key, stream] : core.streams) {
        if (stream.capture == capture) check(stream.id, stream.capture_tail);
    }
    for (const auto& [id, tail] : capture->left) check(id, tail);
    return unjoined;
}

}  // namespace

int Engine::end_capture(StreamId id, Graph& graph, std::vector<StreamId>* unjoined) {
    Core::Lock lock(*core_);
    Stream* stream = core_->find(id);
    if (!stream) return code::invalid_handle;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return code::illegal_state;
    if (capture->origin != id) {  // observed: the capture is lost, and must still be ended
        capture->invalidated = true;
        return code::capture_unmatched;
    }
    int code = code::ok;
    if (capture->mode != CaptureMode::relaxed && capture->owner != std::this_thread::get_id()) {
        code = code::capture_wrong_thread;  // observed: the capture is over nevertheless
    } else if (capture->invalidated) {
        code = code::capture_invalidated;
    } else if (std::vector<StreamId> missing = find_unjoined(*core_, capture, *stream); !missing.empty()) {
        code = code::capture_unjoined;
        if (unjoined) *unjoined = std::move(missing);
    }
    Graph captured = dissolve(*core_, capture);
    lock.release();
    if (code == code::ok) graph = std::move(captured);
    return code;
}

CaptureInfo Engine::capture_info(StreamId id) const {
    Core::Lock lock(*core_);
    const Stream* stream = core_->find(id);
    CaptureInfo info;
    if (!stream || !stream->capture) return info;
    info.state = stream->capture->invalidated ? CaptureState::invalidated : CaptureState::active;
    info.id = stream->capture->id;
    info.mode = stream->capture->mode;
    info.origin = stream->capture->origin;
    info.owned_by_this_thread = stream->capture->owner == std::this_thread::get_id();
    info.dependencies = stream->capture_tail;
    return info;
}

// Documented: nodes that this removes from the set need not be joined any more.
int Engine::set_capture_dependencies(StreamId id, std::vector<NodeIndex> nodes) {
    Core::Lock lock(*core_);
    Stream* stream = core_->find(id);
    if (!stream) return code::invalid_handle;
    if (!stream->capture) return code::illegal_state;
    if (stream->capture->invalidated) return code::capture_invalidated;
    for (NodeIndex node : nodes) {
        if (node >= stream->capture->graph.size()) return code::invalid_value;
    }
    for (NodeIndex node : std::exchange(stream->capture_tail, std::move(nodes))) {
        const auto& kept = stream->capture_tail;
        if (std::find(kept.begin(), kept.end(), node) == kept.end()) add_once(stream->capture->excused, node);
    }
    return code::ok;
}

int Engine::invalidate_capture(StreamId id) {
    Core::Lock lock(*core_);
    Stream* stream = core_->find(id);
    if (!stream) return code::invalid_handle;
    if (!stream->capture) return code::illegal_state;
    stream->capture->invalidated = true;
    return code::ok;
}

bool Engine::invalidate_captures(StreamId legacy) {
    Core::Lock lock(*core_);
    if (core_->open_captures == 0) return false;
    bool any = false;
    for (const auto& [id, stream] : core_->streams) {
        if (stream.options.legacy != legacy || !stream.capture) continue;
        stream.capture->invalidated = true;
        any = true;
    }
    return any;
}

int Engine::unsafe_call() {
    Core::Lock lock(*core_);
    if (core_->open_captures == 0) return code::ok;
    int code = code::ok;
    for (const auto& [id, stream] : core_->streams) {
        if (!stream.capture || !forbids_unsafe_call(*stream.capture)) continue;
        stream.capture->invalidated = true;
        code = code::capture_unsupported;
    }
    return code;
}

CaptureMode Engine::exchange_thread_capture_mode(CaptureMode mode) {
    return std::exchange(thread_mode(), mode);
}

bool Engine::would_join_capture(StreamId legacy) const {
    Core::Lock lock(*core_);
    return core_->open_captures != 0 &&
           std::any_of(core_->streams.begin(), core_->streams.end(), [&](const auto& entry) {
               const Stream& stream = entry.second;
               return stream.options.legacy == legacy && stream.options.blocking && stream.capture &&
                      !stream.capture->invalidated;
           });
}

Graph* Engine::lock_capture_graph(StreamId id, int& code) {
    core_->mutex.lock();
    Stream* stream = core_->find(id);
    code = !stream ? code::invalid_handle : !stream->capture ? code::illegal_state : code::ok;
    if (code == code::ok && stream->capture->invalidated) code = code::capture_invalidated;
    if (code == code::ok) return &stream->capture->graph;
    core_->mutex.unlock();
    return nullptr;
}

void Engine::unlock_capture_graph() {
    core_->mutex.unlock();
}

}  // namespace isthmus::sim::engine
