// SPDX-License-Identifier: Apache-2.0
// DeviceState: one opened device with its streams and memory, shared by everything that was made on it.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <platform/driver.hpp>

#include "atomic_rules.hpp"
#include "books.hpp"
#include "buffer_lanes.hpp"
#include "copy_bounce.hpp"
#include "device_session.hpp"
#include "device_slabs.hpp"
#include "dropped_buffers.hpp"
#include "host_calls.hpp"
#include "launch_path.hpp"
#include "memory_pool_state.hpp"
#include "device_segment.hpp"
#include "piece_cache.hpp"
#include "static_texts.hpp"
#include "unreturned_pieces.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

class Deadline;
struct StreamState;

struct DeviceState final : DeviceSession {
    DeviceState(std::shared_ptr<const RuntimeConfig> shared, std::shared_ptr<Books> memory_books,
                std::unique_ptr<platform::Driver> opened, std::size_t position);
    ~DeviceState();

    std::shared_ptr<DeviceState> shared_from_this() {
        return std::static_pointer_cast<DeviceState>(DeviceSession::weak_from_this().lock());
    }
    std::weak_ptr<DeviceState> weak_from_this() { return shared_from_this(); }

    const std::shared_ptr<Books> books;
    const std::uint32_t reachable;  // rules::reachable_kinds
    const std::array<rules::PathAnswer, memory_kind_count> paths;
    const rules::GrantedAtomics atomics;

    // By an observer or the order checker. Fixed at open.
    const bool watched;

    // Neither a capture, a service, a watcher nor memory that the driver has to be offered again is in the way of
    // memory that passes from one owner to the next.
    [[gnu::always_inline]] bool way_is_clear() const noexcept {
        return !captures.any() && !services.any() && !unreturned.any_for_next_call() && !watched;
    }
    // Kept memory may pass on without a look at anything else: the thread may call, and the device is usable.
    [[gnu::always_inline]] bool undisturbed() const noexcept {
        return !process::here.taken() && !is_lost() && !forked() && way_is_clear();
    }

    bool reaches(MemoryKind kind) const noexcept { return (reachable >> static_cast<unsigned>(kind)) & 1u; }
    StaticTexts reasons;                      // why its buffers' memory is of its kind
    std::weak_ptr<StreamState> first_stream;  // the Device's; set while that is created
    DevicePools pools;
    DeviceSlabs slabs;
    PieceCache cache;
    DeviceSegment segment;
    BufferLanes lanes;
    struct Copies {
        CopyBounce bounce;
        std::mutex mutex;
        std::weak_ptr<StreamState> carrier;  // carrier_stream()'s
    };
    Copies copies;
    UnreturnedPieces unreturned;
    DroppedBuffers dropped;
    std::mutex giving_back;  // held by the thread that gives back all that is kept: give_back_kept()
    std::mutex wrapping;     // serialises the wrapping of external streams; taken before a stream's mutex
    std::atomic<std::uint64_t> put_off_bytes{0};        // released while a capture was open
    std::atomic<std::uint64_t> budget_credit_bytes{0};  // may be allocated before the system is queried again
    // Called when nothing else made room (K19); true: try again.
    using OutOfMemoryHandler = std::function<bool(std::size_t bytes)>;
    void set_out_of_memory_handler(OutOfMemoryHandler handler);
    bool make_room(std::size_t bytes);

    // Takes over a reference to the event behind a destroyed stream's last work. The device does not close before it:
    // closing a driver waits for its kernels, for a hung one without end.
    void outlive(FenceEvent* last_work);
    // The same for a stream that ended before its work, and behind which no event could be recorded.
    void leave_unfenced() noexcept { unfenced_.store(true, std::memory_order_relaxed); }
    // Waits for the last work of destroyed streams.
    Result<void> wait_for_ended_streams(Wait wait);

    // Destroys closures that have run, or, on a lost device, all; also what host functions left to be destroyed.
    // Expects no lock: users' code may run.
    void end_host_functions(HostCalls& calls);
    // At the end of the runtime: waits for host functions, because they may hold the streams and buffers that hold
    // them, and no other wait may follow.
    void settle_host_functions();
    // Takes over the closures of a stream that ends before them.
    void end_later(HostCalls& calls);
    // Waits for work that other code gave to the device's context, where the driver can tell and no capture is open.
    Result<void> wait_for_others(const Deadline& deadline);
    // Whether other code has a capture open on a stream that was wrapped here, which may be lost already. A driver call
    // for each such stream. Expects no stream's lock.
    enum class OthersCaptures : std::uint8_t {
        none,
        busy,  // not known: another thread is in the driver with such a stream
        open,
    };
    OthersCaptures external_captures();

    // The stream that copies staged content to the host's side; separate, so that a view does not wait for later work
    // of other streams. Lives as long as a buffer that used it.
    std::shared_ptr<StreamState> download_stream();
    void add_stream(const std::shared_ptr<StreamState>& stream);
    std::vector<std::shared_ptr<StreamState>> live_streams();

private:
    Suspects suspects(int driver_code) override;  // fault_suspects.cpp
    bool all_work_ended();
    void free_leftovers();

    std::mutex handler_mutex_;
    std::shared_ptr<const OutOfMemoryHandler> out_of_memory_handler_;
    std::mutex last_works_mutex_;
    std::vector<FenceEvent*> last_works_;
    std::atomic<bool> unfenced_{false};
    HostCalls orphaned_calls_;
    std::mutex streams_mutex_;
    std::vector<std::weak_ptr<StreamState>> streams_;
    std::weak_ptr<StreamState> download_stream_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
