// SPDX-License-Identifier: Apache-2.0
// Prefetches, discards and advice: carry out, count and explain what the hint rules decide.
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
#include <optional>
#include <span>
#include <utility>
#include <vector>

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
        if (const BufferSides* const sides = buffer.sides()) holder = buffer.held(sides->attached_to());
    }
    if (!holder) return {};
    Wait wait;
    const Result<StreamLock> lock = holder->lock_within(wait, "giving managed memory back");
    if (!lock) return lock.error();
    return holder->fence();
}

constexpr HintReport driver_took_none{HintOutcome::unsupported, "the driver does not take this hint"};

platform::Place platform_place(const DeviceState& device, const HintPlace& place) {
    return {place.host ? -1 : device.driver->facts().ordinal, place.host ? place.node : -1};
}

constexpr HintReport open_elsewhere{HintOutcome::unsupported,
                                    "the host has the buffer open, or another stream has it attached"};

// The position at which the stream was given the hint.
void note_position(ObservedSpan& span, std::uint64_t position) noexcept {
    if (ObservedFacts* const facts = span.facts()) facts->position = position;
}

// Claims the buffer like a use: memory open for writing on the host is not moved, and views wait for the prefetch.
Result<HintReport> move(StreamState& stream, const std::shared_ptr<BufferState>& held, const rules::HintPlan& plan,
                        const HintPlace& place, ObservedSpan& span) {
    BufferState& buffer = *held;
    DeviceState& device = *stream.device;
    platform::Transfers* const transfers = device.driver->transfers();
    if (plan.action == rules::HintAction::tell && transfers == nullptr) return driver_took_none;
    bool told = true;
    Operation operation(stream, "a prefetch", nullptr);
    operation.uses(held, plan.action == rules::HintAction::attach ? ArgumentUse::read_write : ArgumentUse::read, 0);
    operation.only({.width = 0});  // a hint changes no byte and needs no order
    Result<std::uint64_t> issued = operation.issue([&]() -> platform::Status {
        if (plan.action != rules::HintAction::tell) return {};
        const platform::Status status = transfers->prefetch(hinted_address(buffer), buffer.memory->bytes,
                                                            platform_place(device, place), stream.handle);
        told = !hint_not_supported(status.code);
        return told ? status : platform::Status{};
    });
    if (issued) {
        note_position(span, *issued);
        return told ? plan.report : driver_took_none;
    }
    if (issued.code() != Code::in_use) return std::move(issued).error();
    return open_elsewhere;
}

// Why nothing is done; nullopt: the plan is carried out.
std::optional<HintReport> not_done(StreamState& stream, const BufferState& buffer, const rules::HintPlan& plan) {
    if (plan.action == rules::HintAction::none) return plan.report;
    if (buffer.memory->bytes == 0) return HintReport{HintOutcome::not_needed, "there is nothing in the buffer"};
    if (!stream.device->books->captures.here() && stream.recording_id() == 0) return std::nullopt;
    return HintReport{HintOutcome::unsupported, "a capture is open, and takes no hints"};
}

rules::HintPlan plan_for(const StreamState& stream, const BufferState& buffer, const HintPlace& place) {
    return rules::plan_prefetch(stream.device->capabilities,
                                {buffer.memory->kind, buffer.memory->path, buffer.device == stream.device, place.host});
}

Result<HintReport> prefetch(StreamState& stream, const std::shared_ptr<BufferState>& held, const HintPlace& place,
                            ObservedSpan& span) {
    BufferState& buffer = *held;
    const rules::HintPlan plan = plan_for(stream, buffer, place);
    if (const std::optional<HintReport> report = not_done(stream, buffer, plan)) return *report;
    if (plan.action != rules::HintAction::detach) return move(stream, held, plan, place, span);
    if (Result<void> detached = detach(buffer); !detached) return std::move(detached).error();
    return plan.report;
}

// Whether other buffers may lie on its pages.
bool shares_pages(const BufferState& buffer) noexcept {
    const OutOfLine::Parts parts = buffer.views.out_of_line.parts();  // one look: a release() may come in between
    if (!HeldBlocks::all_own(parts)) return false;
    const auto shares = [](const Piece& piece) {
        return piece.slab() != nullptr || (piece.host_part() != nullptr && piece.host_part()->slabs != nullptr);
    };
    return shares(*parts.piece) || (parts.second != nullptr && shares(*parts.second->piece));
}

using Buffers = std::span<const BufferBase* const>;

// What a batch asks for: a prefetch to `place`, or a discard, with a prefetch behind it if there is a place.
struct BatchHint {
    bool discards = false;
    std::optional<HintPlace> place;
    const char* name() const noexcept { return discards ? "a discard" : "a prefetch"; }
};

// Hints that the driver takes: one call for all buffers, and where it has none, one for each prefetch. nullopt: one of
// the buffers is in use.
Result<std::optional<HintReport>> tell(StreamState& stream,
                                       std::span<const std::shared_ptr<BufferState>* const> buffers,
                                       const BatchHint& hint, const rules::HintPlan& plan, ObservedSpan& span) {
    DeviceState& device = *stream.device;
    platform::Transfers* const transfers = device.driver->transfers();
    if (transfers == nullptr) return std::optional(driver_took_none);
    const platform::Place place = platform_place(device, hint.place.value_or(HintPlace{}));
    std::vector<platform::HintedRange> ranges;
    Operation operation(stream, hint.name(), nullptr);
    for (const std::shared_ptr<BufferState>* const held : buffers) {
        BufferState* const buffer = held->get();
        ranges.push_back({hinted_address(*buffer), buffer->memory->bytes, place});
        operation.uses(*held, hint.discards ? ArgumentUse::write : ArgumentUse::read, 0);
        if (!hint.discards) {
            operation.only({.width = 0});
            continue;
        }
        const std::lock_guard lock(buffer->views);
        buffer->views.moved_to_device({});  // what is discarded is not brought to the device before
    }
    bool told = true;
    const Result<std::uint64_t> issued = operation.issue([&]() -> platform::Status {
        platform::Status status =
            hint.discards
                ? transfers->discard_batch(ranges.data(), ranges.size(), hint.place.has_value(), stream.handle)
                : transfers->prefetch_batch(ranges.data(), ranges.size(), stream.handle);
        if (!hint.discards && status.code == Code::unsupported) {
            status = {};
            for (const platform::HintedRange& range : ranges) {
                if (status.ok()) status = transfers->prefetch(range.address, range.bytes, range.place, stream.handle);
            }
        }
        if (!hint_not_supported(status.code)) return status;
        told = false;
        return {};
    });
    if (issued) {
        note_position(span, *issued);
        return std::optional(told ? plan.report : driver_took_none);
    }
    if (issued.code() == Code::in_use) return std::optional<HintReport>();
    return issued.error();
}

// The reports are in the order of the buffers.
Result<std::vector<HintReport>> batch(StreamState& stream, Buffers buffers, const BatchHint& hint, ObservedSpan& span) {
    std::vector<HintReport> reports(buffers.size());
    std::vector<std::size_t> told;
    std::vector<const std::shared_ptr<BufferState>*> together;
    rules::HintPlan common;
    for (std::size_t at = 0; at < buffers.size(); ++at) {
        BufferState& buffer = *buffers[at]->state();
        const rules::HintPlan plan = hint.discards
                                         ? rules::plan_discard(stream.device->capabilities, buffer.memory->kind,
                                                               buffer.staged(), shares_pages(buffer))
                                         : plan_for(stream, buffer, *hint.place);
        if (const std::optional<HintReport> report = not_done(stream, buffer, plan)) {
            reports[at] = *report;
        } else if (plan.action == rules::HintAction::tell) {
            common = plan;
            told.push_back(at);
            together.push_back(&buffers[at]->state());
        } else {
            Result<HintReport> alone = prefetch(stream, buffers[at]->state(), *hint.place, span);
            if (!alone) return std::move(alone).error();
            reports[at] = *alone;
        }
    }
    if (told.empty()) return reports;
    Result<std::optional<HintReport>> all = tell(stream, together, hint, common, span);
    if (!all) return std::move(all).error();
    for (std::size_t at = 0; at < told.size(); ++at) {
        Result<std::optional<HintReport>> one = all;
        // One of several is in use: each alone, so that the others are not left out.
        if (!*all && told.size() > 1) one = tell(stream, {&together[at], 1}, hint, common, span);
        if (!one) return std::move(one).error();
        reports[told[at]] = one->value_or(open_elsewhere);
    }
    return reports;
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

Result<HintReport> advise(DeviceState& device, BufferState& buffer, Advice advice, int node) {
    const rules::HintPlan plan = rules::plan_advice(device.capabilities, buffer.memory->kind, buffer.staged());
    if (plan.action == rules::HintAction::none) return plan.report;
    if (buffer.memory->bytes == 0) return HintReport{HintOutcome::not_needed, "there is nothing in the buffer"};
    platform::Transfers* const transfers = device.driver->transfers();
    if (transfers == nullptr) return driver_took_none;
    buffer.memory.exposed.store(true,
                                std::memory_order_relaxed);  // advice stays with the addresses until they are freed
    const platform::Place where = platform_place(device, {advice == Advice::prefer_host, node});
    const platform::Status status =
        transfers->advise(hinted_address(buffer), buffer.memory->bytes, advice_of(advice), where);
    if (status.ok()) return plan.report;
    if (hint_not_supported(status.code)) return driver_took_none;
    return device.failure(status, "giving advice about a buffer");
}

std::optional<MemoryPlace> memory_place(const std::optional<platform::Place>& place) {
    if (!place) return std::nullopt;
    if (place->ordinal >= 0) return MemoryPlace{MemoryPlace::Where::device, place->ordinal};
    if (place->host_node >= 0) return MemoryPlace{MemoryPlace::Where::host_node, place->host_node};
    return MemoryPlace{MemoryPlace::Where::host, 0};
}

Result<AdviceReport> advice_for(DeviceState& device, const BufferState& buffer) {
    const rules::HintPlan plan = rules::plan_advice_query(device.capabilities, buffer.memory->kind, buffer.staged());
    AdviceReport report;
    report.outcome = plan.report.outcome;
    report.reason = plan.report.reason;
    if (plan.action == rules::HintAction::none) return report;
    platform::Transfers* const transfers = device.driver->transfers();
    platform::AdviceFacts facts;
    const platform::Status status = buffer.memory->bytes == 0 || transfers == nullptr
                                        ? platform::Status{Code::unsupported, 0, nullptr}
                                        : transfers->advice(hinted_address(buffer), buffer.memory->bytes, facts);
    if (hint_not_supported(status.code)) {
        report.outcome = HintOutcome::unsupported;
        report.reason = "the driver does not tell advice";
        return report;
    }
    if (!status.ok()) return device.failure(status, "asking for the advice about a buffer");
    report.read_mostly = facts.read_mostly;
    report.accessed_by_device = facts.accessed;
    report.preferred = memory_place(facts.preferred);
    report.prefetched = memory_place(facts.prefetched);
    return report;
}

ObservedFacts observed_hint(const BufferState& buffer, ObservedFacts facts) noexcept {
    const ObservedFacts memory = buffer.observed();
    facts.bytes = memory.bytes;
    facts.address = memory.address;
    facts.kind = memory.kind;
    return facts;
}

ObservedFacts observed_hint(const StreamState& stream, Buffers buffers) noexcept {
    ObservedFacts facts = stream.observed();
    if (buffers.size() == 1) return observed_hint(*buffers.front()->state(), facts);
    for (const BufferBase* const buffer : buffers) facts.bytes += buffer->state()->memory->bytes;
    return facts;
}

// Counts the reports, and ends the span with the reason where there is one report.
void finish(DeviceState& device, const Result<std::vector<HintReport>>& reports, ObservedSpan& span) {
    if (reports) {
        for (const HintReport& report : *reports) (void)device.books->hints.count(report);
        if (ObservedFacts* const facts = span.facts(); facts != nullptr && reports->size() == 1) {
            facts->reason = reports->front().reason;
        }
    }
    span.over(reports);
}

void finish(DeviceState& device, const Result<HintReport>& report, ObservedSpan& span) {
    if (report) {
        (void)device.books->hints.count(*report);
        if (ObservedFacts* const facts = span.facts()) facts->reason = report->reason;
    }
    span.over(report);
}

Result<void> check_buffers(StreamState& stream, Buffers buffers, const char* what) {
    for (const BufferBase* const buffer : buffers) {
        if (buffer == nullptr) return make_error<errors::hint_about_null_buffer>(what);
        if (Result<void> fine = check_buffer(stream, &buffer->state(), what, "the buffer"); !fine) return fine;
    }
    return {};
}

// The buffers of the calls are checked before.
Result<void> may_prefetch(StreamState& stream, const HintPlace& place) {
    if (stream.device->bars(rules::PublicCall::prefetch)) return stream.device->refusal(rules::PublicCall::prefetch);
    return check_node(*stream.device, place);
}

Result<void> may_discard(StreamState& stream, const std::optional<HintPlace>& next) {
    if (stream.device->bars(rules::PublicCall::discard)) return stream.device->refusal(rules::PublicCall::discard);
    return check_node(*stream.device, next.value_or(HintPlace{}));
}

Result<void> may_advise(DeviceState& device, Advice advice, int node) {
    if (device.bars(rules::PublicCall::advise)) return device.refusal(rules::PublicCall::advise);
    if (node != -1 && advice != Advice::prefer_host) return make_error<errors::node_beside_other_advice>(node);
    return check_node(device, HintPlace::on_host(node));
}

}  // namespace
}  // namespace detail

Result<HintReport> Stream::prefetch(const BufferBase& buffer, HintPlace place) {
    detail::StreamState& stream = *state_;
    const BufferBase* const alone = &buffer;
    Result<void> fine = detail::check_buffers(stream, {&alone, 1}, "a prefetch");
    if (!fine) return std::move(fine).error();
    detail::ObservedSpan span(stream.device->observer(), Span::hint, "a prefetch", [&] {
        return detail::observed_hint(stream, {&alone, 1});
    });
    if (fine = detail::may_prefetch(stream, place); !fine) return span.over(std::move(fine).error());
    Result<HintReport> report = detail::prefetch(stream, buffer.state(), place, span);
    detail::finish(*stream.device, report, span);
    return report;
}

Result<std::vector<HintReport>> Stream::prefetch(std::span<const BufferBase* const> buffers, HintPlace place) {
    detail::StreamState& stream = *state_;
    Result<void> fine = detail::check_buffers(stream, buffers, "a prefetch");
    if (!fine) return std::move(fine).error();
    detail::ObservedSpan span(stream.device->observer(), Span::hint, "a prefetch",
                              [&] { return detail::observed_hint(stream, buffers); });
    if (fine = detail::may_prefetch(stream, place); !fine) return span.over(std::move(fine).error());
    Result<std::vector<HintReport>> reports = detail::batch(stream, buffers, {false, place}, span);
    detail::finish(*stream.device, reports, span);
    return reports;
}

Result<HintReport> Stream::discard(const BufferBase& buffer, std::optional<HintPlace> next) {
    const BufferBase* const alone = &buffer;
    Result<std::vector<HintReport>> reports = discard({&alone, 1}, next);
    if (!reports) return std::move(reports).error();
    return reports->front();
}

Result<std::vector<HintReport>> Stream::discard(std::span<const BufferBase* const> buffers,
                                                std::optional<HintPlace> next) {
    detail::StreamState& stream = *state_;
    Result<void> fine = detail::check_buffers(stream, buffers, "a discard");
    if (!fine) return std::move(fine).error();
    detail::ObservedSpan span(stream.device->observer(), Span::hint, "a discard",
                              [&] { return detail::observed_hint(stream, buffers); });
    if (fine = detail::may_discard(stream, next); !fine) return span.over(std::move(fine).error());
    Result<std::vector<HintReport>> reports = detail::batch(stream, buffers, {true, next}, span);
    detail::finish(*stream.device, reports, span);
    return reports;
}

Result<HintReport> Device::advise(const BufferBase& buffer, Advice advice, int node) {
    Result<void> fine = detail::check_buffer(*stream_.state(), &buffer.state(), "advice", "the buffer");
    if (!fine) return std::move(fine).error();
    detail::ObservedSpan span(state_->observer(), Span::hint, "advice",
                              [&] { return detail::observed_hint(*buffer.state(), state_->observed()); });
    if (fine = detail::may_advise(*state_, advice, node); !fine) return span.over(std::move(fine).error());
    Result<HintReport> report = detail::advise(*state_, *buffer.state(), advice, node);
    detail::finish(*state_, report, span);
    return report;
}

Result<AdviceReport> Device::advice_for(const BufferBase& buffer) const {
    Result<void> fine = detail::check_buffer(*stream_.state(), &buffer.state(), "asking for advice", "the buffer");
    if (!fine) return std::move(fine).error();
    if (state_->bars(rules::PublicCall::ask_advice)) return state_->refusal(rules::PublicCall::ask_advice);
    return detail::advice_for(*state_, *buffer.state());
}

HintCounts Device::hint_counts() const noexcept {
    return state_->books->hints.counts();
}

}  // namespace v0
}  // namespace isthmus
