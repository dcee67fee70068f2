// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes for the decoders of descriptors (of a shared ring, of shared memory of a GPU and of an event), and
// for the checks of words that another process wrote. The first byte chooses: even, the rest is a descriptor; odd, it
// is the number of slots (a byte) and then words of 8 bytes, which a reader and a producer check in turn, as counts,
// stamps and cursors.
#include "shared_event_bytes.hpp"
#include "require.hpp"
#include "shared_memory_bytes.hpp"
#include "shared_ring_shape.hpp"

#include <isthmus/ipc/protocol/frame_stamps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace {

using namespace isthmus;
using namespace isthmus::protocol;

// An accepted descriptor has consistent sizes, and encodes to the same bytes again.
void decode(std::span<const std::byte> bytes) {
    constexpr std::uint64_t page = 4096;
    const Result<rules::DecodedRing> decoded = rules::decode_ring(bytes, page);
    if (!decoded) {
        require(!decoded.error().message().empty() && decoded.code() == Code::invalid_argument);
        return;
    }
    const rules::RingShape& shape = decoded->shape;
    require(shape.slots >= 2 && shape.slots <= rules::max_ring_slots && shape.frame_bytes() > 0);
    require(shape.stride_bytes >= shape.frame_bytes() && shape.stride_bytes % page == 0);
    require(shape.frames_at % page == 0 && shape.stamp_at(shape.slots - 1) + 8 <= shape.frames_at);
    require(shape.file_bytes == shape.frames_at + shape.slots * shape.stride_bytes);
    require(shape.file_bytes <= rules::max_ring_bytes);
    const rules::RingDescriptorBytes again = rules::encode_ring(shape, decoded->place);
    require(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
}

void decode_memory(std::span<const std::byte> bytes) {
    const Result<rules::DecodedMemory> decoded = rules::decode_shared_memory(bytes);
    if (!decoded) {
        require(!decoded.error().message().empty() && decoded.code() == Code::invalid_argument);
        return;
    }
    const SharedMemoryFacts& facts = decoded->facts;
    require(facts.bytes > 0 && facts.bytes <= rules::max_shared_bytes && facts.bytes % facts.element_bytes == 0);
    require(facts.mapped_bytes >= facts.bytes && facts.mapped_bytes - facts.bytes < facts.granularity_bytes);
    require(facts.mapped_bytes % facts.granularity_bytes == 0);
    const SharedMemoryDescriptor::Bytes again = rules::encode_shared_memory(facts, decoded->handle);
    require(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
}

void decode_event(std::span<const std::byte> bytes) {
    const Result<rules::DecodedEvent> decoded = rules::decode_shared_event(bytes);
    if (!decoded) {
        require(!decoded.error().message().empty() && decoded.code() == Code::invalid_argument);
        return;
    }
    const SharedEventDescriptor::Bytes again = rules::encode_shared_event(decoded->facts, decoded->handle);
    require(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
}

std::uint64_t word(std::span<const std::byte> bytes) {
    std::uint64_t value = 0;
    for (std::size_t at = 0; at < 8 && at < bytes.size(); ++at) {
        value |= std::to_integer<std::uint64_t>(bytes[at]) << (8 * at);
    }
    return value;
}

// A reader that follows a count and stamps, and a producer that follows a cursor: their positions only grow, and no
// word of the other side moves them beyond it.
void judge(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const std::uint64_t slots = 2 + std::to_integer<std::uint64_t>(bytes[0]) % 255;
    std::uint64_t seen = 0, next = 0, cursor = 0;
    for (bytes = bytes.subspan(1); bytes.size() >= 16; bytes = bytes.subspan(16)) {
        const std::uint64_t count = word(bytes), other = word(bytes.subspan(8));
        const PublishedLook look = judge_published(count, seen, next, slots - 1);
        const CursorVerdict moved = judge_cursor(other, cursor, seen & ~ring_closed);
        if (moved == CursorVerdict::fine) {
            require(other >= cursor && other <= (seen & ~ring_closed));
            cursor = other;
        }
        if (look.verdict == PublishedVerdict::goes_back || look.verdict == PublishedVerdict::too_great) continue;
        require((count & ~ring_closed) >= (seen & ~ring_closed) && (count & ~ring_closed) <= max_frames);
        seen = count;
        if (look.verdict != PublishedVerdict::frame) continue;
        require(look.frame >= next && look.frame < (count & ~ring_closed) && look.missed == look.frame - next);
        const StampVerdict stamp = judge_stamp(other, look.frame, slots);
        require((stamp == StampVerdict::whole) == (other == stamp_whole(look.frame)));
        if (stamp == StampVerdict::overtaken) require(other > stamp_whole(look.frame));
        if (stamp != StampVerdict::lie) next = look.frame + 1;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::span bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
    if (data[0] % 2 != 0) {
        judge(bytes);
    } else {
        decode(bytes);
        decode_memory(bytes);
        decode_event(bytes);
    }
    return 0;
}
