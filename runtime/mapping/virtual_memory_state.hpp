// SPDX-License-Identifier: Apache-2.0
// The states of AddressReservation, PhysicalMemory and Mapping: one driver resource each, with its undo.
#pragma once

#include <isthmus/mapping/virtual_memory.hpp>

#include <platform/driver.hpp>

#include "device_state.hpp"
#include "running_services.hpp"
#include "virtual_memory_rules.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

Error refusal(const rules::MappingAnswer& answer, std::string_view what);
rules::CreationFacts creation_facts(const DeviceState& device);
rules::CreationWish creation_wish(const PhysicalOptions& options);
// An error unless the device is usable and no capture is open on this thread.
Result<void> may_change_memory(const DeviceState& device, std::string_view what);
// The request to the driver. Without a named node: the device's closest.
platform::PhysicalRequest request_of(const DeviceState& device, std::size_t bytes, const PhysicalOptions& options);
Result<platform::Granularity> ask_granularity(DeviceState& device, const PhysicalOptions& options);

using DeviceStates = std::vector<std::shared_ptr<DeviceState>>;
void add_once(DeviceStates& devices, const std::shared_ptr<DeviceState>& device);
constexpr std::size_t max_physical_bytes = std::size_t{1} << 46;  // more than any machine has
// Imports a descriptor's handle; the descriptor stays its owner's, the caller releases the handle. The error states
// likely causes.
Result<platform::PhysicalHandle> import_fd(DeviceState& device, const FileDescriptor& fd, std::string_view what);
Error not_imported(DeviceState& device, const platform::Status& status, std::string_view what);
struct PhysicalState;
// The memory that is mapped at an address, and where its mapping begins.
struct MappedAt {
    std::shared_ptr<PhysicalState> memory;
    std::uint64_t base = 0;
};
// Errors as PhysicalMemory::mapped_at.
Result<MappedAt> memory_at(const std::shared_ptr<DeviceState>& device, std::uint64_t address, std::string_view what);

// Enters calls that may wait for these devices: none of their services starts while the result lives. in_use: a service
// runs.
Result<std::vector<CallInFlight>> enter_all(const DeviceStates& devices, std::string_view what);

// Ends one of the states below; deferred in a host function, while a capture is open, or while a service runs on a
// device that the driver may wait for. A forked child leaves the driver's resource alone.
template <class State>
void end_when_allowed(State* state);

struct Team;

struct PhysicalState {
    // Takes over a handle that was created or imported.
    PhysicalState(std::shared_ptr<DeviceState> owner, PhysicalOptions as_asked, MemoryPlace lies, std::size_t asked,
                  std::size_t obtained, platform::PhysicalHandle made)
        : device(std::move(owner)), options(as_asked), place(lies), asked_bytes(asked), bytes(obtained), handle(made) {}
    ~PhysicalState();
    PhysicalState(const PhysicalState&) = delete;
    PhysicalState& operator=(const PhysicalState&) = delete;
    // `bytes` is a multiple of the granularity. One driver call if nothing fails.
    static Result<std::shared_ptr<PhysicalState>> create(const std::shared_ptr<DeviceState>& device, std::size_t asked,
                                                         std::size_t bytes, const PhysicalOptions& options);
    // An imported handle of `bytes`. No driver call.
    static std::shared_ptr<PhysicalState> take_over(const std::shared_ptr<DeviceState>& device,
                                                    const PhysicalOptions& options, std::size_t bytes,
                                                    platform::PhysicalHandle handle);
    // Releases at once, whatever is open: its address is unknown to other code. If that fails, the destructor retries.
    void release_now() noexcept;
    // For a multicast object: unbinds its ranges, newest first, until the driver refuses.
    void unbind_all() noexcept;

    const std::shared_ptr<DeviceState> device;
    const PhysicalOptions options;
    const MemoryPlace place;
    const std::size_t asked_bytes;
    const std::size_t bytes;
    const platform::PhysicalHandle handle;
    bool released = false;
    std::shared_ptr<Team> team;  // of a multicast object (multicast_state.hpp), which has no memory of its own
};

struct MappingState;

struct ReservationState : std::enable_shared_from_this<ReservationState> {
    ReservationState(std::shared_ptr<DeviceState> owner, std::uint64_t address, std::size_t asked, std::size_t obtained,
                     std::size_t unit, std::uint64_t identity, MemoryKind what)
        : device(std::move(owner)),
          base(address),
          asked_bytes(asked),
          bytes(obtained),
          granularity(unit),
          id(identity),
          kind(what) {}
    ~ReservationState();
    ReservationState(const ReservationState&) = delete;
    ReservationState& operator=(const ReservationState&) = delete;
    // One driver call. The address map records the whole range as memory of the device and of `kind`: vmm, or imported
    // if another process's memory is to be mapped there.
    static Result<std::shared_ptr<ReservationState>> reserve(const std::shared_ptr<DeviceState>& device,
                                                             std::size_t asked, std::size_t alignment,
                                                             std::size_t granularity,
                                                             MemoryKind kind = MemoryKind::vmm);
    // One driver call.
    Result<std::shared_ptr<MappingState>> map(std::size_t offset, std::shared_ptr<PhysicalState> memory);
    // Nothing may be mapped. Tries once; on an error the addresses stay reserved.
    Result<void> free();
    provenance::Record record() const noexcept;

    const std::shared_ptr<DeviceState> device;
    const std::uint64_t base;
    const std::size_t asked_bytes;
    const std::size_t bytes;
    const std::size_t granularity;
    const std::uint64_t id;
    const MemoryKind kind;

    std::mutex mutex;  // guards the members below
    bool freed = false;
    bool stuck = false;  // a mapping could not be undone: the addresses stay reserved until the process ends
    std::vector<rules::MappedSpan> mapped;
};

struct MappingState {
    MappingState(std::shared_ptr<ReservationState> where, std::shared_ptr<PhysicalState> what, std::size_t at);
    ~MappingState();
    MappingState(const MappingState&) = delete;
    MappingState& operator=(const MappingState&) = delete;
    std::uint64_t address() const noexcept { return reservation->base + offset; }
    // One driver call for all devices, each accepted by may_let_in().
    Result<void> set_access(const DeviceStates& devices, RangeAccess access);
    // One driver call; on an error it is still mapped.
    Result<void> unmap();
    // Same, for callers that have entered the devices' calls and alone know the mappings. set_access_entered() makes
    // one driver call for several adjacent mappings of one reservation.
    static Result<void> set_access_entered(const std::vector<std::shared_ptr<MappingState>>& neighbours,
                                           const DeviceStates& devices, RangeAccess access);
    Result<void> unmap_entered();
    // Devices whose work the driver may wait for when this changes: the reservation's, the memory's, a multicast
    // object's, and all that ever had access.
    DeviceStates users() const;
    bool live() const noexcept { return mapped.load(std::memory_order_acquire); }

    // In this order: the memory is released before the addresses are freed.
    const std::shared_ptr<DeviceState> device;
    const std::shared_ptr<ReservationState> reservation;
    const std::shared_ptr<PhysicalState> memory;
    const std::size_t offset;
    std::atomic<bool> mapped{true};

private:
    // These require the reservation's mutex.
    DeviceStates users_now() const;
    // `bytes`: of this mapping and of those after it that are opened with it.
    Result<void> open_to(const DeviceStates& devices, RangeAccess access, std::size_t bytes);
    void now_open_to(const DeviceStates& devices, RangeAccess access);
    Result<void> undo();
    // With the last mapping of a multicast object that has no other holder, unbinds its ranges first.
    void unbind_if_last() noexcept;
    DeviceStates let_in_;  // guarded by the reservation's mutex; only grows
};

// May `who` access memory of `owner` at `place`? Asks the driver which devices reach each other.
Result<void> may_let_in(DeviceState& who, DeviceState& owner, const MemoryPlace& place, RangeAccess access);

// May `who` access the object's mapping? Only its own devices may, for multimem instructions. No driver call.
Result<void> may_let_into_team(const DeviceState& who, const PhysicalState& object);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
