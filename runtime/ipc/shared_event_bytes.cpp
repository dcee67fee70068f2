// SPDX-License-Identifier: Apache-2.0
// Encodes the driver's handle and its device; the driver knows everything else about an event.
#include "shared_event_bytes.hpp"

#include "ipc_errors.hpp"
#include "little_endian.hpp"

#include <cstdint>

namespace isthmus::rules {
namespace {

constexpr std::uint64_t magic = 0x7476656d68747369u;  // "isthmevt"
constexpr std::uint32_t version = 1;

Error damaged(const char* reason) {
    return make_error<errors::event_descriptor_damaged>(reason);
}

}  // namespace

SharedEventDescriptor::Bytes encode_shared_event(const SharedEventFacts& facts, const EventHandleBytes& handle) {
    SharedEventDescriptor::Bytes bytes{};
    LittleEndianWriter to(bytes.data());
    to.number(magic, 8);
    to.number(version, 4);
    to.number(facts.device.mig ? 1 : 0, 4);
    for (const std::uint8_t byte : facts.device.bytes) to.number(byte, 1);
    for (const unsigned char byte : handle) to.number(byte, 1);
    return bytes;
}
static_assert(8 + 2 * 4 + 16 + 64 == SharedEventDescriptor::size_bytes);

Result<DecodedEvent> decode_shared_event(std::span<const std::byte> bytes) {
    if (bytes.size() != SharedEventDescriptor::size_bytes) {
        return make_error<errors::event_descriptor_of_another_length>(bytes.size(), SharedEventDescriptor::size_bytes);
    }
    LittleEndianReader from(bytes.data());
    if (from.number(8) != magic) return damaged("its magic is another one");
    if (const std::uint64_t told = from.number(4); told != version) {
        return make_error<errors::event_descriptor_of_another_version>(told, version);
    }
    const std::uint64_t mig = from.number(4);
    if (mig > 1) return damaged("its device is neither a whole one nor a MIG instance");
    DecodedEvent decoded;
    decoded.facts.device.mig = mig == 1;
    for (std::uint8_t& byte : decoded.facts.device.bytes) byte = static_cast<std::uint8_t>(from.number(1));
    for (unsigned char& byte : decoded.handle) byte = static_cast<unsigned char>(from.number(1));
    if (decoded.handle == EventHandleBytes{}) return damaged("it has no handle");
    return decoded;
}

}  // namespace isthmus::rules
