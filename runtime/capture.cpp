// Capture: beginning and ending the recording of a stream.
#include <isthmus/graph.hpp>
#include <isthmus/stream.hpp>

#include "device_state.hpp"
#include "kernel_argument.hpp"
#include "recording.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <atomic>
#include <string>

namespace isthmus::inline v0 {
namespace detail {

RecordedUse::RecordedUse(std::shared_ptr<BufferState> used, ArgumentUse how) : buffer(std::move(used)), use(how) {
    buffer->graphs.fetch_add(1, std::memory_order_relaxed);
}
RecordedUse::~RecordedUse() {
    if (buffer) buffer->graphs.fetch_sub(1, std::memory_order_relaxed);
}
void RecordedUse::join(ArgumentUse further) noexcept {
    if (use != further) use = ArgumentUse::read_write;
}

std::uint64_t Recording::next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void Recording::note(BufferState& buffer, ArgumentUse use) {
    if (buffer.recorded_in != 0) return;  // the graph's own: there is nothing outside it to claim
    const auto known =
        std::find_if(uses.begin(), uses.end(), [&](const RecordedUse& one) { return one.buffer.get() == &buffer; });
    if (known != uses.end()) return known->join(use);
    uses.emplace_back(buffer.shared_from_this(), use);
}

Result<void> end_recording(Recording& recording, platform::GraphHandle& out) {
    StreamState& stream = *recording.stream;
    DeviceState& device = *stream.device;
    if (device.config->forked()) {  // without the lock, which another thread of the parent may have held
        stream.recording = nullptr;
        return device.unusable("ending a capture");
    }
    if (recording.thread != std::this_thread::get_id()) {
        return Error(Code::capture_error, "a capture was ended by another thread than the one that began it",
                     "end it, or let its scope close, on the thread that called begin_capture()");
    }
    Result<void> ended;
    {
        const std::lock_guard lock(stream.mutex);
        stream.recording = nullptr;
        // What the graph allocates it frees, or a second launch would find it allocated (the driver: 1).
        for (const platform::Allocation& memory : recording.graph_memory) {
            (void)device.driver->memory().release(memory, stream.handle);  // fails where the capture is lost: below
        }
        const platform::Status status = device.driver->captures()->end(stream.handle, out);
        if (!status.ok()) ended = device.failure(status, "ending a capture");
    }
    device.books->captures.ended();  // without the stream's lock: what was put off may want it
    return ended;
}

void give_up_recording(std::shared_ptr<Recording> recording) {
    const std::shared_ptr<StreamState> stream = std::move(recording->stream);
    const std::thread::id began = recording->thread;
    {
        std::vector<RecordedUse> held;  // destroyed without the lock, which the end of a buffer wants
        const std::lock_guard lock(stream->mutex);
        held.swap(recording->uses);
        stream->given_up = std::move(recording);
    }
    stream->device->books->captures.ended(began);
}

}  // namespace detail

Result<Capture> Stream::begin_capture() {
    detail::StreamState& stream = *state_;
    detail::DeviceState& device = *stream.device;
    if (!device.usable()) return device.unusable("beginning a capture");
    platform::Captures* captures = device.driver->captures();
    if (captures == nullptr) {
        return Error(Code::unsupported, "this device runs work when it is given: it has no captures",
                     "give the work to the stream each time; on this device that costs no driver call");
    }
    // A pool cannot be made later, on this thread (K13). Where it cannot be had now, allocating in the capture says so.
    if (device.capabilities.has(Feature::pools)) (void)device.pools.own(device, MemoryKind::pool);
    const std::lock_guard lock(stream.mutex);
    if (Result<void> opened = stream.open_handle(); !opened) return std::move(opened).error();
    if (stream.recording != nullptr) {
        return Error(Code::capture_error, "the stream is being captured already", "end that capture first");
    }
    // Whoever waits for earlier work finds a fence: none can be recorded while the stream is captured.
    if (Result<void> fenced = stream.fence(); !fenced) return std::move(fenced).error();
    auto recording = std::make_shared<detail::Recording>();
    recording->stream = state_;
    const platform::Status status = captures->begin(stream.handle);
    if (!status.ok()) return device.failure(status, "beginning a capture");
    stream.recording = recording.get();
    device.books->captures.begun();
    return Capture(std::move(recording));
}

Result<Graph> Capture::end() {
    if (!recording_) {
        return Error(Code::invalid_handle, "the capture has ended already, or was moved from",
                     "keep the graph that end() answered with");
    }
    detail::Recording& recording = *recording_;
    platform::GraphHandle handle = platform::GraphHandle::none;
    Result<void> ended = detail::end_recording(recording, handle);
    if (!ended && recording.thread != std::this_thread::get_id()) return std::move(ended).error();  // still open
    const std::shared_ptr<detail::Recording> over = std::move(recording_);
    if (!ended) return std::move(ended).error();
    auto graph = std::make_shared<detail::GraphState>(over->stream->device, handle);
    graph->uses = std::move(over->uses);
    graph->operations = over->operations;
    graph->allocates = !over->graph_memory.empty();
    return Graph(std::move(graph));
}

Capture& Capture::operator=(Capture&& other) noexcept {
    if (this != &other) {
        const Capture ended = std::move(*this);  // ends what was open here
        recording_ = std::move(other.recording_);
    }
    return *this;
}

Capture::~Capture() {
    if (!recording_) return;
    const std::shared_ptr<detail::DeviceState> device = recording_->stream->device;
    Result<Graph> thrown_away = end();
    if (recording_ && !device->config->forked()) detail::give_up_recording(std::move(recording_));
    if (!thrown_away) device->config->say(Severity::warning, "a capture given up: " + thrown_away.error().text());
}

}  // namespace isthmus::inline v0
