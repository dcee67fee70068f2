// SPDX-License-Identifier: Apache-2.0
// Five numbers determine a ring's shape; the descriptor states every value and must agree.
#include "shared_ring_shape.hpp"

#include <isthmus/ipc/protocol/frame_stamps.hpp>

#include "ipc_errors.hpp"
#include "little_endian.hpp"

#include <algorithm>

namespace isthmus::rules {
namespace {

constexpr std::uint64_t magic = 0x676e726d68747369u;  // "isthmrng"
constexpr std::uint32_t version = 1;

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t page) noexcept {
    return (bytes + page - 1) / page * page;
}

using Writer = LittleEndianWriter;
using Reader = LittleEndianReader;

Error damaged(const char* reason) {
    return make_error<errors::ring_descriptor_damaged>(reason);
}

void write_shape(Writer& to, const RingShape& shape) {
    to.number(magic, 8);
    to.number(version, 4);
    to.number(shape.slots, 4);
    to.number(static_cast<std::uint64_t>(shape.policy), 4);
    to.number(static_cast<std::uint64_t>(shape.rights), 4);
    to.number(shape.element_bytes, 4);
    to.number(0, 4);
    to.number(shape.elements, 8);
    to.number(shape.stride_bytes, 8);
    to.number(shape.frames_at, 8);
    to.number(shape.file_bytes, 8);
    to.number(shape.page_bytes, 8);
    to.bytes(shape.id);
}
constexpr std::size_t shape_bytes = 8 + 6 * 4 + 5 * 8 + 16;
static_assert(shape_bytes <= ring_header_bytes);
static_assert(ring_header_bytes + 4 + 4 + 8 <= SharedRingDescriptor::size_bytes);
static_assert(ring_header_bytes <= ring_published_at);

}  // namespace

Result<RingShape> make_ring_shape(std::uint64_t elements, std::uint32_t element_bytes, const SharedRingOptions& options,
                                  std::uint64_t page_bytes) {
    if (options.slots < 2 || options.slots > max_ring_slots) {
        return make_error<errors::ring_slots_out_of_range>(options.slots, max_ring_slots);
    }
    if (elements == 0 || element_bytes == 0) return make_error<errors::ring_frames_empty>();
    if (elements > max_ring_bytes / element_bytes) return make_error<errors::ring_frames_too_long>();
    RingShape shape;
    shape.slots = static_cast<std::uint32_t>(options.slots);
    shape.policy = options.policy;
    shape.rights = options.rights;
    shape.element_bytes = element_bytes;
    shape.elements = elements;
    shape.page_bytes = page_bytes;
    shape.stride_bytes = rounded_up(shape.frame_bytes(), page_bytes);
    shape.frames_at = rounded_up(ring_stamps_at + shape.slots * ring_line_bytes, page_bytes);
    // At most 2^8 slots of 2^46 bytes and a page: no overflow.
    shape.file_bytes = shape.frames_at + shape.slots * shape.stride_bytes;
    if (shape.file_bytes > max_ring_bytes) return make_error<errors::ring_too_long>();
    return shape;
}

RingHeader ring_header(const RingShape& shape) {
    RingHeader bytes{};
    Writer to(bytes.data());
    write_shape(to, shape);
    return bytes;
}

RingDescriptorBytes encode_ring(const RingShape& shape, const RingPlaceOfReader& place) {
    RingDescriptorBytes bytes{};
    const RingHeader header = ring_header(shape);
    Writer to(bytes.data());
    to.bytes(header);
    to.number(place.reader, 4);
    to.number(0, 4);
    to.number(place.first, 8);
    return bytes;
}

Result<DecodedRing> decode_ring(std::span<const std::byte> bytes, std::uint64_t page_bytes) {
    if (bytes.size() != SharedRingDescriptor::size_bytes) {
        return make_error<errors::ring_descriptor_of_another_length>(bytes.size(), SharedRingDescriptor::size_bytes);
    }
    Reader from(bytes.data());
    if (from.number(8) != magic) return damaged("its magic is another one");
    if (const std::uint64_t told = from.number(4); told != version) {
        return make_error<errors::ring_descriptor_of_another_version>(told, version);
    }
    SharedRingOptions options;
    options.slots = static_cast<std::size_t>(from.number(4));
    const std::uint64_t policy = from.number(4), rights = from.number(4);
    if (policy > static_cast<std::uint64_t>(SlowReaderPolicy::wait)) return damaged("there is no such policy");
    if (rights > static_cast<std::uint64_t>(ReaderRights::read_write)) return damaged("there are no such rights");
    options.policy = static_cast<SlowReaderPolicy>(policy);
    options.rights = static_cast<ReaderRights>(rights);
    const auto element_bytes = static_cast<std::uint32_t>(from.number(4));
    (void)from.number(4);
    Result<RingShape> shape = make_ring_shape(from.number(8), element_bytes, options, page_bytes);
    if (!shape) return damaged("slots, elements or their size are out of range");
    RingShape told = *shape;
    told.stride_bytes = from.number(8);
    told.frames_at = from.number(8);
    told.file_bytes = from.number(8);
    told.page_bytes = from.number(8);
    if (told != *shape) return damaged("its sizes contradict each other, or were made for other pages");
    from.bytes(shape->id);
    DecodedRing decoded{*shape, {}};
    Reader behind(bytes.data() + ring_header_bytes);
    decoded.place.reader = static_cast<std::uint32_t>(behind.number(4));
    (void)behind.number(4);
    decoded.place.first = behind.number(8);
    if (decoded.place.first > protocol::max_frames) return damaged("the first frame is beyond all frames");
    // Undefined bytes are zero: encoding again must give the same bytes.
    const RingDescriptorBytes again = encode_ring(decoded.shape, decoded.place);
    if (!std::equal(again.begin(), again.end(), bytes.begin())) return damaged("what has to be zero is not");
    return decoded;
}

}  // namespace isthmus::rules
