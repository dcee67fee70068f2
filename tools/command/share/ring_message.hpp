// SPDX-License-Identifier: Apache-2.0
// The one message from `isthmus share` to a viewer: the ring's descriptor, and the shape of its frames.
#pragma once

#include "camera/frame_shape.hpp"

#include <isthmus/ipc/shared_ring_descriptor.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace isthmus::tools::share {

inline constexpr std::uint32_t ring_message_kind = 0x676e6972;  // "ring"
inline constexpr std::size_t shape_bytes = 16;
using RingMessage = std::array<std::byte, SharedRingDescriptor::size_bytes + shape_bytes>;

// The shape alone, as the message ends.
std::array<std::byte, shape_bytes> encode_shape(const camera::FrameShape& shape);
// Its reverse, of bytes that are not trusted. Errors: as shape_in().
Result<camera::FrameShape> decode_shape(std::span<const std::byte> bytes);

RingMessage ring_message(const SharedRingDescriptor& descriptor, const camera::FrameShape& shape);

// Parses the shape after the descriptor's bytes, which are not trusted. Errors: invalid_argument (another length,
// unknown format, impossible sizes).
Result<camera::FrameShape> shape_in(std::span<const std::byte> message);

}  // namespace isthmus::tools::share
