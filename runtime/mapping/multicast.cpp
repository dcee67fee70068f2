// SPDX-License-Identifier: Apache-2.0
// MulticastGroup and MulticastObject: validation, in the order that the driver requires.
#include <isthmus/mapping/multicast.hpp>

#include <isthmus/device.hpp>

#include "composed.hpp"
#include "mapping_errors.hpp"
#include "memory_errors.hpp"
#include "multicast_rules.hpp"
#include "multicast_state.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace {

using detail::DeviceState;
using detail::PhysicalState;
using detail::Team;

constexpr int compute_major = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr std::string_view making = "making a multicast group";

rules::MappingAnswer may_join(const DeviceState& device) {
    return rules::may_join(device.capabilities, device.driver->multicast() != nullptr);
}

AccessAnswer as_answer(const rules::MappingAnswer& answer, std::string_view yes) {
    if (answer) return {Verdict::yes, yes, {}};
    return {Verdict::no, answer.reason, answer.remedy};
}

rules::TeamFacts facts_of(const Team& team) {
    return {team.size, team.joined.size(), team.shared};
}

std::string so_many(std::size_t number, std::size_t of) {
    return composed("{} of {} devices", number, of);
}

std::size_t joining_here(const DeviceState& device) {
    return device.books->launches.devices.count([](const DeviceState& each) { return bool(may_join(each)); });
}

// All checks that need no driver call.
Result<void> may_make(const DeviceState& device, const rules::TeamWish& wish) {
    if (Result<void> now = detail::may_change_memory(device, making); !now) return now;
    rules::MappingAnswer answer = may_join(device);
    if (answer) answer = rules::may_make_team(device.capabilities, wish, joining_here(device));
    if (answer) return {};
    return detail::refusal(answer,
                           composed("a multicast group for {} devices, with {},", wish.devices, detail::named(device)));
}

Result<platform::Granularity> ask_granularity(DeviceState& device, const platform::TeamRequest& request) {
    platform::Granularity found;
    const platform::Status status = device.driver->multicast()->granularity(request, found);
    if (!status.ok()) return device.failure(status, "asking for the granularity of a multicast object");
    if (found.minimum_bytes != 0) return found;
    return make_error<errors::driver_tells_no_multicast_granularity>();
}

// The granularity, and the size rounded up to it.
struct Measure {
    platform::TeamRequest request;
    platform::Granularity granularity;
};
Result<Measure> measure(DeviceState& device, const rules::TeamWish& wish) {
    if (Result<void> can = may_make(device, wish); !can) return std::move(can).error();
    Measure found{{wish.devices, wish.bytes, wish.exports}, {}};
    Result<platform::Granularity> granularity = ask_granularity(device, found.request);
    if (!granularity) return std::move(granularity).error();
    found.granularity = *granularity;
    const std::optional<std::size_t> rounded = rules::round_up(wish.bytes, granularity->minimum_bytes);
    if (!rounded || *rounded > detail::max_physical_bytes) {
        return make_error<errors::allocation_larger_than_any_machine>(wish.bytes);
    }
    found.request.bytes = *rounded;
    return found;
}

// Takes over the handle; the state releases it.
std::shared_ptr<PhysicalState> team_of(const std::shared_ptr<DeviceState>& device, const Measure& measured,
                                       std::size_t asked, ExportKinds exports, bool shared,
                                       platform::PhysicalHandle handle) {
    PhysicalOptions options;
    options.exports = exports;
    std::shared_ptr<PhysicalState> made = PhysicalState::take_over(device, options, measured.request.bytes, handle);
    made->team = std::make_shared<Team>(measured.request.devices, asked, measured.granularity.minimum_bytes, shared);
    return made;
}

constexpr std::string_view binding = "binding memory to a multicast object";

// By its address, if that is not 0; `wanted.memory` is what lies there.
Result<void> bind_to(PhysicalState& object, Team::Bound wanted, std::size_t memory_offset, std::uint64_t address) {
    if (Result<void> now = detail::may_change_memory(*object.device, binding); !now) return now;
    // The driver may wait for the devices.
    Result<std::vector<detail::CallInFlight>> calls = detail::enter_all(object.team->joined_now(), binding);
    if (!calls) return std::move(calls).error();
    Team& team = *object.team;
    const std::lock_guard lock(team.mutex);
    const PhysicalState& memory = *wanted.memory;
    DeviceState& device = *memory.device;
    rules::BindWish wish;
    wish.granularity = team.granularity;
    wish.team_bytes = object.bytes;
    wish.offset = wanted.offset;
    wish.memory_bytes = memory.bytes;
    wish.memory_offset = memory_offset;
    wish.bytes = wanted.bytes;
    wish.address = address;
    wish.same_runtime = device.books == object.device->books;
    wish.on_host = memory.place.on_host();
    wish.joined = std::find(team.joined.begin(), team.joined.end(), memory.device) != team.joined.end();
    wish.team_shared = team.shared;
    wish.memory_shared = memory.options.exports != ExportKinds::none;
    std::vector<rules::MappedSpan> taken;
    for (const Team::Bound& each : team.bound) {
        if (each.memory->device == memory.device) taken.push_back({each.offset, each.bytes});
    }
    if (const rules::MappingAnswer answer = rules::may_bind(wish, taken); !answer) {
        return detail::refusal(answer, composed("binding memory of {} to a multicast object", detail::named(device)));
    }
    team.bound.reserve(team.bound.size() + 1);
    platform::Multicast& driver = *device.driver->multicast();
    const platform::Status status =
        address != 0 ? driver.bind_address(object.handle, wanted.offset, address, wanted.bytes)
                     : driver.bind(object.handle, wanted.offset, memory.handle, memory_offset, wanted.bytes);
    if (!status.ok()) return device.failure(status, binding);
    team.bound.push_back(std::move(wanted));
    return {};
}

}  // namespace

AccessAnswer can_multicast(const Device& device) {
    return as_answer(may_join(*device.state()), "the device takes part in multicast objects (attribute 132 is 1)");
}

AccessAnswer can_multimem(const Device& device) {
    rules::MappingAnswer answer = may_join(*device.state());
    if (answer)
        answer = rules::may_multimem(true, device.state()->driver->facts().attribute(compute_major).value_or(0));
    return as_answer(answer, "kernels of this device may use multimem instructions (compute capability 9.0 or more)");
}

Result<MemoryGranularity> multicast_granularity(const Device& device, std::size_t devices,
                                                const MulticastOptions& options) {
    DeviceState& state = *device.state();
    // The size does not matter here.
    if (Result<void> can = may_make(state, {devices, 1, options.exports}); !can) return std::move(can).error();
    const Result<platform::Granularity> found = ask_granularity(state, {devices, 1, options.exports});
    if (!found) return found.error();
    return MemoryGranularity{found->minimum_bytes, found->recommended_bytes};
}

Result<MulticastGroup> MulticastGroup::create(const Device& device, std::size_t devices, std::size_t bytes,
                                              const MulticastOptions& options) {
    const std::shared_ptr<DeviceState>& state = device.state();
    const Result<Measure> measured = measure(*state, {devices, bytes, options.exports});
    if (!measured) return measured.error();
    platform::PhysicalHandle handle = platform::PhysicalHandle::none;
    const platform::Status status = state->driver->multicast()->create(measured->request, handle);
    if (!status.ok()) return state->failure(status, making);
    const bool shared = options.exports != ExportKinds::none;
    return MulticastGroup(team_of(state, *measured, bytes, options.exports, shared, handle));
}

Result<MulticastGroup> MulticastGroup::import_posix_fd(const Device& device, const FileDescriptor& fd,
                                                       std::size_t devices, std::size_t bytes) {
    const std::shared_ptr<DeviceState>& state = device.state();
    const Result<Measure> measured = measure(*state, {devices, bytes, ExportKinds::posix_fd});
    if (!measured) return measured.error();
    const Result<platform::PhysicalHandle> handle = detail::import_fd(*state, fd, "importing a multicast group");
    if (!handle) return handle.error();
    return MulticastGroup(team_of(state, *measured, bytes, ExportKinds::none, true, *handle));
}

std::size_t MulticastGroup::asked_bytes() const noexcept {
    return state_ ? state_->team->asked_bytes : 0;
}
std::size_t MulticastGroup::size_bytes() const noexcept {
    return state_ ? state_->bytes : 0;
}
std::size_t MulticastGroup::devices() const noexcept {
    return state_ ? state_->team->size : 0;
}
std::size_t MulticastGroup::added() const noexcept {
    return state_ ? state_->team->joined_now().size() : 0;
}

Result<void> MulticastGroup::add(const Device& device) {
    constexpr std::string_view what = "adding a device to a multicast group";
    if (!state_) return make_error<errors::multicast_object_moved_from>(what);
    DeviceState& joining = *device.state();
    if (joining.books != state_->device->books) return make_error<errors::adding_device_of_another_runtime>();
    if (Result<void> now = detail::may_change_memory(joining, what); !now) return now;
    Team& team = *state_->team;
    const std::lock_guard lock(team.mutex);
    rules::MappingAnswer answer = may_join(joining);
    if (answer) {
        const bool before = std::find(team.joined.begin(), team.joined.end(), device.state()) != team.joined.end();
        answer = rules::may_add(facts_of(team), before);
    }
    if (!answer) return detail::refusal(answer, composed("adding {} to a multicast group", detail::named(joining)));
    const platform::Status status = joining.driver->multicast()->add_device(state_->handle);
    if (!status.ok()) return joining.failure(status, what);
    team.joined.push_back(device.state());
    return {};
}

Result<FileDescriptor> MulticastGroup::export_posix_fd() const {
    if (!state_) return make_error<errors::multicast_object_moved_from>("exporting a multicast group");
    return PhysicalMemory(state_).export_posix_fd();
}

Result<MulticastObject> MulticastGroup::complete(std::size_t added_elsewhere) && {
    if (!state_) return make_error<errors::multicast_object_moved_from>("completing a multicast group");
    const Team& team = *state_->team;
    std::size_t added = 0;
    rules::MappingAnswer answer;
    {
        const std::lock_guard lock(team.mutex);
        added = team.joined.size();
        answer = rules::may_complete(facts_of(team), added_elsewhere);
    }
    if (!answer) {
        return detail::refusal(answer,
                               composed("completing a multicast group, to which {} were added here and {} elsewhere,",
                                        so_many(added, team.size), added_elsewhere));
    }
    return MulticastObject(std::move(state_));
}

std::size_t MulticastObject::asked_bytes() const noexcept {
    return state_ ? state_->team->asked_bytes : 0;
}
std::size_t MulticastObject::size_bytes() const noexcept {
    return state_ ? state_->bytes : 0;
}
std::size_t MulticastObject::devices() const noexcept {
    return state_ ? state_->team->size : 0;
}

std::size_t MulticastObject::bound_bytes(const Device& device) const noexcept {
    if (!state_) return 0;
    const std::lock_guard lock(state_->team->mutex);
    std::size_t sum = 0;
    for (const Team::Bound& each : state_->team->bound) {
        if (each.memory->device == device.state()) sum += each.bytes;
    }
    return sum;
}

Result<void> MulticastObject::bind(std::size_t offset, const PhysicalMemory& memory, std::size_t memory_offset,
                                   std::size_t bytes) {
    if (!state_) return make_error<errors::multicast_object_moved_from>(binding);
    if (!memory.state()) return make_error<errors::physical_memory_moved_from>();
    return bind_to(*state_, {memory.state(), offset, bytes}, memory_offset, 0);
}

Result<void> MulticastObject::bind_address(std::size_t offset, const Device& device, std::uint64_t address,
                                           std::size_t bytes) {
    if (!state_) return make_error<errors::multicast_object_moved_from>(binding);
    if (device.state()->books != state_->device->books) {
        return make_error<errors::memory_of_another_device>(binding, detail::named(*state_->device));
    }
    Result<detail::MappedAt> found = detail::memory_at(device.state(), address, binding);
    if (!found) return std::move(found).error();
    const std::size_t memory_offset = address - found->base;
    return bind_to(*state_, {std::move(found->memory), offset, bytes}, memory_offset, address);
}

Result<void> MulticastObject::unbind(const Device& device, std::size_t offset) {
    constexpr std::string_view what = "unbinding memory of a multicast object";
    if (!state_) return make_error<errors::multicast_object_moved_from>(what);
    const rules::Bar bar = state_->device->bar(rules::PublicCall::unbind);
    if (bar == rules::Bar::capture || bar == rules::Bar::capture_elsewhere) {
        return make_error<errors::unbinding_in_capture>();
    }
    if (bar != rules::Bar::none) return state_->device->refusal(rules::PublicCall::unbind);
    Result<std::vector<detail::CallInFlight>> calls = detail::enter_all(state_->team->joined_now(), what);
    if (!calls) return std::move(calls).error();
    Team& team = *state_->team;
    const std::lock_guard lock(team.mutex);
    const auto found = std::find_if(team.bound.begin(), team.bound.end(), [&](const Team::Bound& each) {
        return each.memory->device == device.state() && each.offset == offset;
    });
    if (found == team.bound.end()) {
        return make_error<errors::unbinding_where_nothing_is_bound>(detail::named(*device.state()), offset);
    }
    DeviceState& owner = *device.state();
    const platform::Status status = owner.driver->multicast()->unbind(state_->handle, offset, found->bytes);
    if (!status.ok()) return owner.failure(status, what);
    team.bound.erase(found);
    return {};
}

Result<Mapping> AddressReservation::map(std::size_t offset_bytes, const MulticastObject& object) {
    if (object.state() == nullptr) return make_error<errors::multicast_object_moved_from>("mapping a multicast object");
    if (state_) {
        const rules::MappingAnswer answer =
            rules::may_map_team(state_->base + offset_bytes, object.state()->team->granularity);
        if (!answer) return detail::refusal(answer, "mapping a multicast object");
    }
    return map_state(offset_bytes, object.state());
}

}  // namespace v0
}  // namespace isthmus
