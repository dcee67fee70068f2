// SPDX-License-Identifier: Apache-2.0
// Explicit virtual memory: addresses are reserved (AddressReservation), physical memory is created (PhysicalMemory) and
// mapped there (Mapping), and devices get access. One type per driver resource; each holds what it depends on, so in
// any order of destruction the driver sees unmap, then release, then free (V10).
//
// These types do not wait for work that uses a range, because raw views name no buffer. GrowableBuffer
// (growable_buffer.hpp) and MirroredBuffer (mirrored_buffer.hpp) do wait, and suit most programs.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/export.hpp>
#include <isthmus/file_descriptor.hpp>
#include <isthmus/memory_place.hpp>
#include <isthmus/result.hpp>
#include <isthmus/view.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

namespace isthmus {
inline namespace v0 {

class Device;
class MulticastObject;

namespace detail {
struct DeviceState;
struct MappingState;
struct PhysicalState;
struct ReservationState;
}  // namespace detail

struct PhysicalOptions {
    MemoryPlace::Where where = MemoryPlace::Where::device;  // device: the memory of the Device it is created with
    int node = -1;                                          // host_node: this node; -1: the one closest to the device
    ExportKinds exports = ExportKinds::none;                // fixed at creation (V4)
    bool compressible = false;                              // a request that the driver may decline: see properties()
    bool gpudirect_rdma = false;                            // for network cards and similar devices (attribute 116)
    PhysicalUsage usage = PhysicalUsage::none;              // tile_pool: cannot be mapped
};

// As the driver reports it, which may differ from the request (V3).
struct PhysicalProperties {
    MemoryPlace place;  // for MemoryPlace::Where::host the driver may report the node that it chose (host_node)
    ExportKinds exports = ExportKinds::none;
    bool compressible = false;
    bool gpudirect_rdma = false;
    PhysicalUsage usage = PhysicalUsage::none;
};

// Bytes. Sizes and offsets are multiples of the minimum.
struct MemoryGranularity {
    std::size_t minimum_bytes = 0;
    std::size_t recommended_bytes = 0;
};
// Granularity of such memory on this device. Errors as PhysicalMemory::create.
ISTHMUS_API Result<MemoryGranularity> memory_granularity(const Device& device, const PhysicalOptions& options = {});

// Physical memory without an address. Movable; freed with the last of this object, its mappings and importers.
// Thread-safe except for moving and destroying.
class ISTHMUS_API PhysicalMemory {
public:
    // At least `bytes`, rounded up to the granularity. Errors: unsupported (no virtual memory, not in this place, not
    // exportable this way, no compression, no GPUDirect RDMA, no such usage: the message says which), invalid_argument
    // (0 bytes), out_of_memory, capture_error (a capture is open on this thread), device_lost.
    static Result<PhysicalMemory> create(const Device& device, std::size_t bytes, const PhysicalOptions& options = {});

    std::size_t asked_bytes() const noexcept;  // V2: both sizes are reported
    std::size_t size_bytes() const noexcept;
    PhysicalOptions options() const noexcept;       // as requested
    Result<PhysicalProperties> properties() const;  // asks the driver
    // Can it be exported as this kind? No driver call: fixed at creation.
    AccessAnswer can_export(ExportKinds kind) const noexcept;
    // A file descriptor of this memory: an irrevocable right to read and write it, under any user id. Error:
    // unsupported where can_export says no.
    Result<FileDescriptor> export_posix_fd() const;
    // The same for processes on other nodes of an NVLink fabric. Errors: unsupported where can_export says no,
    // not_permitted (no IMEX channel, which the attribute does not show).
    Result<FabricHandle> export_fabric() const;
    // Imports another process's memory. `bytes` has to be the exporter's size_bytes(): the handle does not carry the
    // size, and no other size can be mapped. `device` has to own the memory or, across a fabric, to reach it. The
    // caller keeps the descriptor. Imported memory cannot be exported again. Errors: unsupported (no virtual memory; no
    // import of such handles; in most cases also without an IMEX channel), invalid_argument (not a multiple of the
    // granularity; a handle of something else, or one that was given up), wrong_device (the memory belongs to another
    // device), not_permitted (no IMEX channel), capture_error, device_lost.
    static Result<PhysicalMemory> import_posix_fd(const Device& device, const FileDescriptor& fd, std::size_t bytes);
    static Result<PhysicalMemory> import_fabric(const Device& device, const FabricHandle& handle, std::size_t bytes);
    // The memory that is mapped at this address, by this library or by other code of the process; `device` owns it. A
    // further handle (cuMemRetainAllocationHandle): the memory outlives the mapping, and what it may be exported as is
    // as it was made. Errors: unsupported (no virtual memory; a driver that tells no handle or no size),
    // invalid_argument (no memory with a handle is mapped there; a multicast object is), wrong_device (memory of
    // another device), capture_error, device_lost.
    static Result<PhysicalMemory> mapped_at(const Device& device, std::uint64_t address);

    // The driver's handle (CUmemGenericAllocationHandle), for calls of other code; 0: moved from. It stays this
    // object's: the other code does not release it.
    std::uint64_t native_handle() const noexcept;
    const std::shared_ptr<detail::PhysicalState>& state() const noexcept { return state_; }
    explicit PhysicalMemory(std::shared_ptr<detail::PhysicalState> state) noexcept : state_(std::move(state)) {}

private:
    std::shared_ptr<detail::PhysicalState> state_;
};

// Physical memory mapped in a reservation, and always unmapped as a whole (V7). Movable. Unmapped when
// destroyed: the caller has waited for device work that uses it. A moved-from or unmapped Mapping answers
// Code::invalid_handle.
class ISTHMUS_API Mapping {
public:
    explicit Mapping(std::shared_ptr<detail::MappingState> state) noexcept : state_(std::move(state)) {}
    Mapping(Mapping&&) noexcept = default;
    Mapping& operator=(Mapping&& other) noexcept = default;
    ~Mapping() = default;

    std::uint64_t address() const noexcept;     // the same on every device with access; 0: unmapped
    std::size_t offset_bytes() const noexcept;  // in the reservation
    std::size_t size_bytes() const noexcept;
    explicit operator bool() const noexcept { return address() != 0; }

    // Grants or removes access of these devices, in one driver call. The CPU device stands for the host, which can
    // access only memory on the host. Errors, with which nothing has changed: wrong_device (of another runtime),
    // unsupported (a device that has no virtual memory or does not reach the memory; the host for memory of a GPU;
    // read-only access for the host), invalid_handle, device_lost.
    Result<void> set_access(std::span<const Device* const> devices, RangeAccess access = RangeAccess::read_write);
    Result<void> set_access(std::initializer_list<const Device*> devices,
                            RangeAccess access = RangeAccess::read_write) {
        return set_access(std::span<const Device* const>(devices.begin(), devices.size()), access);
    }
    RangeAccess access(const Device& device) const noexcept;       // as recorded: no driver call (V9)
    Result<RangeAccess> query_access(const Device& device) const;  // asks the driver
    // For kernels: `count` elements from byte `first` of the mapping. Launches check the view against the recorded
    // access.
    template <class T>
    View<T> view(std::size_t first, std::size_t count) const noexcept {
        return {reinterpret_cast<T*>(static_cast<std::uintptr_t>(address() + first)), count};
    }
    // The caller has waited for device work that uses it. After an error it is still mapped.
    Result<void> unmap();

private:
    std::shared_ptr<detail::MappingState> state_;
};

// Addresses without memory, the same on every device of the runtime. Movable; freed with the last of this object and
// its mappings. Thread-safe except for moving and destroying.
class ISTHMUS_API AddressReservation {
public:
    // At least `bytes`, rounded up to the granularity of the device's memory. alignment_bytes: 0, or a power of two.
    // Errors: unsupported (the device has no virtual memory), invalid_argument, out_of_memory, device_lost.
    static Result<AddressReservation> reserve(const Device& device, std::size_t bytes, std::size_t alignment_bytes = 0);
    explicit AddressReservation(std::shared_ptr<detail::ReservationState> state) noexcept : state_(std::move(state)) {}

    std::uint64_t base() const noexcept;
    std::size_t asked_bytes() const noexcept;
    std::size_t size_bytes() const noexcept;
    std::size_t mapped_bytes() const noexcept;

    // Maps all of `memory` at byte `offset_bytes`; no device has access before Mapping::set_access (V8). One
    // reservation may hold memory of several devices and of host nodes (V6), and one object at several offsets
    // (aliases: V12). Errors: invalid_argument (an offset that is not a multiple of the granularity, beyond the end),
    // in_use (something is mapped there, V7), wrong_device (memory of another runtime), invalid_handle, device_lost.
    Result<Mapping> map(std::size_t offset_bytes, const PhysicalMemory& memory);
    // Maps all of a multicast object (multicast.hpp) for the devices that were added to it. The address has to be a
    // multiple of the object's granularity.
    Result<Mapping> map(std::size_t offset_bytes, const MulticastObject& object);
    // Frees the addresses. in_use: something is mapped there (V7).
    Result<void> release();

    const std::shared_ptr<detail::ReservationState>& state() const noexcept { return state_; }

private:
    Result<Mapping> map_state(std::size_t offset_bytes, const std::shared_ptr<detail::PhysicalState>& memory);
    std::shared_ptr<detail::ReservationState> state_;
};

}  // namespace v0
}  // namespace isthmus
