// SPDX-License-Identifier: Apache-2.0
// Encodes four numbers of 32 bits, the lowest byte first.
#include "ring_message.hpp"

#include <algorithm>
#include <string>

namespace isthmus::tools::share {
namespace {

void put(std::byte* at, std::uint32_t value) {
    for (int byte = 0; byte < 4; ++byte) at[byte] = static_cast<std::byte>(value >> (8 * byte));
}
std::uint32_t get(const std::byte* at) {
    std::uint32_t value = 0;
    for (int byte = 0; byte < 4; ++byte) value |= std::to_integer<std::uint32_t>(at[byte]) << (8 * byte);
    return value;
}

}  // namespace

std::array<std::byte, shape_bytes> encode_shape(const camera::FrameShape& shape) {
    std::array<std::byte, shape_bytes> bytes{};
    put(bytes.data(), static_cast<std::uint32_t>(shape.format));
    put(bytes.data() + 4, shape.width);
    put(bytes.data() + 8, shape.height);
    put(bytes.data() + 12, shape.pitch_bytes);
    return bytes;
}

RingMessage ring_message(const SharedRingDescriptor& descriptor, const camera::FrameShape& shape) {
    RingMessage message{};
    std::copy(descriptor.bytes().begin(), descriptor.bytes().end(), message.begin());
    const std::array<std::byte, shape_bytes> encoded = encode_shape(shape);
    std::copy(encoded.begin(), encoded.end(), message.begin() + SharedRingDescriptor::size_bytes);
    return message;
}

Result<camera::FrameShape> shape_in(std::span<const std::byte> message) {
    if (message.size() != RingMessage().size()) {
        return Error(Code::invalid_argument,
                     "the producer's message has " + std::to_string(message.size()) + " bytes instead of " +
                         std::to_string(RingMessage().size()),
                     "an `isthmus share` of this version at the other end");
    }
    return decode_shape(message.subspan(SharedRingDescriptor::size_bytes));
}

Result<camera::FrameShape> decode_shape(std::span<const std::byte> bytes) {
    const std::uint32_t format = bytes.size() == shape_bytes ? get(bytes.data()) : 0x100;
    if (format > 0xff || camera::name(static_cast<camera::PixelFormat>(format)) == "unknown") {
        return Error(Code::invalid_argument, "the producer's frames have no known format",
                     "an `isthmus share` of this version at the other end");
    }
    return camera::make_frame_shape(static_cast<camera::PixelFormat>(format), get(bytes.data() + 4),
                                    get(bytes.data() + 8), get(bytes.data() + 12));
}

}  // namespace isthmus::tools::share
