// SPDX-License-Identifier: Apache-2.0
// Creates streams, submits to them, waits for them, and destroys them while they have work.
#include "core.hpp"

#include <algorithm>
#include <utility>

namespace isthmus::sim::engine {

void Core::adopt(Device& device, Orphan orphan) {
    std::erase_if(device.orphans, [](const Orphan& other) { return other.tail->done; });
    if (orphan.tail && !orphan.tail->done) device.orphans.push_back(std::move(orphan));
}

Stream& Core::add_stream(int device, const StreamOptions& given) {
    Stream stream;
    stream.id = StreamId{next_id++};
    stream.device = device;
    stream.options = given;
    return streams.emplace(static_cast<std::uint64_t>(stream.id), std::move(stream)).first->second;
}

StreamId Engine::legacy_stream(int device) const {
    return core_->devices[device].legacy;  // constant after the engine's creation
}

StreamId Engine::create_stream(int device, StreamOptions options) {
    Core::Lock lock(*core_);
    if (options.legacy == StreamId::none) options.legacy = core_->devices[device].legacy;
    return core_->add_stream(device, options).id;
}

StreamId Engine::create_legacy_stream(int device) {
    Core::Lock lock(*core_);
    Stream& stream = core_->add_stream(device, {});
    return stream.options.legacy = stream.id;
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
    core_->adopt(device, {stream->tail, stream->options.blocking, stream->options.legacy});
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

int Core::wait_for_all(Lock& lock, int index, StreamId legacy) {
    Device& device = devices[index];
    const std::uint64_t sequence = last_sequence;
    std::erase_if(device.orphans, [](const Orphan& orphan) { return orphan.tail->done; });
    bool all = true;  // of the device's streams
    std::vector<WorkRef> tails;
    for (const auto& [id, stream] : streams) {
        if (stream.device != index) continue;
        const bool wanted = legacy == StreamId::none || stream.options.legacy == legacy;
        if (wanted && stream.tail) tails.push_back(stream.tail);
        all = all && wanted;
    }
    for (const Orphan& orphan : device.orphans) {
        const bool wanted = legacy == StreamId::none || orphan.legacy == legacy;
        if (wanted) tails.push_back(orphan.tail);
        all = all && wanted;
    }
    for (const WorkRef& tail : tails) {
        if (const int code = await(lock, tail, index); code != code::ok) return code;
    }
    if (const int code = await(lock, nullptr, index); code != code::ok) return code;
    if (all) {
        observe_device(index, sequence);
    } else {
        for (const WorkRef& tail : tails) observe(*tail);
    }
    int failure = code::ok;
    for (auto& [id, stream] : streams) {
        if (stream.device != index || (legacy != StreamId::none && stream.options.legacy != legacy)) continue;
        const int code = std::exchange(stream.failure, code::ok);
        if (failure == code::ok) failure = code;
    }
    return failure;
}

int Engine::synchronize_device(int device) {
    Core::Lock lock(*core_);
    return core_->wait_for_all(lock, device, StreamId::none);
}

int Engine::synchronize_context(StreamId legacy) {
    Core::Lock lock(*core_);
    const Stream* const stream = core_->find(legacy);
    return stream ? core_->wait_for_all(lock, stream->device, legacy) : code::invalid_handle;
}

}  // namespace isthmus::sim::engine
