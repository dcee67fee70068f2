// SPDX-License-Identifier: Apache-2.0
// The public AddressReservation, PhysicalMemory and Mapping: validation here, execution in their states.
#include <isthmus/mapping/virtual_memory.hpp>

#include <isthmus/device.hpp>

#include "mapping_errors.hpp"
#include "memory_errors.hpp"
#include "virtual_memory_state.hpp"

#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace {

using detail::DeviceState;

// All checks that need no driver call.
Result<void> may_create(const DeviceState& device, const PhysicalOptions& options, std::string_view what) {
    if (Result<void> now = detail::may_change_memory(device, what); !now) return now;
    const rules::MappingAnswer answer =
        rules::may_create(device.capabilities, detail::creation_facts(device), detail::creation_wish(options));
    return answer ? Result<void>() : detail::refusal(answer, what);
}

Result<void> may_export_as(const std::shared_ptr<detail::PhysicalState>& memory, ExportKinds kind) {
    if (!memory) return make_error<errors::physical_memory_moved_from>();
    const AccessAnswer answer = rules::may_export(memory->options.exports, kind);
    if (!answer) return make_error<errors::physical_memory_export_refused>(answer.reason, answer.remedy);
    if (memory->device->bars(rules::PublicCall::export_physical_memory))
        return memory->device->refusal(rules::PublicCall::export_physical_memory);
    return {};
}

constexpr std::string_view importing = "importing physical memory";
constexpr std::string_view retaining = "retaining mapped memory";

Result<void> may_import(DeviceState& device, ExportKinds kind, std::size_t bytes) {
    PhysicalOptions like;
    like.exports = kind;
    if (Result<void> can = may_create(device, like, importing); !can) return can;
    Result<platform::Granularity> granularity = detail::ask_granularity(device, {});
    if (!granularity) return std::move(granularity).error();
    if (bytes != 0 && bytes % granularity->minimum_bytes == 0) return {};
    return make_error<errors::imported_size_off_granularity>(bytes, granularity->minimum_bytes);
}

// Asks the driver for the owner: the handle's properties decide, whatever the caller claims.
Result<std::shared_ptr<detail::PhysicalState>> taken_in(const std::shared_ptr<DeviceState>& device, std::size_t bytes,
                                                        platform::PhysicalHandle handle, bool own,
                                                        std::string_view what) {
    platform::PhysicalFacts told;
    const platform::Status status = device->driver->virtual_memory()->properties(handle, told);
    PhysicalOptions options;
    options.where = told.place.where;
    if (told.place.where == MemoryPlace::Where::host_node) options.node = told.place.id;
    options.exports = told.exports;
    options.compressible = told.compressible;
    options.gpudirect_rdma = told.gpudirect_rdma;
    options.usage = told.usage;
    // Released on any error.
    std::shared_ptr<detail::PhysicalState> memory = detail::PhysicalState::take_over(device, options, bytes, handle);
    if (!status.ok()) return device->failure(status, "asking for properties of memory");
    if (own && !told.place.on_host() && told.place.id != device->driver->facts().ordinal) {
        return make_error<errors::memory_of_another_device>(what, detail::named(*device));
    }
    return memory;
}

Result<PhysicalMemory> as_memory(Result<std::shared_ptr<detail::PhysicalState>> state) {
    if (!state) return std::move(state).error();
    return PhysicalMemory(std::move(state).value());
}

}  // namespace

namespace detail {

Result<MappedAt> memory_at(const std::shared_ptr<DeviceState>& device, std::uint64_t address, std::string_view what) {
    if (Result<void> now = may_change_memory(*device, what); !now) return std::move(now).error();
    const rules::MappingAnswer answer = rules::may_reserve(device->capabilities, creation_facts(*device));
    if (!answer) return refusal(answer, what);
    if (device->books->mapped.over(address, 1, device->index).lies == rules::RangeFacts::multicast) {
        return make_error<errors::multicast_object_mapped_there>(what, address);
    }
    // A handle of a segment has blocks of several owners.
    if (device->segment.owns(address)) return make_error<errors::no_memory_mapped_there>(what, address);
    platform::RetainedMemory found;
    const platform::Status status = device->driver->virtual_memory()->retain(address, found);
    if (status.code == Code::invalid_argument) return make_error<errors::no_memory_mapped_there>(what, address);
    if (!status.ok()) return device->failure(status, what);
    Result<std::shared_ptr<PhysicalState>> memory = taken_in(device, found.bytes, found.memory, true, what);
    if (!memory) return std::move(memory).error();
    if (found.bytes == 0 || found.base == 0) return make_error<errors::driver_tells_no_mapping>(what);
    return MappedAt{std::move(memory).value(), found.base};
}

}  // namespace detail

Result<MemoryGranularity> memory_granularity(const Device& device, const PhysicalOptions& options) {
    DeviceState& state = *device.state();
    if (Result<void> can = may_create(state, options, "asking for the granularity of memory"); !can) {
        return std::move(can).error();
    }
    Result<platform::Granularity> found = detail::ask_granularity(state, options);
    if (!found) return std::move(found).error();
    return MemoryGranularity{found->minimum_bytes, found->recommended_bytes};
}

Result<PhysicalMemory> PhysicalMemory::create(const Device& device, std::size_t bytes, const PhysicalOptions& options) {
    const std::shared_ptr<DeviceState>& state = device.state();
    if (Result<void> can = may_create(*state, options, "creating physical memory"); !can) return std::move(can).error();
    if (bytes == 0) return make_error<errors::physical_memory_of_no_bytes>();
    Result<platform::Granularity> granularity = detail::ask_granularity(*state, options);
    if (!granularity) return std::move(granularity).error();
    const std::optional<std::size_t> rounded = rules::round_up(bytes, granularity->minimum_bytes);
    if (!rounded) return make_error<errors::allocation_larger_than_any_machine>(bytes);
    Result<std::shared_ptr<detail::PhysicalState>> made =
        detail::PhysicalState::create(state, bytes, *rounded, options);
    if (!made) return std::move(made).error();
    return PhysicalMemory(std::move(made).value());
}

std::size_t PhysicalMemory::asked_bytes() const noexcept {
    return state_ ? state_->asked_bytes : 0;
}
std::size_t PhysicalMemory::size_bytes() const noexcept {
    return state_ ? state_->bytes : 0;
}

PhysicalOptions PhysicalMemory::options() const noexcept {
    return state_ ? state_->options : PhysicalOptions{};
}

Result<PhysicalProperties> PhysicalMemory::properties() const {
    if (!state_) return make_error<errors::physical_memory_moved_from>();
    DeviceState& device = *state_->device;
    if (device.bars(rules::PublicCall::ask_memory_properties))
        return device.refusal(rules::PublicCall::ask_memory_properties);
    platform::PhysicalFacts facts;
    const platform::Status status = device.driver->virtual_memory()->properties(state_->handle, facts);
    if (!status.ok()) return device.failure(status, "asking for properties of memory");
    return PhysicalProperties{facts.place, facts.exports, facts.compressible, facts.gpudirect_rdma, facts.usage};
}

AccessAnswer PhysicalMemory::can_export(ExportKinds kind) const noexcept {
    return rules::may_export(state_ ? state_->options.exports : ExportKinds::none, kind);
}

Result<FileDescriptor> PhysicalMemory::export_posix_fd() const {
    if (Result<void> can = may_export_as(state_, ExportKinds::posix_fd); !can) return std::move(can).error();
    DeviceState& device = *state_->device;
    int number = -1;
    const platform::Status status = device.driver->virtual_memory()->export_fd(state_->handle, number);
    if (!status.ok()) return device.failure(status, "exporting physical memory");
    return FileDescriptor(number);
}

Result<FabricHandle> PhysicalMemory::export_fabric() const {
    if (Result<void> can = may_export_as(state_, ExportKinds::fabric); !can) return std::move(can).error();
    DeviceState& device = *state_->device;
    FabricHandle made;
    const platform::Status status = device.driver->virtual_memory()->export_fabric(state_->handle, made.bytes);
    if (!status.ok()) return device.failure(status, "exporting physical memory by a fabric handle");
    return made;
}

Result<PhysicalMemory> PhysicalMemory::import_posix_fd(const Device& device, const FileDescriptor& fd,
                                                       std::size_t bytes) {
    const std::shared_ptr<DeviceState>& state = device.state();
    if (Result<void> can = may_import(*state, ExportKinds::posix_fd, bytes); !can) return std::move(can).error();
    const Result<platform::PhysicalHandle> handle = detail::import_fd(*state, fd, importing);
    if (!handle) return handle.error();
    return as_memory(taken_in(state, bytes, *handle, true, importing));
}

Result<PhysicalMemory> PhysicalMemory::import_fabric(const Device& device, const FabricHandle& handle,
                                                     std::size_t bytes) {
    const std::shared_ptr<DeviceState>& state = device.state();
    if (Result<void> can = may_import(*state, ExportKinds::fabric, bytes); !can) return std::move(can).error();
    platform::PhysicalHandle made = platform::PhysicalHandle::none;
    const platform::Status status = state->driver->virtual_memory()->import_fabric(handle.bytes, made);
    if (!status.ok()) return detail::not_imported(*state, status, importing);
    return as_memory(taken_in(state, bytes, made, false, importing));
}

Result<PhysicalMemory> PhysicalMemory::mapped_at(const Device& device, std::uint64_t address) {
    Result<detail::MappedAt> found = detail::memory_at(device.state(), address, retaining);
    if (!found) return std::move(found).error();
    return PhysicalMemory(std::move(found->memory));
}

std::uint64_t PhysicalMemory::native_handle() const noexcept {
    return state_ ? static_cast<std::uint64_t>(state_->handle) : 0;
}

Result<AddressReservation> AddressReservation::reserve(const Device& device, std::size_t bytes,
                                                       std::size_t alignment_bytes) {
    const std::shared_ptr<DeviceState>& state = device.state();
    constexpr std::string_view what = "reserving addresses";
    if (Result<void> now = detail::may_change_memory(*state, what); !now) return std::move(now).error();
    const rules::MappingAnswer answer = rules::may_reserve(state->capabilities, detail::creation_facts(*state));
    if (!answer) return detail::refusal(answer, what);
    if ((alignment_bytes & (alignment_bytes - 1)) != 0) {
        return make_error<errors::reservation_alignment>(alignment_bytes);
    }
    Result<platform::Granularity> granularity = detail::ask_granularity(*state, {});
    if (!granularity) return std::move(granularity).error();
    Result<std::shared_ptr<detail::ReservationState>> made =
        detail::ReservationState::reserve(state, bytes, alignment_bytes, granularity->minimum_bytes);
    if (!made) return std::move(made).error();
    return AddressReservation(std::move(made).value());
}

std::uint64_t AddressReservation::base() const noexcept {
    return state_ ? state_->base : 0;
}
std::size_t AddressReservation::asked_bytes() const noexcept {
    return state_ ? state_->asked_bytes : 0;
}
std::size_t AddressReservation::size_bytes() const noexcept {
    return state_ ? state_->bytes : 0;
}

std::size_t AddressReservation::mapped_bytes() const noexcept {
    if (!state_) return 0;
    const std::lock_guard lock(state_->mutex);
    std::size_t sum = 0;
    for (const rules::MappedSpan& span : state_->mapped) sum += span.bytes;
    return sum;
}

Result<Mapping> AddressReservation::map(std::size_t offset_bytes, const PhysicalMemory& memory) {
    return map_state(offset_bytes, memory.state());
}

Result<Mapping> AddressReservation::map_state(std::size_t offset_bytes,
                                              const std::shared_ptr<detail::PhysicalState>& memory) {
    if (!state_ || !memory) return make_error<errors::mapping_what_was_moved_from>();
    DeviceState& device = *state_->device;
    if (memory->device->books != device.books) return make_error<errors::mapping_memory_of_another_runtime>();
    if (Result<void> now = detail::may_change_memory(device, "mapping memory"); !now) return std::move(now).error();
    if (const rules::MappingAnswer answer = rules::may_have_addresses(memory->options.usage); !answer) {
        return detail::refusal(answer, "mapping memory");
    }
    Result<std::shared_ptr<detail::MappingState>> made = state_->map(offset_bytes, memory);
    if (!made) return std::move(made).error();
    return Mapping(std::move(made).value());
}

Result<void> AddressReservation::release() {
    if (!state_) return make_error<errors::releasing_reservation_moved_from>();
    if (Result<void> now = detail::may_change_memory(*state_->device, "releasing a reservation"); !now) return now;
    Result<void> freed = state_->free();
    if (freed) state_.reset();
    return freed;
}

std::uint64_t Mapping::address() const noexcept {
    return state_ && state_->live() ? state_->address() : 0;
}
std::size_t Mapping::offset_bytes() const noexcept {
    return state_ ? state_->offset : 0;
}
std::size_t Mapping::size_bytes() const noexcept {
    return state_ ? state_->memory->bytes : 0;
}

Result<void> Mapping::set_access(std::span<const Device* const> devices, RangeAccess access) {
    if (!*this) return make_error<errors::mapping_is_gone>("letting devices in");
    DeviceState& owner = *state_->memory->device;
    if (Result<void> now = detail::may_change_memory(*state_->device, "letting devices into mapped memory"); !now)
        return now;
    detail::DeviceStates let_in;
    for (const Device* device : devices) {
        if (device == nullptr) return make_error<errors::letting_null_device_in>("mapped memory");
        Result<void> fine = state_->memory->team
                                ? detail::may_let_into_team(*device->state(), *state_->memory)
                                : detail::may_let_in(*device->state(), owner, state_->memory->place, access);
        if (!fine) return fine;
        detail::add_once(let_in, device->state());
    }
    return state_->set_access(let_in, access);
}

RangeAccess Mapping::access(const Device& device) const noexcept {
    if (!*this || device.state()->books != state_->device->books) return RangeAccess::none;
    return state_->device->books->mapped.access(state_->address(), device.index());
}

Result<RangeAccess> Mapping::query_access(const Device& device) const {
    if (!*this) return make_error<errors::mapping_is_gone>("asking who is let in");
    DeviceState& owner = *state_->device;
    if (owner.bars(rules::PublicCall::ask_mapping_access)) return owner.refusal(rules::PublicCall::ask_mapping_access);
    if (device.state()->books != owner.books) return make_error<errors::asking_access_of_another_runtime>();
    if (device.is_cpu() && !state_->memory->place.on_host()) return RangeAccess::none;
    const MemoryPlace place = device.is_cpu()
                                  ? state_->memory->place
                                  : MemoryPlace{MemoryPlace::Where::device, device.state()->driver->facts().ordinal};
    RangeAccess found = RangeAccess::none;
    const platform::Status status = owner.driver->virtual_memory()->access(state_->address(), place, found);
    if (!status.ok()) return owner.failure(status, "asking who is let in");
    return found;
}

Result<void> Mapping::unmap() {
    if (!*this) return make_error<errors::mapping_is_gone>("unmapping memory");
    DeviceState& device = *state_->device;
    const rules::Bar bar = device.bar(rules::PublicCall::unmap);
    if (bar == rules::Bar::capture_elsewhere) return make_error<errors::unmapping_in_capture>();
    if (bar != rules::Bar::none) return device.refusal(rules::PublicCall::unmap);
    Result<void> undone = state_->unmap();
    if (undone) state_.reset();
    return undone;
}

}  // namespace v0
}  // namespace isthmus
