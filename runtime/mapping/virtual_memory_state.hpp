// What stands behind AddressReservation, PhysicalMemory and Mapping: one resource of the driver each, with its undo.
#pragma once

#include <isthmus/virtual_memory.hpp>

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

namespace isthmus::inline v0::detail {

Error refusal(const rules::MappingAnswer& answer, std::string_view what);
rules::CreationFacts creation_facts(const DeviceState& device);
rules::CreationWish creation_wish(const PhysicalOptions& options);
// Device usable, no capture open on this thread.
Result<void> may_change_memory(const DeviceState& device, std::string_view what);
// What the driver is asked for. Where no node was named, the device's closest.
platform::PhysicalRequest request_of(const DeviceState& device, std::size_t bytes, const PhysicalOptions& options);
Result<platform::Granularity> ask_granularity(DeviceState& device, const PhysicalOptions& options);

using DeviceStates = std::vector<std::shared_ptr<DeviceState>>;
void add_once(DeviceStates& devices, const std::shared_ptr<DeviceState>& device);
constexpr std::size_t most_physical_bytes = std::size_t{1} << 46;  // no machine has more
// The handle behind a descriptor, which stays its owner's; whoever asked releases it. The error says what it may be.
Result<platform::PhysicalHandle> import_fd(DeviceState& device, const FileDescriptor& fd, std::string_view what);
Error not_imported(DeviceState& device, const platform::Status& status, std::string_view what);

// Into calls that may wait for these devices: no service of theirs starts until the answer ends. in_use: one runs.
Result<std::vector<CallInFlight>> enter_all(const DeviceStates& devices, std::string_view what);

// The end of one of the states below: not in a host function, while a capture is open, or while a service runs on a
// device that the driver may wait for, but behind them. In a forked child nothing is touched.
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
    // `bytes` is a multiple of the granularity. One driver call where nothing fails.
    static Result<std::shared_ptr<PhysicalState>> create(const std::shared_ptr<DeviceState>& device, std::size_t asked,
                                                         std::size_t bytes, const PhysicalOptions& options);
    // What was imported, of so many bytes. No driver call.
    static std::shared_ptr<PhysicalState> take_over(const std::shared_ptr<DeviceState>& device,
                                                    const PhysicalOptions& options, std::size_t bytes,
                                                    platform::PhysicalHandle handle);
    // At once, whatever is open: nobody has its address. Its end tries again what fails.
    void release_now() noexcept;
    // Of a multicast object: what is bound to it, newest first, as far as the driver does.
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
    // One driver call. The address map knows the whole range as memory of the device, of this kind: vmm, or imported
    // where another process's memory is to be mapped there.
    static Result<std::shared_ptr<ReservationState>> reserve(const std::shared_ptr<DeviceState>& device,
                                                             std::size_t asked, std::size_t alignment,
                                                             std::size_t granularity,
                                                             MemoryKind kind = MemoryKind::vmm);
    // One driver call.
    Result<std::shared_ptr<MappingState>> map(std::size_t offset, std::shared_ptr<PhysicalState> memory);
    // Tries once; on an error the addresses are still reserved. Nothing is mapped.
    Result<void> free();
    provenance::Record record() const noexcept;

    const std::shared_ptr<DeviceState> device;
    const std::uint64_t base;
    const std::size_t asked_bytes;
    const std::size_t bytes;
    const std::size_t granularity;
    const std::uint64_t id;
    const MemoryKind kind;

    std::mutex mutex;  // guards what follows
    bool freed = false;
    bool stuck = false;  // a mapping could not be undone: the addresses stay taken until the process ends
    std::vector<rules::MappedSpan> mapped;
};

struct MappingState {
    MappingState(std::shared_ptr<ReservationState> where, std::shared_ptr<PhysicalState> what, std::size_t at);
    ~MappingState();
    MappingState(const MappingState&) = delete;
    MappingState& operator=(const MappingState&) = delete;
    std::uint64_t address() const noexcept { return reservation->base + offset; }
    // One driver call for all of them, whom may_let_in() let in.
    Result<void> set_access(const DeviceStates& devices, RangeAccess access);
    // One driver call; on an error it is still mapped.
    Result<void> unmap();
    // As these, for who has entered the devices' calls, and whom nobody else knows the mappings of: one driver call for
    // several that follow each other in one reservation.
    static Result<void> set_access_entered(const std::vector<std::shared_ptr<MappingState>>& neighbours,
                                           const DeviceStates& devices, RangeAccess access);
    Result<void> unmap_entered();
    // Whose work the driver may wait for when this changes: the reservation's device, the memory's, a multicast
    // object's, and all that were ever let in.
    DeviceStates users() const;
    bool live() const noexcept { return mapped.load(std::memory_order_acquire); }

    // In this order: the memory is released before the addresses are freed.
    const std::shared_ptr<DeviceState> device;
    const std::shared_ptr<ReservationState> reservation;
    const std::shared_ptr<PhysicalState> memory;
    const std::size_t offset;
    std::atomic<bool> mapped{true};

private:
    // These expect the reservation's mutex to be held.
    DeviceStates users_now() const;
    // `bytes`: of this mapping and of those behind it that are opened with it.
    Result<void> open_to(const DeviceStates& devices, RangeAccess access, std::size_t bytes);
    void now_open_to(const DeviceStates& devices, RangeAccess access);
    Result<void> undo();
    // With the last of its mappings, when nobody holds a multicast object, what is bound to it goes first.
    void unbind_if_last() noexcept;
    DeviceStates let_in_;  // guarded by the reservation's mutex; grows only
};

// May these be let into memory that lies there? Asks the driver which devices reach each other.
Result<void> may_let_in(DeviceState& who, DeviceState& owner, const MemoryPlace& place, RangeAccess access);

// … into a multicast object's mapping: its own devices, for multimem instructions. No driver call.
Result<void> may_let_into_team(const DeviceState& who, const PhysicalState& object);

}  // namespace isthmus::inline v0::detail
