// SPDX-License-Identifier: Apache-2.0
// BufferLanes: buffers that ended and rest whole, with their memory, until the same is asked for again; and memory that
// was released by block.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/memory_kind.hpp>

#include "few.hpp"
#include "lane_rules.hpp"
#include "store_lock.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct DeviceState;
class HeldBlocks;
struct Piece;
struct OtherBuffer;
struct StateBlock;
struct StreamState;

struct EmptiedLanes {
    std::uint64_t bytes = 0;       // have left the lanes
    std::uint64_t went_bytes = 0;  // to the driver and the system, of these and of what the cache had
};

// Of one device. A thread uses the lane of its number: it takes no lock that another thread holds, unless there are
// more threads than lanes, and never waits for one. What rests is kept memory: closed to every access, parked in the
// ledger and nobody's; only work of the stream in whose order it was allocated may still use it. Thread-safe, without
// the heap. A buffer here holds its device: close_lanes() comes before the runtime's end. It does not hold its stream,
// whose end calls empty_lanes_of().
class BufferLanes {
public:
    BufferLanes() = default;
    BufferLanes(const BufferLanes&) = delete;
    BufferLanes& operator=(const BufferLanes&) = delete;

    enum class Among : std::uint8_t { own_lane, other_lanes };

private:
    friend std::shared_ptr<BufferState> wake_buffer(DeviceState& device, const rules::SharedRequest& request,
                                                    StreamState* order);
    friend std::shared_ptr<BufferState> exchange_buffer(DeviceState& device, const rules::SharedRequest& request,
                                                        StreamState* order, const OtherBuffer& other);
    friend Piece* exchange_piece(DeviceState& device, const rules::SharedRequest& request, StreamState* order);
    friend bool rest_buffer(BufferState& buffer);
    friend bool requests_change(const DeviceState& device) noexcept;
    friend void lay_down(StateBlock& block) noexcept;
    friend Piece* wake_piece_here(DeviceState& device, const rules::SharedRequest& request, StreamState* order);
    friend Piece* wake_piece(DeviceState& device, const rules::SharedRequest& request, StreamState* order, Among lanes);
    friend void keep_piece(DeviceState& device, Piece& parked, StreamState* order, bool undisturbed);
    friend EmptiedLanes empty_lanes(DeviceState& device);
    friend void empty_lanes_of(StreamState& stream);
    friend void close_lanes(DeviceState& device);

    // What its memory counts for.
    struct Size {
        std::uint64_t bytes = 0;
        std::uint64_t asked_bytes = 0;
        std::uint64_t pieces = 0;
        std::uint64_t pool_bytes = 0;
    };
    struct Resting {
        rules::SharedRequest request;
        StateBlock* block = nullptr;   // of a buffer
        Piece* piece = nullptr;        // of memory that was released by block; one of the two
        StreamState* order = nullptr;  // nullptr: nothing uses the memory
        Size size;                     // while it rests
        std::uint64_t number = 0;      // of Lane::put
    };
    struct Found {
        StateBlock* block = nullptr;
        Piece* piece = nullptr;
        explicit operator bool() const noexcept { return block != nullptr || piece != nullptr; }
    };
    struct alignas(128) Lane {
        StoreLock lock;
        bool closed = false;  // guarded by the lock, as what follows
        std::size_t count = 0;
        std::uint64_t large_bytes = 0;                            // of what is large (rules::is_large)
        std::uint64_t put = 0;                                    // so many have been put here
        std::uint64_t told = 0;                                   // of these, those that the cache has been told of
        std::array<Resting, rules::lane_buffers> resting;         // oldest first
        std::array<std::uint64_t, rules::lane_buffers> lately{};  // marks of the last requests put here
        std::atomic<std::uint8_t> missed{0};  // up to rules::misses_that_change; read without the lock
        void note_put(const rules::SharedRequest& request) noexcept { lately[++put % lately.size()] = mark(request); }
        void note_taken(const rules::SharedRequest& request, bool found) noexcept;
        static std::uint64_t mark(const rules::SharedRequest& request) noexcept {
            return (request.bytes * 0x9E3779B97F4A7C15u ^ request.words[0]) * 0x9E3779B97F4A7C15u ^ request.words[1];
        }
        // Answers what the cache has to be told of.
        std::uint64_t tell() noexcept { return put - std::exchange(told, put); }
    };
    // On the way to the cache. The stream does not end before.
    struct Leaving {
        Resting resting;
        std::shared_ptr<StreamState> order;
        std::uint64_t age;  // puts since its own
    };
    using AllLeaving = Few<Leaving, rules::lane_buffers>;
    // Empty: nothing of this request is there, or another thread has the lane.
    enum class Whose : std::uint8_t { own, of_another };
    static Found take(DeviceState& device, std::size_t lane, const rules::SharedRequest& request, Whose whose);
    // Of what rests in the lane of the thread, whose requests change: the newest that serves as it is, otherwise the
    // newest of those that are exchanged before others; and what the cache has to be told of. Empty: none, or another
    // thread has the lane.
    enum class Serves : std::uint8_t { not_at_all, in_exchange, before_others, first_of_all, as_it_is };
    struct Exchanged {
        Resting resting;
        Serves how = Serves::not_at_all;
        std::uint64_t age = 0;  // this and the next one: not as it is
        std::uint64_t untold = 0;
    };
    template <class Serving>
    static Exchanged take_for_exchange(DeviceState& device, Serving serves);
    static Found take_from_others(DeviceState& device, std::size_t own_lane, const rules::SharedRequest& request);
    // The next two expect the lane's lock. The second leaves a buffer whose stream is at its end, and answers false.
    static void take_at(DeviceState& device, std::size_t lane, std::size_t one);
    static bool take_out(DeviceState& device, std::size_t lane, std::size_t one, AllLeaving& leaving);
    static std::uint64_t keep_all(DeviceState& device, const AllLeaving& leaving, std::uint64_t fresh, bool frees);
    // false: the lane has no room for it, or another thread has the lane.
    static bool put(DeviceState& device, std::size_t lane, const Resting& resting);
    // put() where older ones have to make room. Expects the lane's lock, and gives it back.
    static bool put_instead(DeviceState& device, std::size_t lane, const Resting& resting);
    static void add(DeviceState& device, std::size_t lane, const Resting& resting) noexcept;
    static bool may_take(const DeviceState& device, std::uint64_t bytes) noexcept;
    static Size size_of(const HeldBlocks& held) noexcept;
    static Size size_of(const Piece& piece) noexcept;
    static EmptiedLanes empty(DeviceState& device, bool for_good);
    static std::uint64_t empty_lane(DeviceState& device, std::size_t at, bool for_good);  // answers what has left it

    std::mutex emptying_;
    std::array<Lane, rules::lane_count> lanes_;
};

// A buffer of this request that rests in the lane of the thread, otherwise in another one: as a new one, with memory
// of new identity. nullptr: none, or the circumstances forbid it. No driver call, no system call and nothing from the
// heap. `order`: the stream in whose order the request is made; nullptr: none. Expects a call that was let in, and no
// lock.
std::shared_ptr<BufferState> wake_buffer(DeviceState& device, const rules::SharedRequest& request,
                                         StreamState* order = nullptr);
// What another buffer of the same request but for its size has to be, where that is decided by more than the request.
struct OtherBuffer {
    MemoryKind kind = MemoryKind::unknown;  // unknown: what the request is decided by does not depend on its size
    LaunchPath path = LaunchPath::pass;
    std::string_view reason;
    std::size_t place_bytes = 0;  // of the place of small memory that serves it (rules::small_place); 0: whole pages
};
// For a thread whose requests change in size: the newest buffer of such a request that rests in its lane becomes a new
// one. Small memory whose place is of the same size stays where it is; otherwise it gets memory of this size out of
// what is kept, its own with it, by one lock of the cache. nullptr: there is none, or no memory. Otherwise as
// wake_buffer().
std::shared_ptr<BufferState> exchange_buffer(DeviceState& device, const rules::SharedRequest& request,
                                             StreamState* order, const OtherBuffer& other);
// The same for memory by block: a parked piece that the caller hands out, accessible as far as was asked for.
Piece* exchange_piece(DeviceState& device, const rules::SharedRequest& request, StreamState* order);
// Whether the requests of the thread change in size from one to the next. Expects no lock.
bool requests_change(const DeviceState& device) noexcept;
// Lets a buffer rest that nobody holds any more. false: rules::may_rest() or the lane forbids it, and nothing has
// changed.
bool rest_buffer(BufferState& buffer);
// The same for memory by block: a parked piece that was released as one of this request. From here on as much of it is
// accessible as then. The caller hands it out.
Piece* wake_piece(DeviceState& device, const rules::SharedRequest& request, StreamState* order,
                  BufferLanes::Among lanes);
// The same out of the lane of the thread, where the caller has found the device undisturbed.
Piece* wake_piece_here(DeviceState& device, const rules::SharedRequest& request, StreamState* order);
// Keeps a parked piece for a later allocation: in the lane of the thread, where it has room, otherwise in the cache.
// `order`: the stream whose work may still use it. `undisturbed`: the caller has found the device so.
void keep_piece(DeviceState& device, Piece& parked, StreamState* order, bool undisturbed = false);
// All that rests goes to the cache, and what is too much there goes back. Expects no lock.
EmptiedLanes empty_lanes(DeviceState& device);
// What rests in the order of a stream goes to the cache, behind the stream's work. For the end of the stream, to which
// nobody has a reference.
void empty_lanes_of(StreamState& stream);
// As empty_lanes(), and nothing rests from then on.
void close_lanes(DeviceState& device);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
