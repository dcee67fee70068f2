// Multicast objects: one address whose stores reach, and whose reductions gather, memory of several GPUs over their
// NVLink switches. Typed by the order that the driver wants: a MulticastGroup is made and joined by every device; what
// it completes to, a MulticastObject, is bound to memory of each, and mapped. The driver would wait in bind and map for
// devices that were not added, so that neither can be asked of a group.
//
// What is mapped is for multimem instructions (compute capability 9.0) alone: kernels take Mapping::address() as a
// number, and a View of it is refused by checked launches. Proven on the simulator only (docs/virtual-memory.md).
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/export.hpp>
#include <isthmus/file_descriptor.hpp>
#include <isthmus/memory_place.hpp>
#include <isthmus/result.hpp>
#include <isthmus/virtual_memory.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace isthmus::inline v0 {

class Device;

// May this device take part (attribute 132)? May its kernels use multimem instructions? No driver call.
ISTHMUS_API AccessAnswer can_multicast(const Device& device);
ISTHMUS_API AccessAnswer can_multimem(const Device& device);

struct MulticastOptions {
    ExportKinds exports = ExportKinds::none;  // for processes whose devices join, fixed from here on
};

// Of an object for so many devices. Offsets and sizes of what is bound are multiples of the minimum. Errors as
// MulticastGroup::create.
ISTHMUS_API Result<MemoryGranularity> multicast_granularity(const Device& device, std::size_t devices,
                                                            const MulticastOptions& options = {});

// Complete: memory of every device can be bound, and the object mapped (AddressReservation::map). Movable. Goes when
// the last of this and its mappings has gone: the driver sees unbind, then unmap, then release. Thread-safe but for
// moving and destroying. A moved-from one answers Code::invalid_handle.
class ISTHMUS_API MulticastObject {
public:
    std::size_t asked_bytes() const noexcept;
    std::size_t size_bytes() const noexcept;
    std::size_t devices() const noexcept;  // that it stands for

    // `bytes` of `memory` from byte `memory_offset` stand at byte `offset`, for the device whose memory it is. Held
    // until it is unbound. Errors, with which nothing has changed: wrong_device (the device was not added; another
    // runtime), unsupported (memory on the host, or not exportable where the object is), invalid_argument (off the
    // granularity, beyond the end), in_use (memory of that device is bound there; a service runs), capture_error (a
    // capture is open on this thread), invalid_handle, device_lost.
    Result<void> bind(std::size_t offset, const PhysicalMemory& memory, std::size_t memory_offset, std::size_t bytes);
    Result<void> bind(std::size_t offset, const PhysicalMemory& memory) {  // all of it
        return bind(offset, memory, 0, memory.size_bytes());
    }
    // What was bound at this offset of memory of `device`, as one. The caller has waited for work that uses it. Errors:
    // invalid_argument (nothing is bound there), in_use, capture_error (any capture is open), invalid_handle,
    // device_lost.
    Result<void> unbind(const Device& device, std::size_t offset);
    std::size_t bound_bytes(const Device& device) const noexcept;

    const std::shared_ptr<detail::PhysicalState>& state() const noexcept { return state_; }

private:
    friend class MulticastGroup;
    explicit MulticastObject(std::shared_ptr<detail::PhysicalState> state) noexcept : state_(std::move(state)) {}
    std::shared_ptr<detail::PhysicalState> state_;
};

// Devices join. Movable; released when destroyed. Thread-safe but for moving, completing and destroying. A moved-from
// one answers Code::invalid_handle.
class ISTHMUS_API MulticastGroup {
public:
    // For `devices` devices, none of which was added yet, and at least `bytes`, rounded up to the granularity. Errors:
    // unsupported (the device takes no part, not exportable like that, fewer devices here than asked for),
    // invalid_argument (fewer than two devices, 0 bytes, more than any machine has), not_permitted (a fabric without an
    // IMEX channel), capture_error (a capture is open on this thread), device_lost.
    static Result<MulticastGroup> create(const Device& device, std::size_t devices, std::size_t bytes,
                                         const MulticastOptions& options = {});
    // Another process's group, with what that asked for. The descriptor stays the caller's. Errors as create(), and
    // invalid_argument where the descriptor is none of this driver's memory.
    static Result<MulticastGroup> import_posix_fd(const Device& device, const FileDescriptor& fd, std::size_t devices,
                                                  std::size_t bytes);

    std::size_t asked_bytes() const noexcept;
    std::size_t size_bytes() const noexcept;
    std::size_t devices() const noexcept;  // that it was made for
    std::size_t added() const noexcept;    // by this process

    // Errors, with which nothing has changed: unsupported (the device takes no part), invalid_argument (added before;
    // all were added), wrong_device (of another runtime), capture_error, invalid_handle, device_lost.
    Result<void> add(const Device& device);
    // A descriptor for a process whose devices join; who gets it has a right that nobody takes back. Error: unsupported
    // (not made exportable like that).
    Result<FileDescriptor> export_posix_fd() const;
    // When every device was added, those of other processes as they said it. Else not_ready (the message says how many
    // are missing) or invalid_argument, and the group is as it was.
    Result<MulticastObject> complete(std::size_t added_elsewhere = 0) &&;

private:
    explicit MulticastGroup(std::shared_ptr<detail::PhysicalState> state) noexcept : state_(std::move(state)) {}
    std::shared_ptr<detail::PhysicalState> state_;
};

}  // namespace isthmus::inline v0
