// SPDX-License-Identifier: Apache-2.0
// Creates streams, submits to them, waits for them, and destroys them while they have work.
#include "core.hpp"

#include <algorithm>
#include <utility>

namespace isthmus::sim::engine {

void Core::adopt(Device& device, const WorkRef& tail, bool blocking) {
    std::erase_if(device.orphans, [](const Orphan& orphan) { return orphan.tail->done; });
    if (tail && !tail->done) device.orphans.push_back({tail, blocking});
}

StreamId Engine::legacy_stream(int device) const {
    return core_->devices[device].legacy;  // constant after the engine's creation
}

StreamId Engine::create_stream(int device, StreamOptions options) {
    Core::Lock lock(*core_);
    Stream stream;
    stream.id = StreamId{core_->next_id++};
    stream.device = device;
    stream.options = options;
    const StreamId id = stream.id;
    core_->streams.emplace(static_cast<std::uint64_t>(id), std::move(stream));
    return id;
}

void Engine::set_priority(StreamId id, int priority) {
    Core::Lock lock(*core_);
    if (Stream* const stream = core_->find(id)) stream->options.priority = priority;
}

int Engine::destroy_stream(StreamId id) {
    Core::Lock lock(*core_);
    Stream* stream = core_->find(id);
    if (!stream) return code::invalid_handle;
    Device& device = core_->devices[stream->device];
    if (device.legacy == id) return code::not_permitted;
    if (stream->capture) leave_capture(*core_, *stream);
    core_->adopt(device, stream->tail, stream->options.blocking);
    core_->streams.erase(static_cast<std::uint64_t>(id));
    return code::ok;
}

bool Engine::stream_exists(StreamId stream) const {
    Core::Lock lock(*core_);
    return core_->find(stream) != nullptr;
}

int Engine::stream_device(StreamId id) const {
    Core::Lock lock(*core_);
    const Stream* stream = core_->find(id);
    return stream ? stream->device : -1;
}

int Engine::submit(StreamId id, Operation operation, WorkRef* work) {
    Core::Lock lock(*core_);
    Stream* stream = core_->find(id);
    if (!stream) return code::invalid_handle;
    if (operation.device < 0) operation.device = stream->device;
    if (stream->capture) {
        if (stream->capture->invalidated) return code::capture_invalidated;
        stream->capture_tail = {stream->capture->graph.add(std::move(operation), stream->capture_tail)};
        return code::ok;
    }
    if (const int code = core_->devices[stream->device].code; code != code::ok) return code;
    WorkRef submitted = core_->append(*stream, std::move(operation));
    if (work) *work = std::move(submitted);
    return code::ok;
}

int Engine::query(StreamId id) {
    Core::Lock lock(*core_);
    Stream* stream = core_->find(id);
    if (!stream) return code::invalid_handle;
    if (const int code = core_->devices[stream->device].code; code != code::ok) return code;
    if (stream->tail && !stream->tail->done) return code::not_ready;
    if (stream->tail) core_->observe(*stream->tail);
    return std::exchange(stream->failure, code::ok);
}

int Engine::synchronize(StreamId id) {
    Core::Lock lock(*core_);
    Stream* stream = core_->find(id);
    if (!stream) return code::invalid_handle;
    const WorkRef tail = stream->tail;
    const int code = core_->await(lock, tail, stream->device);
    if (code != code::ok) return code;
    stream = core_->find(id);  // another thread may have destroyed it meanwhile
    return stream ? std::exchange(stream->failure, code::ok) : code::ok;
}

int Engine::synchronize(const WorkRef& work) {
    if (!work) return code::ok;
    Core::Lock lock(*core_);
    const int code = core_->await(lock, work, work->operation.device);
    return code != code::ok ? code : work->code;
}

int Engine::synchronize_device(int index) {
    Core::Lock lock(*core_);
    Device& device = core_->devices[index];
    const std::uint64_t sequence = core_->last_sequence;
    std::erase_if(device.orphans, [](const Orphan& orphan) { return orphan.tail->done; });
    std::vector<WorkRef> tails;
    for (const auto& [id, stream] : core_->streams) {
        if (stream.device == index) tails.push_back(stream.tail);
    }
    for (const Orphan& orphan : device.orphans) tails.push_back(orphan.tail);
    for (const WorkRef& tail : tails) {
        if (const int code = core_->await(lock, tail, index); code != code::ok) return code;
    }
    if (const int code = core_->await(lock, nullptr, index); code != code::ok) return code;
    core_->observe_device(index, sequence);
    int failure = code::ok;
    for (auto& [id, stream] : core_->streams) {
        if (stream.device != index) continue;
        const int code = std::exchange(stream.failure, code::ok);
        if (failure == code::ok) failure = code;
    }
    return failure;
}

}  // namespace isthmus::sim::engine
