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

RingMessage ring_message(const SharedRingDescriptor& descriptor, const camera::FrameShape& shape) {
    RingMessage message{};
    std::copy(descriptor.bytes().begin(), descriptor.bytes().end(), message.begin());
    std::byte* const at = message.data() + SharedRingDescriptor::size_bytes;
    put(at, static_cast<std::uint32_t>(shape.format));
    put(at + 4, shape.width);
    put(at + 8, shape.height);
    put(at + 12, shape.pitch_bytes);
    return message;
}

Result<camera::FrameShape> shape_in(std::span<const std::byte> message) {
    if (message.size() != RingMessage().size()) {
        return Error(Code::invalid_argument,
                     "the producer's message has " + std::to_string(message.size()) + " bytes instead of " +
                         std::to_string(RingMessage().size()),
                     "an `isthmus share` of this version at the other end");
    }
    const std::byte* const at = message.data() + SharedRingDescriptor::size_bytes;
    const std::uint32_t format = get(at);
    if (format > 0xff || camera::name(static_cast<camera::PixelFormat>(format)) == "unknown") {
        return Error(Code::invalid_argument, "the producer's frames have no known format",
                     "an `isthmus share` of this version at the other end");
    }
    return camera::make_frame_shape(static_cast<camera::PixelFormat>(format), get(at + 4), get(at + 8), get(at + 12));
}

}  // namespace isthmus::tools::share
