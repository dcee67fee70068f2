// SPDX-License-Identifier: Apache-2.0
// Multicast objects: one address whose stores reach the memory of several GPUs, and whose reductions gather it, over
// their NVLink switches. The types follow the driver's order: every device joins a MulticastGroup; the completed group
// becomes a MulticastObject, which is bound to memory of each device and mapped. A group offers neither bind nor map,
// because the driver would block there until all devices are added.
//
// The mapping is for multimem instructions only (compute capability 9.0): kernels take Mapping::address() as a number,
// and checked launches refuse a View of it. Proven on the simulator only (docs/virtual-memory.md).
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/export.hpp>
#include <isthmus/file_descriptor.hpp>
#include <isthmus/mapping/virtual_memory.hpp>
#include <isthmus/memory_place.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace isthmus {
inline namespace v0 {

class Device;

// Can this device take part (attribute 132)? Can its kernels use multimem instructions? No driver call.
ISTHMUS_API AccessAnswer can_multicast(const Device& device);
ISTHMUS_API AccessAnswer can_multimem(const Device& device);

struct MulticastOptions {
    ExportKinds exports = ExportKinds::none;  // for processes whose devices join; fixed at creation
};

// Granularity of an object for this number of devices. Offsets and sizes of bound memory are multiples of the minimum.
// Errors as MulticastGroup::create.
ISTHMUS_API Result<MemoryGranularity> multicast_granularity(const Device& device, std::size_t devices,
                                                            const MulticastOptions& options = {});

// A complete object, to be bound to memory of every device and mapped (AddressReservation::map). Movable. Released with
// the last of this object and its mappings, in the driver's order: unbind, unmap, release. Thread-safe except for
// moving and destroying. A moved-from object answers Code::invalid_handle.
class ISTHMUS_API MulticastObject {
public:
    std::size_t asked_bytes() const noexcept;
    std::size_t size_bytes() const noexcept;
    std::size_t devices() const noexcept;  // number of devices that it was made for

    // Binds `bytes` of `memory`, from byte `memory_offset`, at byte `offset`, for the device that owns the memory;
    // holds the memory until it is unbound. Errors, with which nothing has changed: wrong_device (the device was not
    // added; another runtime), unsupported (host memory, or memory not exportable like the object), invalid_argument
    // (not a multiple of the granularity, beyond the end), in_use (memory of that device is bound there; a service
    // runs), capture_error (a capture is open on this thread), invalid_handle, device_lost.
    Result<void> bind(std::size_t offset, const PhysicalMemory& memory, std::size_t memory_offset, std::size_t bytes);
    Result<void> bind(std::size_t offset, const PhysicalMemory& memory) {  // the whole memory
        return bind(offset, memory, 0, memory.size_bytes());
    }
    // The same by address (cuMulticastBindAddr): for `bytes` of the memory of `device` that are mapped at `address`, by
    // whatever code of the process. Errors as bind() and PhysicalMemory::mapped_at(); memory of pools has no handle and
    // is not bound.
    Result<void> bind_address(std::size_t offset, const Device& device, std::uint64_t address, std::size_t bytes);
    // Unbinds what was bound at this offset for `device`, as a whole. The caller has waited for work that uses it.
    // Errors: invalid_argument (nothing is bound there), in_use, capture_error (any capture is open), invalid_handle,
    // device_lost.
    Result<void> unbind(const Device& device, std::size_t offset);
    std::size_t bound_bytes(const Device& device) const noexcept;

    const std::shared_ptr<detail::PhysicalState>& state() const noexcept { return state_; }

private:
    friend class MulticastGroup;
    explicit MulticastObject(std::shared_ptr<detail::PhysicalState> state) noexcept : state_(std::move(state)) {}
    std::shared_ptr<detail::PhysicalState> state_;
};

// Devices join here. Movable; released when destroyed. Thread-safe except for moving, completing and destroying. A
// moved-from group answers Code::invalid_handle.
class ISTHMUS_API MulticastGroup {
public:
    // For `devices` devices, none added yet, and at least `bytes`, rounded up to the granularity. Errors: unsupported
    // (the device cannot take part or export this way, fewer devices here than requested), invalid_argument (fewer than
    // two devices, 0 bytes, more than any machine has), not_permitted (a fabric without an IMEX channel), capture_error
    // (a capture is open on this thread), device_lost.
    static Result<MulticastGroup> create(const Device& device, std::size_t devices, std::size_t bytes,
                                         const MulticastOptions& options = {});
    // Imports another process's group, made with this number of devices and bytes. The caller keeps the descriptor.
    // Errors as create(), and invalid_argument where the descriptor is not memory of this driver.
    static Result<MulticastGroup> import_posix_fd(const Device& device, const FileDescriptor& fd, std::size_t devices,
                                                  std::size_t bytes);

    std::size_t asked_bytes() const noexcept;
    std::size_t size_bytes() const noexcept;
    std::size_t devices() const noexcept;  // number of devices that it was made for
    std::size_t added() const noexcept;    // by this process

    // Errors, with which nothing has changed: unsupported (the device cannot take part), invalid_argument (added
    // before; all devices were added), wrong_device (of another runtime), capture_error, invalid_handle, device_lost.
    Result<void> add(const Device& device);
    // A descriptor for a process whose devices join. Sending it grants a right that cannot be revoked. Error:
    // unsupported (not made exportable this way).
    Result<FileDescriptor> export_posix_fd() const;
    // Succeeds when every device was added; `added_elsewhere` counts those that other processes report as added.
    // Otherwise not_ready (the message says how many are missing) or invalid_argument, and the group is unchanged.
    Result<MulticastObject> complete(std::size_t added_elsewhere = 0) &&;

private:
    explicit MulticastGroup(std::shared_ptr<detail::PhysicalState> state) noexcept : state_(std::move(state)) {}
    std::shared_ptr<detail::PhysicalState> state_;
};

}  // namespace v0
}  // namespace isthmus
