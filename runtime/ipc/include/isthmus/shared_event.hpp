// Events between processes: one exports an event, the other imports it, and from then on streams of each wait for what
// streams of the other recorded: on the device, with no host in between and no wait of the host's.
#pragma once

#include <isthmus/event.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/uuid.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace isthmus::inline v0 {

class Device;

// What the bytes say beside the driver's handle, which tells nothing.
struct SharedEventFacts {
    Uuid device;  // whose event it is
    friend bool operator==(const SharedEventFacts&, const SharedEventFacts&) = default;
};

// What another process needs to open an event: a fixed block of bytes, to be sent over an isthmus::Channel or any
// transport. Whoever gets it may record the event, and thereby hold up everybody who waits for it: authorise before
// sending. A value: it owns nothing.
class ISTHMUS_API SharedEventDescriptor {
public:
    static constexpr std::size_t size_bytes = 96;
    using Bytes = std::array<std::byte, size_bytes>;

    // As they came over a transport; every byte may be anything.
    // Errors: invalid_argument (not what export_event() makes: length, magic, version, a field; names it).
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

// For an event that was made with EventOptions::interprocess, at any time and any number of times. One driver call.
//
// From then on the event has one last record for all processes, which is whoever's came last; finished(),
// synchronize() and Stream::wait() mean that one, and ask the driver every time. A wait takes the record that is the
// last one when Stream::wait() is called: tell the other process, by a message or a word in shared memory, that
// Stream::record() has returned, not that the work has ended. Where two processes take turns, give each an event of its
// own to record.
//
// Keep the event until all who imported it have let go of theirs: the driver leaves undefined what becomes of those
// once the exporter's is destroyed. Errors: invalid_argument (not made for other processes), unsupported (this driver
// lacks the call), device_lost.
ISTHMUS_API Result<SharedEventDescriptor> export_event(const Event& event);

// The exporter's event as one of `device`, which has to be the one that the descriptor names. Usable as any event: each
// process may record it and let streams wait for it, both on its own streams of that device (those of another one wait
// for an ordinary event behind: the driver crashed in a wait across devices, on two H200); the host may wait, with a
// deadline. It measures no time, and no capture may record it or wait for it. Recording and waiting cost one driver
// call each, as with ordinary events. Until somebody records it, it counts as complete. While a stream waits for it the
// driver loads no code (observed on driver 580): prepare() kernels before.
// Errors, with which nothing is left behind: unsupported (the CPU device, or a device or driver without such events:
// attribute 125), wrong_device, invalid_argument (a handle of something else, of an event that is gone, or of this very
// process, which uses the event itself), device_lost.
ISTHMUS_API Result<Event> import_event(const Device& device, const SharedEventDescriptor& descriptor);

}  // namespace isthmus::inline v0
