// Virtual memory by hand: addresses are reserved (AddressReservation), memory is created (PhysicalMemory), one is
// mapped at the other (Mapping), and devices are let in. One type per resource of the driver; each holds what it
// depends on, so that whatever order a program lets go in, the driver sees unmap, then release, then free (V10).
//
// Nothing here waits for work that uses a range: raw views name no buffer. GrowableBuffer (growable_buffer.hpp) and
// MirroredRing (mirrored_ring.hpp) do, and are what most programs want.
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

namespace isthmus::inline v0 {

class Device;
class MulticastObject;

namespace detail {
struct DeviceState;
struct MappingState;
struct PhysicalState;
struct ReservationState;
}  // namespace detail

struct PhysicalOptions {
    MemoryPlace::Where where = MemoryPlace::Where::device;  // device: that of the Device it is created with
    int node = -1;                                          // host_node: which; -1: the device's closest
    ExportKinds exports = ExportKinds::none;                // fixed from here on (V4)
    bool compressible = false;                              // asked of the driver, which may decline: see properties()
    bool gpudirect_rdma = false;                            // for network cards and the like (attribute 116)
};

// As the driver has it, not as it was asked for (V3).
struct PhysicalProperties {
    MemoryPlace place;  // of Where::host the driver may name the node that it chose (host_node)
    ExportKinds exports = ExportKinds::none;
    bool compressible = false;
    bool gpudirect_rdma = false;
};

// Sizes and offsets are multiples of the minimum. Bytes.
struct MemoryGranularity {
    std::size_t minimum_bytes = 0;
    std::size_t recommended_bytes = 0;
};
// Of memory like this on this device. Errors as PhysicalMemory::create.
ISTHMUS_API Result<MemoryGranularity> memory_granularity(const Device& device, const PhysicalOptions& options = {});

// Memory without an address. Movable; the memory goes when the last of this, its mappings and its importers has gone.
// Thread-safe but for moving and destroying.
class ISTHMUS_API PhysicalMemory {
public:
    // At least `bytes`, rounded up to the granularity. Errors: unsupported (the device has no virtual memory, not in
    // this place, not exportable like that, no compression, no GPUDirect RDMA: the message says which),
    // invalid_argument (0 bytes), out_of_memory, capture_error (a capture is open on this thread), device_lost.
    static Result<PhysicalMemory> create(const Device& device, std::size_t bytes, const PhysicalOptions& options = {});

    std::size_t asked_bytes() const noexcept;  // V2: both sizes
    std::size_t size_bytes() const noexcept;
    PhysicalOptions options() const noexcept;       // as asked for
    Result<PhysicalProperties> properties() const;  // asks the driver
    // May it be exported as this? From what was fixed at creation: no driver call.
    AccessAnswer can_export(ExportKinds kind) const noexcept;
    // A descriptor of this memory. Whoever gets it has a right to read and write that nobody takes back, under any user
    // id. Error: unsupported where can_export says no.
    Result<FileDescriptor> export_posix_fd() const;
    // The same for processes of the other nodes of an NVLink fabric. Errors: unsupported where can_export says no,
    // not_permitted (no IMEX channel: the attribute does not tell).
    Result<FabricHandle> export_fabric() const;
    // Another process's memory, of the size that its size_bytes() says: nothing tells it, and another one cannot be
    // mapped. `device` has to be the one that it lies on, across a fabric any that reaches it. The descriptor stays the
    // caller's. What was imported is not exported again. Errors: unsupported (no virtual memory; nothing imports such
    // handles; mostly also where there is no IMEX channel), invalid_argument (no multiple of the granularity; a handle
    // of something else, or one that was given up), wrong_device (it lies on another device), not_permitted (no IMEX
    // channel), capture_error, device_lost.
    static Result<PhysicalMemory> import_posix_fd(const Device& device, const FileDescriptor& fd, std::size_t bytes);
    static Result<PhysicalMemory> import_fabric(const Device& device, const FabricHandle& handle, std::size_t bytes);

    const std::shared_ptr<detail::PhysicalState>& state() const noexcept { return state_; }
    explicit PhysicalMemory(std::shared_ptr<detail::PhysicalState> state) noexcept : state_(std::move(state)) {}

private:
    std::shared_ptr<detail::PhysicalState> state_;
};

// One piece of physical memory at its addresses in a reservation. Movable; unmapped when destroyed: the caller has
// waited for device work that uses it. A moved-from or unmapped one answers Code::invalid_handle.
// There is no way to unmap a part: what was mapped as one goes as one (V7).
class ISTHMUS_API Mapping {
public:
    explicit Mapping(std::shared_ptr<detail::MappingState> state) noexcept : state_(std::move(state)) {}
    Mapping(Mapping&&) noexcept = default;
    Mapping& operator=(Mapping&& other) noexcept = default;
    ~Mapping() = default;

    std::uint64_t address() const noexcept;     // on every device that is let in; 0: unmapped
    std::size_t offset_bytes() const noexcept;  // in the reservation
    std::size_t size_bytes() const noexcept;
    explicit operator bool() const noexcept { return address() != 0; }

    // Lets these devices in, or takes their access away, in one driver call. The CPU device stands for the host, which
    // can be let into memory that lies on the host only. Errors, with which nothing has changed: wrong_device (of
    // another runtime), unsupported (a device that has no virtual memory or does not reach the memory; the host and
    // memory of a GPU; access that is read-only for the host), invalid_handle, device_lost.
    Result<void> set_access(std::span<const Device* const> devices, RangeAccess access = RangeAccess::read_write);
    Result<void> set_access(std::initializer_list<const Device*> devices,
                            RangeAccess access = RangeAccess::read_write) {
        return set_access(std::span<const Device* const>(devices.begin(), devices.size()), access);
    }
    RangeAccess access(const Device& device) const noexcept;       // as recorded: no driver call (V9)
    Result<RangeAccess> query_access(const Device& device) const;  // as the driver has it
    // For kernels: `count` elements from byte `first` of the mapping. Launches check them against the access recorded.
    template <class T>
    View<T> view(std::size_t first, std::size_t count) const noexcept {
        return {reinterpret_cast<T*>(static_cast<std::uintptr_t>(address() + first)), count};
    }
    // The caller has waited for device work that uses it. On an error it is still mapped.
    Result<void> unmap();

private:
    std::shared_ptr<detail::MappingState> state_;
};

// Addresses without memory, the same on every device of the runtime. Movable; freed when the last of this and its
// mappings has gone. Thread-safe but for moving and destroying.
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

    // All of `memory` at byte `offset`; nobody may use it before Mapping::set_access (V8). Memory of several devices
    // and of host nodes may lie side by side in one reservation (V6), and one piece at several offsets (aliases: V12).
    // Errors: invalid_argument (an offset off the granularity, beyond the end), in_use (something is mapped there, V7),
    // wrong_device (memory of another runtime), invalid_handle, device_lost.
    Result<Mapping> map(std::size_t offset_bytes, const PhysicalMemory& memory);
    // All of a multicast object (multicast.hpp), for the devices that were added to it; the address has to be a
    // multiple of the object's granularity.
    Result<Mapping> map(std::size_t offset_bytes, const MulticastObject& object);
    // Gives the addresses back. in_use: something is mapped there (V7).
    Result<void> release();

    const std::shared_ptr<detail::ReservationState>& state() const noexcept { return state_; }

private:
    Result<Mapping> map_state(std::size_t offset_bytes, const std::shared_ptr<detail::PhysicalState>& memory);
    std::shared_ptr<detail::ReservationState> state_;
};

}  // namespace isthmus::inline v0
