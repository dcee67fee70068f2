// SPDX-License-Identifier: Apache-2.0
// The three resources: creation, undo in order, and deferral while an undo is not allowed.
#include "virtual_memory_state.hpp"

#include "composed.hpp"
#include "mapping_errors.hpp"
#include "memory_pressure.hpp"
#include "multicast_state.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr int tries = 3;  // a destructor cannot ask its caller to retry

// After a fault every call returns it, and there is nothing to undo; but this memory survives the death of a context
// (K11).
bool nothing_to_undo(DeviceState& device) {
    return device.config->forked() || (device.is_lost() && !device.driver->context_died());
}

// An undo that must succeed: a transient failure is retried.
template <class Undo>
bool insist(DeviceState& device, std::string_view what, Undo undo) {
    platform::Status status;
    for (int attempt = 0; attempt < tries; ++attempt) {
        if (nothing_to_undo(device)) return true;
        status = undo(*device.driver->virtual_memory());
        if (status.ok()) return true;
    }
    if (nothing_to_undo(device)) return true;
    device.config->say(Severity::warning, device.failure(status, what).text());
    return false;
}

// The devices that the driver may wait for at the end of a state.
template <class State>
DeviceStates users_of(const State& state) {
    return {state.device};
}
DeviceStates users_of(const MappingState& state) {
    return state.users();
}
DeviceStates users_of(const PhysicalState& state) {
    DeviceStates all{state.device};
    if (!state.team) return all;
    for (const std::shared_ptr<DeviceState>& each : state.team->joined_now()) add_once(all, each);
    return all;
}

template <class State>
std::shared_ptr<State> kept(State* state) {
    return std::shared_ptr<State>(state, end_when_allowed<State>);
}

}  // namespace

void add_once(DeviceStates& devices, const std::shared_ptr<DeviceState>& device) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
}

Result<std::vector<CallInFlight>> enter_all(const DeviceStates& devices, std::string_view what) {
    std::vector<RunningServices*> all;
    for (const std::shared_ptr<DeviceState>& each : devices) {
        if (!each->synchronous) all.push_back(&each->services);
    }
    return enter_all(all, rules::DriverUse::change_mapping, what);
}

template <class State>
void end_when_allowed(State* state) {
    if constexpr (std::is_same_v<State, MappingState>) {
        // Nothing is left to undo; what it held ends by rules of its own.
        if (!state->live()) return delete state;
    }
    DeviceState& device = *state->device;
    Books& books = *device.books;
    const auto again = [state] { end_when_allowed(state); };
    if (!device.config->forked()) {
        if (process::here.in_host_function) return books.after_host_functions.put_off(again);
        if (books.captures.any()) return books.captures.when_none_is_open(again);
    }
    DeviceStates users;  // outlives `calls`
    if (!device.config->forked() && !device.is_lost()) users = users_of(*state);
    Result<std::vector<CallInFlight>> calls = enter_all(users, "the end of mapped memory");
    while (!calls) {
        // Deferred behind the services of a blocking device, then everything is checked again.
        for (const std::shared_ptr<DeviceState>& each : users) {
            if (!each->synchronous && each->services.put_off(rules::DriverUse::change_mapping, again)) return;
        }
        calls = enter_all(users, "the end of mapped memory");
    }
    delete state;
}

Error refusal(const rules::MappingAnswer& answer, std::string_view what) {
    return make_error_as<errors::mapping_refused>(answer.code, what, answer.reason, answer.remedy);
}

Result<void> may_change_memory(const DeviceState& device, std::string_view what) {
    if (device.bars(rules::PublicCall::change_mapping)) return device.refusal(rules::PublicCall::change_mapping, what);
    return {};
}

void PhysicalState::release_now() noexcept {
    if (released || nothing_to_undo(*device)) return;
    released = device->driver->virtual_memory()->release(handle).ok();
}

void PhysicalState::unbind_all() noexcept {
    if (!team) return;
    const std::lock_guard lock(team->mutex);
    for (; !team->bound.empty(); team->bound.pop_back()) {
        const Team::Bound& last = team->bound.back();
        DeviceState& owner = *last.memory->device;
        (void)insist(owner, "unbinding memory of a multicast object", [&](platform::VirtualMemory&) {
            return owner.driver->multicast()->unbind(handle, last.offset, last.bytes);
        });
    }
}

PhysicalState::~PhysicalState() {
    if (released) return;
    unbind_all();
    (void)insist(*device, "releasing physical memory",
                 [this](platform::VirtualMemory& memory) { return memory.release(handle); });
}

Result<std::shared_ptr<PhysicalState>> PhysicalState::create(const std::shared_ptr<DeviceState>& device,
                                                             std::size_t asked, std::size_t bytes,
                                                             const PhysicalOptions& options) {
    const platform::PhysicalRequest request = request_of(*device, bytes, options);
    const MemoryKind kind = request.place.on_host() ? MemoryKind::pinned : MemoryKind::vmm;
    platform::PhysicalHandle handle = platform::PhysicalHandle::none;
    Result<void> made = with_room(*device, kind, bytes, [&]() -> Result<void> {
        if (Result<void> within = within_budget(*device, kind, bytes); !within) return within;
        const platform::Status status = device->driver->virtual_memory()->create(request, handle);
        if (status.ok()) return {};
        return device->failure(status, composed("creating {} bytes of physical memory", bytes));
    });
    if (!made) return std::move(made).error();
    return kept(new PhysicalState(device, options, request.place, asked, bytes, handle));
}

std::shared_ptr<PhysicalState> PhysicalState::take_over(const std::shared_ptr<DeviceState>& device,
                                                        const PhysicalOptions& options, std::size_t bytes,
                                                        platform::PhysicalHandle handle) {
    return kept(new PhysicalState(device, options, request_of(*device, bytes, options).place, bytes, bytes, handle));
}

ReservationState::~ReservationState() {
    if (freed) return;
    if (!device->config->forked()) (void)device->books->addresses.erase(base, id);
    if (stuck) return;
    (void)insist(*device, "freeing reserved addresses",
                 [this](platform::VirtualMemory& memory) { return memory.free_address(base, bytes); });
}

Result<void> ReservationState::free() {
    const std::lock_guard lock(mutex);
    if (freed) return make_error<errors::reservation_released_before>();
    if (const rules::MappingAnswer answer = rules::may_free(mapped.size()); !answer) {
        return refusal(answer, "freeing reserved addresses");
    }
    // The driver may give the addresses to another thread at once: erase them from the map first.
    (void)device->books->addresses.erase(base, id);
    const platform::Status status = device->driver->virtual_memory()->free_address(base, bytes);
    if (!status.ok()) {
        (void)device->books->ledger.insert(record());
        return device->failure(status, "freeing reserved addresses");
    }
    freed = true;
    return {};
}

provenance::Record ReservationState::record() const noexcept {
    return {base, bytes, id, static_cast<std::uint32_t>(device->index), kind, 0};
}

Result<std::shared_ptr<ReservationState>> ReservationState::reserve(const std::shared_ptr<DeviceState>& device,
                                                                    std::size_t asked, std::size_t alignment,
                                                                    std::size_t granularity, MemoryKind kind) {
    const std::optional<std::size_t> bytes = rules::round_up(asked, granularity);
    if (asked == 0 || !bytes || *bytes > max_physical_bytes) {
        return make_error<errors::reservation_size>(asked);
    }
    std::uint64_t base = 0;
    const platform::Status status = device->driver->virtual_memory()->reserve(*bytes, alignment, base);
    if (!status.ok()) return device->failure(status, "reserving addresses");
    auto state = kept(new ReservationState(device, base, asked, *bytes, granularity, Books::next_id(), kind));
    if (Result<void> known = device->books->ledger.insert(state->record()); !known) return std::move(known).error();
    return state;
}

Result<std::shared_ptr<MappingState>> ReservationState::map(std::size_t offset, std::shared_ptr<PhysicalState> memory) {
    const std::lock_guard lock(mutex);
    if (freed) return make_error<errors::mapping_into_released_reservation>();
    const rules::MappedSpan wanted{offset, memory->bytes};
    if (const rules::MappingAnswer answer = rules::may_map(bytes, granularity, mapped, wanted); !answer) {
        return refusal(answer, composed("mapping {} bytes at offset {}", memory->bytes, offset));
    }
    const platform::Status status = device->driver->virtual_memory()->map(base + offset, memory->bytes, memory->handle);
    if (!status.ok()) return device->failure(status, "mapping physical memory");
    mapped.push_back(wanted);
    const int lies = memory->team              ? rules::RangeFacts::multicast
                     : memory->place.on_host() ? rules::RangeFacts::on_host
                                               : static_cast<int>(memory->device->index);
    device->books->mapped.add(base + offset, memory->bytes, lies);
    return kept(new MappingState(weak_from_this().lock(), std::move(memory), offset));
}

MappingState::MappingState(std::shared_ptr<ReservationState> where, std::shared_ptr<PhysicalState> what, std::size_t at)
    : device(where->device), reservation(std::move(where)), memory(std::move(what)), offset(at) {}

MappingState::~MappingState() {
    if (!live() || device->config->forked()) return;
    unbind_if_last();
    const bool undone = insist(*device, "unmapping memory", [this](platform::VirtualMemory& virtual_memory) {
        return virtual_memory.unmap(address(), memory->bytes);
    });
    const std::lock_guard lock(reservation->mutex);
    if (!undone) {
        // Still mapped, and the driver keeps the memory as long: the addresses must not be reused.
        reservation->stuck = true;
        return;
    }
    std::erase_if(reservation->mapped, [this](const rules::MappedSpan& span) { return span.offset == offset; });
    device->books->mapped.remove(address());
}

DeviceStates MappingState::users_now() const {
    DeviceStates all{device};
    for (const std::shared_ptr<DeviceState>& each : users_of(*memory)) add_once(all, each);
    for (const std::shared_ptr<DeviceState>& each : let_in_) add_once(all, each);
    return all;
}

DeviceStates MappingState::users() const {
    const std::lock_guard lock(reservation->mutex);
    return users_now();
}

Result<void> MappingState::unmap() {
    for (;;) {
        const DeviceStates entered = users();
        Result<std::vector<CallInFlight>> calls = enter_all(entered, "unmapping memory");
        if (!calls) return std::move(calls).error();
        const std::lock_guard lock(reservation->mutex);
        if (users_now() != entered) continue;  // another thread granted access meanwhile
        return undo();
    }
}

Result<void> MappingState::unmap_entered() {
    const std::lock_guard lock(reservation->mutex);
    return undo();
}

void MappingState::unbind_if_last() noexcept {
    if (memory->team && memory.use_count() == 1) memory->unbind_all();
}

Result<void> MappingState::undo() {
    if (!live()) return make_error<errors::unmapped_before>();
    unbind_if_last();
    if (!nothing_to_undo(*device)) {
        const platform::Status status = device->driver->virtual_memory()->unmap(address(), memory->bytes);
        if (!status.ok() && !nothing_to_undo(*device)) return device->failure(status, "unmapping memory");
    }
    std::erase_if(reservation->mapped, [this](const rules::MappedSpan& span) { return span.offset == offset; });
    device->books->mapped.remove(address());
    mapped.store(false, std::memory_order_release);
    return {};
}

template void end_when_allowed(PhysicalState*);
template void end_when_allowed(ReservationState*);
template void end_when_allowed(MappingState*);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
