// Recording: what an open capture has been given so far; GraphState and InstanceState: what becomes of it.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include "buffer_state.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace isthmus::inline v0::detail {

struct StreamState;

// A buffer that a graph uses, and all that it does with it. While it stands here, the buffer cannot be released.
class RecordedUse {
public:
    RecordedUse(std::shared_ptr<BufferState> used, ArgumentUse how);
    RecordedUse(RecordedUse&&) noexcept = default;
    RecordedUse& operator=(RecordedUse&&) noexcept = default;
    ~RecordedUse();
    void join(ArgumentUse further) noexcept;

    std::shared_ptr<BufferState> buffer;
    ArgumentUse use;
};

// Guarded by the stream's mutex while the capture is open.
struct Recording {
    std::shared_ptr<StreamState> stream;
    std::thread::id thread = std::this_thread::get_id();
    std::vector<RecordedUse> uses;
    std::size_t operations = 0;
    const std::uint64_t id = next_id();              // never reused
    std::vector<platform::Allocation> graph_memory;  // allocated by the graph; freed by it at its end

    void note(BufferState& buffer, ArgumentUse use);

private:
    static std::uint64_t next_id() noexcept;
};

// Ends the capture of the recording's stream, whatever the outcome; nothing is open afterwards, unless the thread is
// the wrong one. `out` is none where it was lost.
Result<void> end_recording(Recording& recording, platform::GraphHandle& out);
// Lets go of a capture that this thread cannot end: its stream takes it over and ends it when it is next used by the
// thread that can. What the capture held is free, because its graph never comes to be.
void give_up_recording(std::shared_ptr<Recording> recording);

struct GraphState {
    GraphState(std::shared_ptr<DeviceState> owner, platform::GraphHandle recorded) noexcept
        : device(std::move(owner)), handle(recorded) {}
    ~GraphState();
    void instance_ended() noexcept;

    const std::shared_ptr<DeviceState> device;
    const platform::GraphHandle handle;
    std::vector<RecordedUse> uses;
    std::size_t operations = 0;
    bool allocates = false;
    std::mutex mutex;  // guards `instances`
    int instances = 0;
};

struct InstanceState {
    InstanceState(std::shared_ptr<GraphState> made_from, platform::GraphInstanceHandle made) noexcept
        : graph(std::move(made_from)), handle(made) {}
    ~InstanceState();

    const std::shared_ptr<GraphState> graph;
    const platform::GraphInstanceHandle handle;
    std::mutex mutex;                        // guards what follows
    std::vector<BufferState::Use> launches;  // the last one on each stream
};

}  // namespace isthmus::inline v0::detail
