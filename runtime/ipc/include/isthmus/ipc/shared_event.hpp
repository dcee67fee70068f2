// SPDX-License-Identifier: Apache-2.0
// Events between processes: one process exports an event, the other imports it, and from then on streams of each wait
// for what streams of the other recorded. The wait happens on the device and does not involve the host.
#pragma once

#include <isthmus/event.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/uuid.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace isthmus {
inline namespace v0 {

class Device;

// Content of the bytes beside the driver's handle, which carries none of this.
struct SharedEventFacts {
    Uuid device;  // the event's device
    friend bool operator==(const SharedEventFacts&, const SharedEventFacts&) = default;
};

// The data with which another process opens an event: a fixed block of bytes for an isthmus::Channel or any transport.
// Its receiver may record the event, and so delay everything that waits for it: authorise before sending. A value; it
// owns nothing.
class ISTHMUS_API SharedEventDescriptor {
public:
    static constexpr std::size_t size_bytes = 96;
    using Bytes = std::array<std::byte, size_bytes>;

    // Makes a descriptor from what came over a transport; the bytes may have any value. Errors: invalid_argument (not
    // made by export_event(): length, magic, version, a field; names it).
    static Result<SharedEventDescriptor> received(std::span<const std::byte> bytes);

    // Little-endian and versioned.
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    const SharedEventFacts& facts() const noexcept { return facts_; }

private:
    friend struct SharedEventAccess;
    SharedEventDescriptor(const Bytes& bytes, const SharedEventFacts& facts) noexcept : bytes_(bytes), facts_(facts) {}
    Bytes bytes_;
    SharedEventFacts facts_;
};

// For an event made with EventOptions::interprocess, at any time and any number of times. One driver call.
//
// After the export the event has a single last record for all processes: the most recent one of any of them.
// finished(), synchronize() and Stream::wait() refer to that record and ask the driver every time. A wait uses the
// record that is the last one when Stream::wait() is called: notify the other process (by a message or a word in shared
// memory) once Stream::record() has returned; the work need not have ended. Where two processes take turns, give each
// its own event to record.
//
// Keep the event until every importer has released its own: once the exporter's event is destroyed, the driver leaves
// the behaviour of the imported events undefined. Errors: invalid_argument (not an interprocess event), unsupported
// (this driver lacks the call), device_lost.
ISTHMUS_API Result<SharedEventDescriptor> export_event(const Event& event);

// The exporter's event as an event of `device`, which has to be the device that the descriptor names. Usable as any
// event: each process may record it and let streams wait for it, on its own streams of that device; the host may wait,
// with a deadline. Streams of another device wait for an ordinary event recorded behind such a wait: the driver crashed
// in a wait across devices, on two H200. It measures no time, and no capture may record it or wait for it. Recording
// and waiting cost one driver call each, as with ordinary events. Until it is recorded, it counts as complete. While a
// stream waits for it the driver loads no code (observed on driver 580): prepare() kernels before. Errors, with which
// nothing is left behind: unsupported (the CPU device, or a device or driver without such events: attribute 125),
// wrong_device, invalid_argument (a handle of something else, of a destroyed event, or of this process, which uses the
// event itself), device_lost.
ISTHMUS_API Result<Event> import_event(const Device& device, const SharedEventDescriptor& descriptor);

}  // namespace v0
}  // namespace isthmus
