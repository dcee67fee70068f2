// SPDX-License-Identifier: Apache-2.0
// Stream::explain: what a launch would do, from the same judgements that the launch makes.
#include <isthmus/stream.hpp>

#include "atomic_guard.hpp"
#include "buffer_state.hpp"
#include "composed.hpp"
#include "core_errors.hpp"
#include "device_state.hpp"
#include "kernel_argument.hpp"
#include "launch_errors.hpp"
#include "launch_judge.hpp"
#include "short_name.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace {

using detail::BufferState;
using detail::DeviceState;
using detail::JudgedArgument;
using detail::LaunchArgument;
using detail::StreamState;
using Doing = JudgedArgument::Doing;

std::string owner_name(const BufferState& buffer) {
    return std::string(named(*buffer.device).view());
}

// The launch path of a buffer that is passed: its own path on its own GPU, otherwise LaunchPath::pass.
LaunchPath path_of(const DeviceState& device, const BufferState& buffer) {
    const bool here = buffer.device.get() == &device;
    return here && buffer.memory->path != LaunchPath::refuse && !device.synchronous ? buffer.memory->path
                                                                                    : LaunchPath::pass;
}

// The use for which a claim keeps the host away, as in Operation::claim(). On the CPU device a launch opens the buffers
// instead.
ArgumentUse claimed(const BufferState& buffer, ArgumentUse use, const rules::ByteSpan& span) {
    return buffer.memory->path == LaunchPath::attach ? ArgumentUse::read_write
                                                     : rules::claimed_use(use, buffer.memory->path, span);
}

std::string sentence_of(const DeviceState& device, MemoryKind kind, LaunchPath path, const AccessAnswer& answer) {
    if (path == LaunchPath::stage || path == LaunchPath::refuse) {
        std::string text(path == LaunchPath::stage && answer.verdict != Verdict::yes ? "copied around the kernel: "
                                                                                     : "");
        text += answer.reason;
        if (path == LaunchPath::refuse) text += composed(". Try: {}", answer.remedy);
        return text;
    }
    if (path != LaunchPath::pass) return std::string(device.paths[static_cast<std::size_t>(kind)].reason);
    std::string text(answer.reason);
    if (answer.verdict == Verdict::not_verified) text += composed("; it is passed as it is. Try: {}", answer.remedy);
    return text;
}

// Builds one explanation: the arguments, then the driver calls of the launch.
class Explainer {
public:
    Explainer(StreamState& stream, LaunchMode mode, const KernelInfo& kernel)
        : stream_(stream), device_(*stream.device), kernel_(kernel) {
        out_.mode = mode;
        out_.device = named(device_);
    }

    void add(std::uint32_t at, const LaunchArgument& argument) {
        ArgumentExplanation explained;
        explained.name = parameter_name(kernel_, at);
        explained.use = kernel_.parameter[at].use;
        if (!argument.fits) {
            refuse(make_error<errors::argument_number_does_not_fit>(detail::argument_text(kernel_, at)));
        }
        if (!argument.is_view) {
            explained.sentence = "a value: it travels with the launch";
        } else if (argument.buffer == nullptr) {
            add_raw(at, argument, explained);
        } else if (*argument.buffer == nullptr) {
            explained.path = LaunchPath::refuse;
            explained.verdict = Verdict::not_verified;
            explained.sentence = "the buffer is empty, moved from or released";
            refuse(make_error<errors::argument_buffer_is_empty>(detail::argument_text(kernel_, at)));
        } else if (argument.is_part && (*argument.buffer)->views.released()) {
            explained.path = LaunchPath::refuse;
            explained.verdict = Verdict::not_verified;
            explained.sentence = "the buffer of the part was released";
            refuse(make_error<errors::argument_part_of_released_buffer>(detail::argument_text(kernel_, at)));
        } else {
            add_buffer(at, argument, explained);
        }
        if (argument.is_view && detail::updates(kernel_.parameter[at])) {
            Result<void> lawful = detail::check_kernel_atomics(device_, kernel_, at, argument);
            if (!lawful) refuse(std::move(lawful).error());
        }
        out_.arguments.push_back(std::move(explained));
    }

    LaunchExplanation finish(bool runs);

private:
    void refuse(Error why) {
        if (!out_.refusal) out_.refusal = std::move(why);
    }
    void add_raw(std::uint32_t at, const LaunchArgument& argument, ArgumentExplanation& explained) {
        const std::uint64_t bytes = detail::raw_bytes(argument, kernel_.parameter[at]);
        const JudgedArgument judged = detail::judge_raw(device_, argument, bytes, kernel_.parameter[at].use, out_.mode);
        detail::Provenance memory;
        const AccessAnswer answer =
            detail::range_access(device_, reinterpret_cast<std::uintptr_t>(argument.raw), bytes, &memory);
        explained.kind = memory.kind;
        if (memory.owner) explained.device = named(*memory.owner);
        explained.verdict = answer.verdict;
        settle(at, judged, answer, LaunchPath::pass, {judged.address, bytes, explained.use, judged.ordinal}, explained);
        if (judged.doing == Doing::refuse) refuse(detail::refusal_of_raw(kernel_, at, device_, judged));
    }
    void add_buffer(std::uint32_t at, const LaunchArgument& argument, ArgumentExplanation& explained) {
        BufferState& buffer = **argument.buffer;
        const std::uint64_t bytes =
            argument.is_part ? detail::raw_bytes(argument, kernel_.parameter[at]) : buffer.memory->bytes;
        const JudgedArgument judged = detail::judge_buffer(device_, argument, bytes, out_.mode);
        const AccessAnswer answer = detail::buffer_access(device_, buffer);
        explained.kind = buffer.memory->kind;
        explained.device = owner_name(buffer);
        explained.verdict = answer.verdict;
        settle(at, judged, answer, path_of(device_, buffer), {judged.address, bytes, explained.use, judged.ordinal},
               explained);
        if (judged.doing == Doing::refuse) {
            refuse(detail::refusal_of_buffer(kernel_, at, device_, buffer, judged));
        } else if (bytes > 0) {
            const rules::ByteSpan span = detail::span_of(argument, kernel_.parameter[at]);
            if (!span.whole() && buffer.views_of_parts() && judged.doing != Doing::stage) {
                parts_key_ = detail::part_key(parts_key_, buffer, span);
            }
            buffers_.push_back({&buffer, explained.use, at, judged.doing == Doing::stage, span});
        }
    }
    void settle(std::uint32_t, const JudgedArgument& judged, const AccessAnswer& answer, LaunchPath passing,
                const rules::StagedRange& range, ArgumentExplanation& explained) {
        explained.path = judged.doing == Doing::refuse  ? LaunchPath::refuse
                         : judged.doing == Doing::stage ? LaunchPath::stage
                                                        : passing;
        const AccessAnswer& told = judged.doing == Doing::refuse ? judged.answer : answer;
        explained.sentence = sentence_of(device_, explained.kind, explained.path, told);
        if (judged.doing == Doing::stage) staged_.push_back(range);
    }
    LaunchExplanation recorded(bool runs);
    int calls_for_buffers();
    int calls_for_departure() const;
    int calls_for_staging() const;

    struct Used {
        BufferState* buffer;
        ArgumentUse use;
        std::uint32_t argument;
        bool staged;
        rules::ByteSpan span;
    };
    StreamState& stream_;
    DeviceState& device_;
    const KernelInfo& kernel_;
    LaunchExplanation out_;
    std::vector<Used> buffers_;
    std::vector<rules::StagedRange> staged_;
    std::uint64_t parts_key_ = 0;
};

// The driver calls for claiming the buffers, each once, because a claim changes it. Also finds refused claims.
int Explainer::calls_for_buffers() {
    int calls = 0;
    std::vector<const BufferState*> prepared;
    // The bytes still at the host, of buffers whose parts are prefetched separately.
    std::vector<std::pair<const BufferState*, rules::SpanSet>> at_host;
    for (const Used& used : buffers_) {
        BufferState& buffer = *used.buffer;
        // Device-only memory is kept from launches by native scopes alone.
        if (buffer.memory->host == nullptr && !buffer.views.seen().any_open()) continue;
        const std::lock_guard lock(buffer.views);
        const ArgumentUse use = claimed(buffer, used.use, used.span);
        const rules::ByteSpan span = rules::claimed_span(buffer.memory->path, used.span);
        if (buffer.host_forbids(use, span)) {
            refuse(buffer.refuse_at_host(detail::argument_text(kernel_, used.argument), use, span));
        }
        if (std::find(prepared.begin(), prepared.end(), &buffer) != prepared.end()) continue;
        const bool reads = std::any_of(buffers_.begin(), buffers_.end(), [&](const Used& one) {
            return one.buffer == &buffer && detail::reads(claimed(buffer, one.use, one.span));
        });
        const detail::BufferSides* const sides = buffer.sides();
        const bool elsewhere =
            sides != nullptr && sides->brought_elsewhere(stream_) && !sides->brought_by()->reached(sides->brought_at());
        if (device_.synchronous) {
            // 2: a copy and its event
            calls += buffer.memory->path == LaunchPath::stage && sides->device_newer() && reads ? 2 : 0;
        } else if (!used.staged && buffer.memory->path == LaunchPath::stage) {
            calls += sides->host_newer() && reads ? 1 : 0;
            calls += elsewhere ? 1 : 0;
        } else if (!used.staged && buffer.memory->path == LaunchPath::attach) {
            calls += sides->attached_to() != &stream_ ? (elsewhere ? 2 : 1) : 0;
        } else if (!used.staged && buffer.memory->path == LaunchPath::prefetch) {
            if (!buffer.prefetched_for(used.use, used.span)) continue;  // a later argument may cover the whole buffer
            if (buffer.views.at_host() != nullptr) {
                auto known =
                    std::find_if(at_host.begin(), at_host.end(), [&](const auto& one) { return one.first == &buffer; });
                if (known == at_host.end()) known = at_host.emplace(known, &buffer, *buffer.views.at_host());
                if (!known->second.meets(used.span)) continue;
                known->second.remove(used.span);
            }
            calls += device_.driver->transfers() != nullptr ? 1 : 0;
            if (buffer.views.at_host() != nullptr) continue;
        }
        prepared.push_back(&buffer);
    }
    return calls;
}

// The departure fence, and the attached buffers that return to the host with it.
int Explainer::calls_for_departure() const {
    const auto stays = [&](const BufferState* known) {
        return std::any_of(buffers_.begin(), buffers_.end(),
                           [&](const Used& used) { return used.buffer == known && !used.staged; });
    };
    const std::vector<BufferState*>& tail = stream_.tail;
    if (tail.empty() || (stream_.tail_parts == parts_key_ && std::all_of(tail.begin(), tail.end(), stays))) return 0;
    int calls = stream_.reached(stream_.issued) ? 0 : 1;
    for (BufferState* buffer : tail) {
        if (buffer->memory->path != LaunchPath::attach) continue;
        const std::lock_guard lock(buffer->views);
        calls += buffer->sides()->attached_to() == &stream_ ? 1 : 0;
    }
    return calls;
}

int Explainer::calls_for_staging() const {
    if (staged_.empty()) return 0;
    const rules::StagingPlan plan = rules::plan_staging(staged_);
    const auto of_host = [](const rules::StagedCopy& copy) { return copy.ordinal < 0; };
    const bool host_in = std::any_of(plan.in.begin(), plan.in.end(), of_host);
    const bool host_out = std::any_of(plan.out.begin(), plan.out.end(), of_host);
    // Events: behind the kernel and behind the copies; or behind the upload.
    const int waits = host_out ? 2 : host_in ? 1 : 0;
    return 2 + static_cast<int>(plan.in.size() + plan.out.size()) + waits;  // 2: the temporary, and its release
}

// On a captured stream nothing runs and nothing is claimed: the launch becomes a node of the graph.
LaunchExplanation Explainer::recorded(bool runs) {
    out_.driver_calls = out_.refusal || !runs ? 0 : 1;
    return std::move(out_);
}

LaunchExplanation Explainer::finish(bool runs) {
    Wait wait;
    const Result<detail::StreamLock> lock = stream_.lock_within(wait, "explaining a launch");
    if (!lock) {
        refuse(lock.error());
        return std::move(out_);
    }
    const bool capturing = stream_.recording != nullptr;
    if (capturing && (out_.mode == LaunchMode::verify || !staged_.empty())) {
        refuse(make_error<errors::launch_waits_or_copies_in_capture>());
    }
    if (capturing) return recorded(runs);
    int calls = calls_for_buffers();  // also finds refusals
    if (out_.refusal || !runs) return std::move(out_);
    calls += calls_for_departure() + calls_for_staging();
    if (!device_.synchronous) {
        calls += 1;
        if (out_.mode == LaunchMode::verify) calls += 1;
    }
    out_.driver_calls = calls;
    return std::move(out_);
}

}  // namespace

LaunchExplanation Stream::explain_described(const LaunchOptions& options, const KernelInfo& kernel,
                                            const Extent& extent, const LaunchArgument* arguments,
                                            std::size_t count) const {
    StreamState& stream = *state_;
    const LaunchMode mode = options.mode.value_or(stream.mode.load(std::memory_order_relaxed));
    Explainer explainer(stream, mode, kernel);
    for (std::uint32_t at = 0; at < count; ++at) explainer.add(at, arguments[at]);
    LaunchExplanation explained = explainer.finish(extent.x != 0 && extent.y != 0 && extent.z != 0);
    if (Result<void> possible = detail::check_extent(kernel, extent); !possible) {
        explained.driver_calls = 0;
        explained.refusal = std::move(possible).error();
    }
    if (stream.device->bars(rules::PublicCall::launch)) {
        explained.driver_calls = 0;
        explained.refusal = stream.device->refusal(rules::PublicCall::launch, launching(kernel.name));
    }
    return explained;
}

}  // namespace v0
}  // namespace isthmus
