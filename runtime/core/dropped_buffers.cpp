// SPDX-License-Identifier: Apache-2.0
// DroppedBuffers: when their work has ended, they end.
#include "dropped_buffers.hpp"

#include "buffer_lanes.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "few.hpp"
#include "process.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

std::uint64_t DroppedBuffers::bytes() const {
    const std::lock_guard lock(mutex_);
    return outstanding_.bytes;
}

bool DroppedBuffers::taken() const {
    const std::lock_guard lock(mutex_);
    return outstanding_.buffers != all_.size();
}

rules::Ending DroppedBuffers::add(BufferState& buffer, const rules::Dropped& how, std::uint64_t limit_bytes) {
    const std::lock_guard lock(mutex_);
    if (closed_) return rules::Ending::now;
    const rules::Ending when = rules::ending(how, outstanding_, limit_bytes);
    if (when != rules::Ending::later) return when;
    all_.push_back({&buffer, how.bytes});
    ++outstanding_.buffers;
    ++outstanding_.since_asked;
    outstanding_.bytes += how.bytes;
    count_.store(outstanding_.buffers, std::memory_order_relaxed);
    return when;
}

void DroppedBuffers::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
}

// Without the lock the caller then asks the driver and ends buffers.
DroppedBuffers::All DroppedBuffers::take(bool asks) {
    const std::lock_guard lock(mutex_);
    if (asks) outstanding_.since_asked = 0;
    return std::exchange(all_, {});
}

DroppedBuffers::One DroppedBuffers::take_oldest() {
    const std::lock_guard lock(mutex_);
    if (all_.empty()) return {};
    const One oldest = all_.front();
    all_.erase(all_.begin());
    part_with(1, oldest.bytes);
    return oldest;
}

void DroppedBuffers::part_with(std::size_t buffers, std::uint64_t bytes) {
    outstanding_.buffers -= buffers;
    outstanding_.bytes -= bytes;
    if (outstanding_.buffers == 0) outstanding_.since_asked = 0;    // nothing is left to ask about
    count_.store(outstanding_.buffers, std::memory_order_release);  // pairs with the acquire in any()
}

DroppedBuffers::All DroppedBuffers::put_back(All left, std::size_t ended, std::uint64_t ended_bytes) {
    const std::lock_guard lock(mutex_);
    All homeless;
    if (closed_) left.swap(homeless);
    for (const One& one : homeless) ended_bytes += one.bytes;
    left.insert(left.end(), all_.begin(), all_.end());
    all_.swap(left);
    part_with(ended + homeless.size(), ended_bytes);
    return homeless;
}

namespace {

using Asked = Few<const StreamState*, 8>;

bool has_ended(BufferState& buffer, bool ask, Asked& asked) {
    if (buffer.device->is_lost()) return true;
    const BufferState::Running running = buffer.conflicting(ArgumentUse::write);
    bool ended = true;
    for (const BufferState::Use& use : running) {
        const bool now = ask && std::find(asked.begin(), asked.end(), use.stream.get()) == asked.end();
        if (now) {
            asked.push_back(use.stream.get());
            (void)use.stream->poll();  // a stream that cannot be asked now may be asked later
        }
        ended = use.stream->reached(use.last) && ended;
    }
    return ended;
}

bool captures_open(const DeviceState& device) {
    return device.books->captures.any() || process::here.in_host_function;
}

constinit thread_local bool ends_buffers [[gnu::tls_model("initial-exec")]] = false;

// While it lives, the thread ends buffers. It may come here again, because users' code may end with them: it waits for
// no thread then, which might be itself.
struct Ending {
    const bool outermost = !std::exchange(ends_buffers, true);
    Ending() = default;
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
    ~Ending() { ends_buffers = !outermost; }
};

}  // namespace

std::uint64_t end_dropped_buffers(DeviceState& device, bool ask) {
    if (!device.dropped.any()) return 0;
    const Ending ending;
    const bool can_end = !captures_open(device);
    std::uint64_t bytes = 0;
    DroppedBuffers::All left = device.dropped.take(ask);
    Asked asked;
    const std::size_t ended = std::erase_if(left, [&](const DroppedBuffers::One& one) {
        if (!can_end || !has_ended(*one.buffer, ask, asked)) return false;
        bytes += one.bytes;
        // Who asks needs memory of any size: what rests would leave its lane at once.
        if (ask || !rest_buffer(*one.buffer)) end_dropped(one.buffer, Wait{});
        return true;
    });
    // The runtime has ended meanwhile, and found none of these.
    for (const DroppedBuffers::One& one : device.dropped.put_back(std::move(left), ended, bytes)) {
        end_dropped(one.buffer, Wait{});
    }
    return bytes;
}

bool end_oldest_dropped_buffer(DeviceState& device) {
    const DroppedBuffers::One oldest = device.dropped.take_oldest();
    if (oldest.buffer != nullptr) end_dropped(oldest.buffer, Wait{});
    return oldest.buffer != nullptr;
}

namespace {

// false: there was nobody to wait for, or `deadline` is over.
bool wait_for_others(const DeviceState& device, const Deadline& deadline) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    bool waited = false;
    for (; device.dropped.taken(); waited = true) {
        const std::chrono::nanoseconds left = deadline.left().timeout.value_or(std::chrono::nanoseconds(0));
        if (left.count() == 0) return false;
        pause_between_queries(device.config->wait_policy, Clock::now() - begin, left);
    }
    return waited;
}

}  // namespace

std::uint64_t end_all_dropped_buffers(DeviceState& device, Wait wait) {
    if (!device.dropped.any()) return 0;
    const Deadline deadline(wait, device.config->wait_timeout);
    const std::uint64_t bytes = device.dropped.bytes();
    const bool at_end = [&] {  // of the runtime: others end themselves what they have taken
        const std::lock_guard lock(device.dropped.mutex_);
        return device.dropped.closed_;
    }();
    const Ending ending;
    do {
        DroppedBuffers::All all = device.dropped.take(true);
        const std::size_t ended = all.size();
        std::uint64_t ended_bytes = 0;
        for (const DroppedBuffers::One& one : all) {
            ended_bytes += one.bytes;
            end_dropped(one.buffer, deadline.left());
        }
        all.clear();
        (void)device.dropped.put_back(std::move(all), ended, ended_bytes);
    } while (!at_end && ending.outermost && wait_for_others(device, deadline) && device.dropped.any());
    return bytes;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
