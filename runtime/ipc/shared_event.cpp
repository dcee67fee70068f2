// Exporting and importing events: the driver's handle, whose it is, and an event whose last record may be anybody's.
#include <isthmus/shared_event.hpp>

#include <isthmus/device.hpp>

#include "composed.hpp"
#include "device_state.hpp"
#include "event_state.hpp"
#include "refused_handle.hpp"
#include "shared_event_bytes.hpp"

#include <algorithm>
#include <mutex>
#include <string>

namespace isthmus::inline v0 {

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
constexpr const char* by_message =
    "wait for an ordinary event here, then tell the other process by a message or a word in shared memory";

constexpr detail::HandleWords handle_words{
    "importing an event was refused: it is one of this very process",
    "importing an event was refused: the handle is none of this driver's, or its event is gone",
    "use the event itself, or a copy of it",
    "send what export_event() gave to a process on the same driver, and keep the exporter's event"};

}  // namespace

Result<SharedEventDescriptor> export_event(const Event& event) {
    detail::EventState& state = *event.state();
    detail::DeviceState& device = *state.device;
    if (device.bars(rules::PublicCall::export_event)) return device.refusal(rules::PublicCall::export_event);
    if (state.kind != platform::EventKind::interprocess) {
        return Error(Code::invalid_argument,
                     "exporting an event was refused: it was not made for other processes, which is fixed when it is",
                     "make it with Device::create_event({.interprocess = true})");
    }
    rules::EventHandleBytes handle{};
    {
        const std::lock_guard lock(state.mutex);
        if (state.imported) {
            return Error(Code::invalid_argument,
                         "exporting an event was refused: it is another process's, which alone has its handle",
                         "let its exporter send the descriptor to the third process, too");
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
        return Error(Code::unsupported, composed("{} was refused: {}", importing, capability.reason), by_message);
    }
    const SharedEventFacts& facts = descriptor.facts();
    if (!(facts.device == owner->driver->facts().uuid)) {
        return Error(Code::wrong_device,
                     composed("importing an event was refused: it is one of {}, and this device is {}",
                              facts.device.text(), owner->driver->facts().uuid.text()),
                     "import it with Runtime::device(descriptor.facts().device), whose streams may wait for it");
    }
    const Result<rules::DecodedEvent> decoded = rules::decode_shared_event(descriptor.bytes());
    if (!decoded) return decoded.error();
    platform::EventHandle opened = platform::EventHandle::none;
    const platform::Status status = owner->execution.open_event(decoded->handle, opened);
    if (!status.ok()) return detail::refused_handle(owner->failure(status, importing), handle_words);
    auto state =
        std::make_shared<detail::EventState>(owner, platform::EventKind::interprocess, owner->events.adopt(opened));
    state->imported = true;
    state->share();
    return Event(std::move(state));
}

}  // namespace isthmus::inline v0
