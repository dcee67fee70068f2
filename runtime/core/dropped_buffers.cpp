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
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

std::uint64_t DroppedBuffers::bytes() const {
    const std::lock_guard lock(mutex_);
    return outstanding_.bytes;
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
    count_.store(all_.size(), std::memory_order_relaxed);
    return when;
}

void DroppedBuffers::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
}

// Without the lock the caller then asks the driver and ends buffers. What it took counts until put_back().
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
    --outstanding_.buffers;
    outstanding_.bytes -= oldest.bytes;
    if (all_.empty()) outstanding_.since_asked = 0;
    count_.store(all_.size(), std::memory_order_relaxed);
    return oldest;
}

void DroppedBuffers::put_back(All left) {
    const std::lock_guard lock(mutex_);
    left.insert(left.end(), all_.begin(), all_.end());
    all_.swap(left);
    outstanding_.buffers = all_.size();
    outstanding_.bytes = 0;
    for (const One& one : all_) outstanding_.bytes += one.bytes;
    if (all_.empty()) outstanding_.since_asked = 0;  // nothing is left to ask about
    count_.store(all_.size(), std::memory_order_relaxed);
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

}  // namespace

std::uint64_t end_dropped_buffers(DeviceState& device, bool ask) {
    if (!device.dropped.any()) return 0;
    const bool can_end = !captures_open(device);
    std::uint64_t bytes = 0;
    DroppedBuffers::All left = device.dropped.take(ask);
    Asked asked;
    std::erase_if(left, [&](const DroppedBuffers::One& one) {
        if (!can_end || !has_ended(*one.buffer, ask, asked)) return false;
        bytes += one.bytes;
        // Who asks needs memory of any size: what rests would leave its lane at once.
        if (ask || !rest_buffer(*one.buffer)) end_dropped(one.buffer, Wait{});
        return true;
    });
    device.dropped.put_back(std::move(left));
    return bytes;
}

bool end_oldest_dropped_buffer(DeviceState& device) {
    const DroppedBuffers::One oldest = device.dropped.take_oldest();
    if (oldest.buffer != nullptr) end_dropped(oldest.buffer, Wait{});
    return oldest.buffer != nullptr;
}

std::uint64_t end_all_dropped_buffers(DeviceState& device, Wait wait) {
    if (!device.dropped.any()) return 0;
    const Deadline deadline(wait, device.config->wait_timeout);
    std::uint64_t bytes = 0;
    DroppedBuffers::All all = device.dropped.take(true);
    for (const DroppedBuffers::One& one : all) {
        bytes += one.bytes;
        end_dropped(one.buffer, deadline.left());
    }
    all.clear();
    device.dropped.put_back(std::move(all));
    return bytes;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
