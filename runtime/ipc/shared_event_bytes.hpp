// The descriptor of a shared event as bytes. Pure.
#pragma once

#include <isthmus/result.hpp>
#include <isthmus/shared_event.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace isthmus::rules {

using EventHandleBytes = std::array<unsigned char, 64>;  // the driver's, never all zero

SharedEventDescriptor::Bytes encode_shared_event(const SharedEventFacts& facts, const EventHandleBytes& handle);

struct DecodedEvent {
    SharedEventFacts facts;
    EventHandleBytes handle{};
};
// Every byte may be anything. What is accepted is the same bytes when it is said again.
// Errors: invalid_argument (names the field).
Result<DecodedEvent> decode_shared_event(std::span<const std::byte> bytes);

}  // namespace isthmus::rules
