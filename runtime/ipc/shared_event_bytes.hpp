// SPDX-License-Identifier: Apache-2.0
// The descriptor of a shared event as bytes. Pure.
#pragma once

#include <isthmus/ipc/shared_event.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace isthmus::rules {

using EventHandleBytes = std::array<unsigned char, 64>;  // made by the driver; never all zero

SharedEventDescriptor::Bytes encode_shared_event(const SharedEventFacts& facts, const EventHandleBytes& handle);

struct DecodedEvent {
    SharedEventFacts facts;
    EventHandleBytes handle{};
};
// Accepts any input; accepted bytes encode again to the same bytes. Errors: invalid_argument (names the field).
Result<DecodedEvent> decode_shared_event(std::span<const std::byte> bytes);

}  // namespace isthmus::rules
