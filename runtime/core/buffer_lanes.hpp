// SPDX-License-Identifier: Apache-2.0
// BufferLanes: shared buffers that ended idle and rest whole, with their memory, until the same is asked for again.
#pragma once

#include "lane_rules.hpp"
#include "view_lock.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct DeviceState;
struct StateBlock;

// Of one device. A thread uses the lane of its number: it takes no lock that another thread holds, unless there are
// more threads than lanes, and never waits for one. What rests is kept memory: closed to every access, parked in the
// ledger and nobody's. Thread-safe, without the heap. A buffer here holds its device: close_lanes() comes before the
// runtime's end.
class BufferLanes {
public:
    BufferLanes() = default;
    BufferLanes(const BufferLanes&) = delete;
    BufferLanes& operator=(const BufferLanes&) = delete;

private:
    friend std::shared_ptr<BufferState> wake_buffer(DeviceState& device, const rules::SharedRequest& request);
    friend bool rest_buffer(BufferState& buffer);
    friend void lay_down(StateBlock& block) noexcept;
    friend std::uint64_t empty_lanes(DeviceState& device);
    friend void close_lanes(DeviceState& device);

    struct alignas(128) Lane {
        ViewLock lock;
        bool closed = false;  // guarded by the lock, as what follows
        std::size_t count = 0;
        std::array<rules::SharedRequest, rules::lane_buffers> requests;  // oldest first
        std::array<StateBlock*, rules::lane_buffers> blocks{};
    };
    static StateBlock* take(DeviceState& device, std::size_t lane, const rules::SharedRequest& request);
    static void take_at(DeviceState& device, std::size_t lane, std::size_t one);  // expects the lane's lock
    static bool put(DeviceState& device, std::size_t lane, StateBlock& block);
    static std::uint64_t empty(DeviceState& device, bool for_good);

    std::array<Lane, rules::lane_count> lanes_;
};

// A buffer of this request that rests in the lane of the thread, otherwise in another one: as a new one, with memory
// of new identity. nullptr: none, or the circumstances forbid it. No driver call, no system call and nothing from the
// heap. Expects a call that was let in, and no lock.
std::shared_ptr<BufferState> wake_buffer(DeviceState& device, const rules::SharedRequest& request);
// Lets a buffer rest that nobody holds any more. false: rules::may_rest() or the lane forbids it, and nothing has
// changed.
bool rest_buffer(BufferState& buffer);
// All that rests goes to the cache; answers how many bytes. Expects no lock.
std::uint64_t empty_lanes(DeviceState& device);
// The same, and nothing rests from then on.
void close_lanes(DeviceState& device);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
