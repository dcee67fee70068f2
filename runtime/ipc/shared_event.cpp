// SPDX-License-Identifier: Apache-2.0
// Exporting and importing events: the driver's handle and its device. Either process may have recorded an event last.
#include <isthmus/ipc/shared_event.hpp>

#include <isthmus/device.hpp>

#include "device_state.hpp"
#include "event_state.hpp"
#include "ipc_errors.hpp"
#include "refused_handle.hpp"
#include "shared_event_bytes.hpp"

#include <algorithm>
#include <mutex>

namespace isthmus {
inline namespace v0 {

struct SharedEventAccess {
    static SharedEventDescriptor make(const SharedEventDescriptor::Bytes& bytes, const SharedEventFacts& facts) {
        return {bytes, facts};
    }
};

Result<SharedEventDescriptor> SharedEventDescriptor::received(std::span<const std::byte> bytes) {
    const Result<rules::DecodedEvent> decoded = rules::decode_shared_event(bytes);
    if (!decoded) return decoded.error();
    Bytes own{};
    std::copy(bytes.begin(), bytes.end(), own.begin());
    return SharedEventAccess::make(own, decoded->facts);
}

namespace {

constexpr const char* exporting = "exporting an event";
constexpr const char* importing = "importing an event";

}  // namespace

Result<SharedEventDescriptor> export_event(const Event& event) {
    detail::EventState& state = *event.state();
    detail::DeviceState& device = *state.device;
    if (device.bars(rules::PublicCall::export_event)) return device.refusal(rules::PublicCall::export_event);
    if (state.kind != platform::EventKind::interprocess) {
        return make_error<errors::event_not_for_other_processes>();
    }
    rules::EventHandleBytes handle{};
    {
        const std::lock_guard lock(state.mutex);
        if (state.imported) {
            return make_error<errors::export_of_imported_event>();
        }
        const platform::Status status = device.execution.share_event(state.taken->handle, handle);
        if (!status.ok()) return device.failure(status, exporting);
        state.share();
    }
    const SharedEventFacts facts{device.driver->facts().uuid};
    return SharedEventAccess::make(rules::encode_shared_event(facts, handle), facts);
}

Result<Event> import_event(const Device& device, const SharedEventDescriptor& descriptor) {
    const std::shared_ptr<detail::DeviceState>& owner = device.state();
    if (owner->bars(rules::PublicCall::import_event)) return owner->refusal(rules::PublicCall::import_event);
    const Capability& capability = owner->capabilities.feature(Feature::ipc_events);
    if (!capability) {
        return make_error<errors::no_imported_events>(capability.reason);
    }
    const SharedEventFacts& facts = descriptor.facts();
    if (!(facts.device == owner->driver->facts().uuid)) {
        return make_error<errors::imported_event_of_another_device>(facts.device.text(),
                                                                    owner->driver->facts().uuid.text());
    }
    const Result<rules::DecodedEvent> decoded = rules::decode_shared_event(descriptor.bytes());
    if (!decoded) return decoded.error();
    platform::EventHandle opened = platform::EventHandle::none;
    const platform::Status status = owner->execution.open_event(decoded->handle, opened);
    if (!status.ok()) {
        return detail::refused_handle<errors::imported_event_of_this_process, errors::imported_event_unknown>(
            owner->failure(status, importing));
    }
    std::shared_ptr<detail::EventState> state = detail::EventState::make(owner, owner->events.adopt(opened));
    state->imported = true;
    state->share();
    return Event(std::move(state));
}

}  // namespace v0
}  // namespace isthmus
