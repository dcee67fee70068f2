// SPDX-License-Identifier: Apache-2.0
// Which buffers and blocks lie whole in a lane of their device between their end and the next request that is the same,
// and how many. Pure.
#pragma once

#include <isthmus/sharing_use.hpp>

#include "cache_rules.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace isthmus::rules {

// Of one device. A thread uses the lane of its number.
inline constexpr std::size_t lane_count = 16;
inline constexpr std::size_t lane_buffers = 8;  // and blocks, in one lane at most

// All that a request is decided by, in two words. The same words and the same device: the same decision.
struct SharedRequest {
    std::uint64_t bytes = 0;
    std::uint64_t words[2] = {0, 0};            // 0: a request that no lane serves
    static constexpr int first_word_bits = 56;  // the rest of the first is 0: a buffer keeps something else there
    explicit operator bool() const noexcept { return words[0] != 0; }
    // Requests of one sort may differ in size alone.
    bool of_sort(const SharedRequest& other) const noexcept {
        return words[0] == other.words[0] && words[1] == other.words[1];
    }
    // Of pool memory in the order of a stream, which stream_id() names. The first three bits say so.
    bool in_order() const noexcept { return (words[0] & 7) == 6; }
    std::uint64_t stream_id() const noexcept { return words[1]; }
    friend bool operator==(const SharedRequest& one, const SharedRequest& other) noexcept {
        return one.bytes == other.bytes && one.words[0] == other.words[0] && one.words[1] == other.words[1];
    }
};
// `alignment`: of an element. Empty for a request of no bytes, of memory that may not be kept wherever it lies, and
// where a number is too large for its bits: such a request is decided anew each time.
SharedRequest shared_request(std::uint64_t bytes, std::size_t element_bytes, std::size_t alignment, bool is_signed,
                             const SharedUse& use) noexcept;

// A request for memory of one kind: Device::allocate(), Device::allocate_host() and Stream::allocate().
struct KindRequest {
    std::uint64_t bytes = 0;
    std::size_t alignment = 0;  // of an element
    MemoryKind kind = MemoryKind::unknown;
    std::uint8_t reason = 0;  // which text explains the kind: below 8
    HostPlacement placement;
    bool in_order = false;        // of the stream, as pool memory is
    std::uint64_t stream_id = 0;  // of that stream, unique in the runtime; otherwise 0
};
namespace packing {
// Numbers in bits of one word, one behind the other.
class Word {
public:
    constexpr void add(std::uint64_t number, int bits) noexcept {
        fits_ = fits_ && number < (std::uint64_t{1} << bits);
        word_ |= number << at_;
        at_ += bits;
    }
    // A power of two, or 0.
    constexpr void add_power(std::uint64_t power) noexcept {
        fits_ = fits_ && (power & (power - 1)) == 0;  // has_single_bit() may be a function call
        add(power == 0 ? 0u : static_cast<std::uint64_t>(std::bit_width(power)), 7);
    }
    constexpr bool fits(int bits = 64) const noexcept { return fits_ && at_ <= bits; }
    constexpr std::uint64_t word() const noexcept { return word_; }

private:
    std::uint64_t word_ = 0;
    int at_ = 0;
    bool fits_ = true;
};

constexpr std::uint64_t flag(bool set) noexcept {
    return set ? 1u : 0u;
}
// A number below 0 does not fit.
constexpr std::uint64_t number(int signed_number) noexcept {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(signed_number));
}
}  // namespace packing
// Differs from all shared requests. Empty also for kinds that are not kept.
constexpr SharedRequest kind_request(const KindRequest& asked) noexcept {
    const HostPlacement& placement = asked.placement;
    if (asked.bytes == 0 || kept_kind(asked.kind) < 0 || !may_be_kept(asked.kind, placement)) return {};
    packing::Word first;
    first.add(0, 1);  // no shared request
    first.add(1, 1);  // never 0
    first.add(packing::flag(asked.in_order), 1);
    first.add(static_cast<std::uint64_t>(asked.kind), 8);
    first.add(asked.reason, 3);
    first.add(static_cast<std::uint64_t>(placement.locality), 3);
    first.add(static_cast<std::uint64_t>(placement.page_size), 1);
    first.add(packing::flag(placement.prefault), 1);
    first.add(packing::flag(placement.lock), 1);
    first.add(packing::number(placement.node) + 1, 16);
    first.add_power(asked.alignment);
    if (!first.fits(SharedRequest::first_word_bits)) return {};
    return {asked.bytes, {first.word(), asked.stream_id}};
}

// A request by block for memory of one kind, but for its size and the stream in whose order it is made; empty as
// kind_request() is. Differs from all other requests. `stream_id`: 0 without such a stream.
struct BlockSort {
    std::uint64_t word = 0;
    explicit operator bool() const noexcept { return word != 0; }
    SharedRequest request(std::uint64_t bytes, std::uint64_t stream_id) const noexcept {
        return {bytes, {word, stream_id}};
    }
};
BlockSort block_sort(MemoryKind kind, const HostPlacement& placement) noexcept;
// The same for memory of the driver of a kind that is kept.
constexpr BlockSort block_sort_of_driver(MemoryKind kind) noexcept {
    return {std::uint64_t{8} | std::uint64_t{static_cast<std::uint8_t>(kind)} << 4};
}

// A buffer that nobody holds any more.
struct Unheld {
    bool of_request = false;     // made by a request that a lane serves
    bool own_memory = false;     // all of it the device's own
    bool in_order = false;       // allocated in the order of a stream
    bool order_known = false;    // of that stream, which only the runtime gives work: work of it may still run
    bool running = false;        // other work may use it that is not known to have ended
    bool attached = false;       // to a stream; or work that gives it back to the host is not known to have ended
    bool exposed = false;        // other code may use it, or the driver was told more about it than its content
    bool in_parts = false;       // parts of it were made, or it is being released
    bool in_graphs = false;      // a graph contains its addresses
    bool far = false;            // a device uses it that may not reach it
    bool watched = false;        // an observer or the order checker follows the device
    bool capture_open = false;   // anywhere in the runtime
    bool device_usable = false;  // neither lost nor of a forked parent, and not in a host function
};
// Whether it may rest: nothing has to be done for its end, and nothing is left of its last owner but its content. What
// was allocated in the order of a stream rests for later requests in that order, and work of that stream may still use
// it (M3).
constexpr bool may_rest(const Unheld& buffer) noexcept {
    return buffer.of_request && buffer.own_memory && buffer.device_usable && !buffer.running && !buffer.attached &&
           (buffer.order_known || !buffer.in_order) && !buffer.exposed && !buffer.in_parts && !buffer.in_graphs &&
           !buffer.far && !buffer.watched && !buffer.capture_open;
}

// Requests in a row that a lane did not serve, none of which was like one of the last that came to rest there: from so
// many on, the thread's requests are taken to change in size from one to the next.
inline constexpr std::uint8_t misses_that_change = 8;

struct LaneNow {
    std::size_t buffers = 0;
    std::uint64_t bytes = 0;         // of its pieces, without those that are large
    std::uint64_t beside_bytes = 0;  // that the device keeps beside the shares of lanes: outside lanes, and large
};
// The share of one lane: without what is large, all lanes together have at most half of what may be kept.
constexpr std::uint64_t lane_bytes(std::uint64_t limit_bytes) noexcept {
    return limit_bytes / (2 * lane_count);
}
// As much lies beside the shares where lanes take memory: it has the half that the shares leave.
constexpr std::uint64_t most_beside_shares(std::uint64_t limit_bytes) noexcept {
    return limit_bytes / 2;
}
// Whether a lane has room for so many bytes more, where `limit_bytes` of released memory may be kept.
constexpr bool lane_has_room(const LaneNow& lane, std::uint64_t bytes, std::uint64_t limit_bytes) noexcept {
    const std::uint64_t most = lane_bytes(limit_bytes);
    return lane.buffers < lane_buffers && bytes <= most && lane.bytes <= most - bytes &&
           lane.beside_bytes <= most_beside_shares(limit_bytes);
}

// Memory of more than a lane's share is large: it lies in a lane beside its share, where all lanes then have at most
// three eighths of what may be kept. It takes room of what is kept outside the lanes, so that all that is kept stays
// within the limit, however full the shares are.
constexpr bool is_large(std::uint64_t bytes, std::uint64_t limit_bytes) noexcept {
    return bytes > lane_bytes(limit_bytes);
}
// `lanes_bytes`: of what lies in all lanes.
constexpr bool lanes_have_room_for_large(std::uint64_t lanes_bytes, std::uint64_t bytes, std::uint64_t beside_bytes,
                                         std::uint64_t limit_bytes) noexcept {
    const std::uint64_t most = limit_bytes / 8 * 3;
    return is_large(bytes, limit_bytes) && bytes <= most && lanes_bytes <= most - bytes &&
           beside_bytes <= most_beside_shares(limit_bytes) - bytes;
}

}  // namespace isthmus::rules
