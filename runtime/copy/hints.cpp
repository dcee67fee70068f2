// SPDX-License-Identifier: Apache-2.0
// Stream::prefetch and Device::advise: carry out, count and explain what the hint rules decide.
#include "hints.hpp"

#include "buffer_state.hpp"
#include "copy_checks.hpp"
#include "copy_errors.hpp"
#include "device_state.hpp"
#include "hint_rules.hpp"
#include "operation.hpp"
#include "stream_state.hpp"

#include <isthmus/device.hpp>
#include <isthmus/stream.hpp>

#include <algorithm>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// true: the driver does not take the hint, which is no error. Other codes are errors.
bool hint_not_supported(Code code) {
    return code == Code::unsupported || code == Code::wrong_device || code == Code::invalid_argument ||
           code == Code::not_permitted;
}

std::uint64_t hinted_address(const BufferState& buffer) {
    return buffer.memory->host != nullptr ? reinterpret_cast<std::uintptr_t>(buffer.memory->host)
                                          : buffer.memory->device_address;
}

Result<void> check_node(const DeviceState& device, const HintPlace& place) {
    if (!place.host || place.node == -1) return {};
    const auto& nodes = device.config->machine.numa_nodes;
    const auto is_it = [&](const NumaNode& node) { return node.id == place.node; };
    if (std::any_of(nodes.begin(), nodes.end(), is_it)) return {};
    return make_error<errors::hinted_numa_node_missing>(place.node);
}

// Fences the stream to which the buffer is attached, which returns it to the host. Waits for no work.
Result<void> detach(BufferState& buffer) {
    std::shared_ptr<StreamState> holder;
    {
        const std::lock_guard lock(buffer.views);
        holder = buffer.uses.held(buffer.sides.attached_to());
    }
    if (!holder) return {};
    Wait wait;
    const Result<std::unique_lock<std::mutex>> lock = holder->lock_within(wait, "giving managed memory back");
    if (!lock) return lock.error();
    return holder->fence();
}

constexpr HintReport driver_took_none{HintOutcome::unsupported, "the driver does not take this hint"};

// Claims the buffer like a use: memory open for writing on the host is not moved, and views wait for the prefetch.
Result<HintReport> move(StreamState& stream, BufferState& buffer, const rules::HintPlan& plan, const HintPlace& place) {
    DeviceState& device = *stream.device;
    platform::Transfers* const transfers = device.driver->transfers();
    if (plan.action == rules::HintAction::tell && transfers == nullptr) return driver_took_none;
    const platform::Place where{place.host ? -1 : device.driver->facts().ordinal, place.host ? place.node : -1};
    bool told = true;
    Operation operation(stream, "a prefetch", nullptr);
    operation.uses(buffer, plan.action == rules::HintAction::attach ? ArgumentUse::read_write : ArgumentUse::read, 0);
    operation.only({.width = 0});  // a hint changes no byte and needs no order
    Result<std::uint64_t> issued = operation.issue([&]() -> platform::Status {
        if (plan.action != rules::HintAction::tell) return {};
        const platform::Status status =
            transfers->prefetch(hinted_address(buffer), buffer.memory->bytes, where, stream.handle);
        told = !hint_not_supported(status.code);
        return told ? status : platform::Status{};
    });
    if (issued) return told ? plan.report : driver_took_none;
    if (issued.code() != Code::in_use) return std::move(issued).error();
    return HintReport{HintOutcome::unsupported, "the host has the buffer open, or another stream has it attached"};
}

Result<HintReport> prefetch(StreamState& stream, BufferState& buffer, const HintPlace& place) {
    const rules::HintQuestion question{buffer.memory->kind, buffer.memory->path, buffer.device == stream.device,
                                       place.host};
    const rules::HintPlan plan = rules::plan_prefetch(stream.device->capabilities, question);
    if (plan.action == rules::HintAction::none) return plan.report;
    if (buffer.memory->bytes == 0) return HintReport{HintOutcome::not_needed, "there is nothing in the buffer"};
    if (stream.device->books->captures.here() || stream.recording_id() != 0) {
        return HintReport{HintOutcome::unsupported, "a capture is open, and takes no hints"};
    }
    if (plan.action != rules::HintAction::detach) return move(stream, buffer, plan, place);
    if (Result<void> detached = detach(buffer); !detached) return std::move(detached).error();
    return plan.report;
}

platform::Advice advice_of(Advice advice) {
    switch (advice) {
        case Advice::read_mostly: return platform::Advice::read_mostly;
        case Advice::not_read_mostly: return platform::Advice::not_read_mostly;
        case Advice::prefer_device:
        case Advice::prefer_host: return platform::Advice::prefer;
        case Advice::no_preference: return platform::Advice::no_preference;
        case Advice::accessed_by_device: return platform::Advice::accessed_by;
        case Advice::not_accessed_by_device: return platform::Advice::not_accessed_by;
    }
    return platform::Advice::no_preference;
}

Result<HintReport> advise(DeviceState& device, BufferState& buffer, Advice advice) {
    const rules::HintPlan plan = rules::plan_advice(device.capabilities, buffer.memory->kind, buffer.staged());
    if (plan.action == rules::HintAction::none) return plan.report;
    if (buffer.memory->bytes == 0) return HintReport{HintOutcome::not_needed, "there is nothing in the buffer"};
    platform::Transfers* const transfers = device.driver->transfers();
    if (transfers == nullptr) return driver_took_none;
    const platform::Place where{advice == Advice::prefer_host ? -1 : device.driver->facts().ordinal, -1};
    const platform::Status status =
        transfers->advise(hinted_address(buffer), buffer.memory->bytes, advice_of(advice), where);
    if (status.ok()) return plan.report;
    if (hint_not_supported(status.code)) return driver_took_none;
    return device.failure(status, "giving advice about a buffer");
}

Result<HintReport> counted(DeviceState& device, Result<HintReport> report) {
    if (report) (void)device.books->hints.count(*report);
    return report;
}

}  // namespace
}  // namespace detail

Result<HintReport> Stream::prefetch(const BufferBase& buffer, HintPlace place) {
    detail::StreamState& stream = *state_;
    if (Result<void> fine = detail::check_buffer(stream, &buffer.state(), "a prefetch", "the buffer"); !fine) {
        return std::move(fine).error();
    }
    if (stream.device->bars(rules::PublicCall::prefetch)) return stream.device->refusal(rules::PublicCall::prefetch);
    if (Result<void> node = detail::check_node(*stream.device, place); !node) return std::move(node).error();
    return detail::counted(*stream.device, detail::prefetch(stream, *buffer.state(), place));
}

Result<HintReport> Device::advise(const BufferBase& buffer, Advice advice) {
    if (Result<void> fine = detail::check_buffer(*stream_.state(), &buffer.state(), "advice", "the buffer"); !fine) {
        return std::move(fine).error();
    }
    if (state_->bars(rules::PublicCall::advise)) return state_->refusal(rules::PublicCall::advise);
    return detail::counted(*state_, detail::advise(*state_, *buffer.state(), advice));
}

HintCounts Device::hint_counts() const noexcept {
    return state_->books->hints.counts();
}

}  // namespace v0
}  // namespace isthmus
