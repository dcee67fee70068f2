// SPDX-License-Identifier: Apache-2.0
// Which devices may use mapped memory: judged, then told to the driver.
#include "virtual_memory_state.hpp"

#include "composed.hpp"
#include "mapping_errors.hpp"
#include "multicast_rules.hpp"
#include "multicast_state.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr int compute_major = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR

}  // namespace

Result<void> may_let_in(DeviceState& who, DeviceState& owner, const MemoryPlace& place, RangeAccess access) {
    rules::Grantee grantee;
    grantee.same_runtime = who.books == owner.books;
    grantee.is_cpu = who.synchronous;
    grantee.has_virtual_memory = who.driver->virtual_memory() != nullptr;
    const int ordinal = who.driver->facts().ordinal;
    grantee.reaches = place.on_host() || place.id == ordinal;
    const bool asks = grantee.same_runtime && !who.synchronous && grantee.has_virtual_memory && !grantee.reaches;
    if (asks && who.driver->transfers() != nullptr) {
        const platform::Status status = who.driver->transfers()->can_reach(place.id, grantee.reaches);
        if (!status.ok()) return who.failure(status, "asking whether devices reach each other");
    }
    rules::MappingAnswer answer = rules::may_let_in(grantee, place.on_host(), access);
    if (answer && who.index >= MappedRanges::max_devices) {
        answer = {Code::unsupported, "access to mapped memory is kept for the first 64 devices of a runtime",
                  "name another device"};
    }
    if (answer) return {};
    std::string what = composed("letting {} into mapped memory", named(who));
    if (grantee.same_runtime && !place.on_host() && &who != &owner) what += composed(" of {}", named(owner));
    return refusal(answer, what);
}

Result<void> may_let_into_team(const DeviceState& who, const PhysicalState& object) {
    const DeviceStates joined = object.team->joined_now();
    const bool member = std::any_of(joined.begin(), joined.end(), [&](const auto& each) { return each.get() == &who; });
    const rules::MappingAnswer answer =
        rules::may_multimem(member, who.driver->facts().attribute(compute_major).value_or(0));
    if (answer) return {};
    return refusal(answer, composed("letting {} into a mapped multicast object", named(who)));
}

Result<void> MappingState::set_access(const DeviceStates& devices, RangeAccess access) {
    if (devices.empty()) return {};
    for (;;) {
        const DeviceStates known = users();
        DeviceStates entered = known;
        for (const std::shared_ptr<DeviceState>& who : devices) add_once(entered, who);
        Result<std::vector<CallInFlight>> calls = enter_all(entered, "letting devices into mapped memory");
        if (!calls) return std::move(calls).error();
        const std::lock_guard lock(reservation->mutex);
        if (users_now() != known) continue;  // another thread granted access meanwhile
        Result<void> open = open_to(devices, access, memory->bytes);
        if (open) now_open_to(devices, access);
        return open;
    }
}

Result<void> MappingState::set_access_entered(const std::vector<std::shared_ptr<MappingState>>& neighbours,
                                              const DeviceStates& devices, RangeAccess access) {
    const std::lock_guard lock(neighbours.front()->reservation->mutex);
    std::size_t bytes = 0;
    for (const std::shared_ptr<MappingState>& each : neighbours) {
        bytes += each->memory->bytes;
        for (const std::shared_ptr<DeviceState>& who : devices) add_once(each->let_in_, who);  // also if the call fails
    }
    Result<void> open = neighbours.front()->open_to(devices, access, bytes);
    if (!open) return open;
    for (const std::shared_ptr<MappingState>& each : neighbours) each->now_open_to(devices, access);
    return open;
}

Result<void> MappingState::open_to(const DeviceStates& devices, RangeAccess access, std::size_t bytes) {
    if (!live()) return make_error<errors::letting_devices_into_unmapped_memory>();
    std::vector<platform::AccessGrant> grants;
    for (const std::shared_ptr<DeviceState>& who : devices) {
        // The host gets access by the place of its memory.
        const MemoryPlace place =
            who->synchronous ? memory->place : MemoryPlace{MemoryPlace::Where::device, who->driver->facts().ordinal};
        grants.push_back({place, access});
        add_once(let_in_, who);
    }
    const platform::Status status =
        device->driver->virtual_memory()->set_access(address(), bytes, grants.data(), grants.size());
    if (!status.ok()) return device->failure(status, "letting devices into mapped memory");
    return {};
}

void MappingState::now_open_to(const DeviceStates& devices, RangeAccess access) {
    for (const std::shared_ptr<DeviceState>& who : devices) device->books->mapped.set(address(), who->index, access);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
