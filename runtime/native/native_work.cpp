// SPDX-License-Identifier: Apache-2.0
// enqueue_native(): claims the buffers, calls the work, and turns what it answers into an error.
#include <isthmus/native_work.hpp>

#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "in_place_claim.hpp"
#include "launch_judge.hpp"
#include "native_description.hpp"
#include "native_errors.hpp"
#include "operation.hpp"
#include "process.hpp"
#include "short_name.hpp"
#include "staged_launch.hpp"
#include "stream_state.hpp"
#include "told.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// What the operation is told: a sticky code is the device's loss, all else is a failure of this work alone, whatever
// the code means to the driver.
platform::Status status_of(const DeviceState& device, const NativeOutcome& outcome, const char* name) {
    if (outcome.ok()) return {};
    const int code = outcome.error ? outcome.error->driver_code() : outcome.of_driver ? outcome.code : 0;
    const platform::Status status = device.execution.status_of(code, name);
    return status.code == Code::device_lost ? status : platform::Status{Code::driver_error, code, name};
}

Error error_of(const DeviceState& device, const NativeOutcome& outcome, const char* name) {
    if (outcome.thrown != nullptr) return make_error<errors::native_work_threw>(name);
    if (outcome.error) {
        const Error& error = *outcome.error;
        return make_error_as<errors::native_work_failed>(error.code(), name, message_in_words(error),
                                                         remedy_in_words(error))
            .from_call(error.call(), error.driver_code());
    }
    if (!outcome.of_driver || device.synchronous) {
        return make_error<errors::native_work_answered>(name, outcome.code).from_call(name, outcome.code);
    }
    return device.driver->explain(status_of(device, outcome, name),
                                  worded("work '{}' of other code", short_name(name)));
}

// The work was called and failed. `told`: what the operation answers, which names the suspects where the device was
// lost.
Error failure_of(const DeviceState& device, const NativeRequest& request, bool captured, const Error& told) {
    if (told.code() == Code::device_lost) return told;
    Error error = error_of(device, *request.outcome, request.name);
    if (!captured) return error;
    return make_error<errors::native_work_failed_in_capture>(message_in_words(error), remedy_in_words(error))
        .from_call(error.call(), error.driver_code());
}

void call(const NativeRequest& request, void* cu_stream) {
    const process::InNativeWork here;
    request.call(request.work, cu_stream, request.views, *request.outcome);
}

// Calls the work in the device's context. Expects the stream's lock and its handle to be open.
platform::Status give(StreamState& stream, const NativeRequest& request) {
    struct Given {
        const NativeRequest& request;
        void* cu_stream;
    } given{request, stream.device->execution.native_stream(stream.handle)};
    const platform::Status entered = stream.device->execution.call_in_context(
        [](void* erased) {
            const Given& it = *static_cast<const Given*>(erased);
            call(it.request, it.cu_stream);
        },
        &given);
    return entered.ok() ? status_of(*stream.device, *request.outcome, request.name) : entered;
}

void claim_all(Operation& operation, const NativeRequest& request) {
    operation.runs_native();
    for (std::uint32_t at = 0; at < request.count; ++at) {
        claim_argument(operation, request.arguments[at], request.parameters[at], at);
    }
}

Result<std::uint64_t> on_stream(StreamState& stream, const KernelInfo& described, const NativeRequest& request) {
    Operation operation(stream, request.name, &described);
    claim_all(operation, request);
    Result<std::uint64_t> issued = operation.issue([&] { return give(stream, request); });
    if (issued || request.outcome->ok()) return issued;
    return failure_of(*stream.device, request, operation.failed_in_capture(), issued.error());
}

Result<std::uint64_t> on_stream_staged(StreamState& stream, const KernelInfo& described, const NativeRequest& request,
                                       const std::vector<StagedArgument>& staged) {
    auto given = [&] { return give(stream, request); };
    const StagedWork work{[](void* erased) { return (*static_cast<decltype(given)*>(erased))(); }, &given, true};
    LaunchReport report;
    Result<void> done =
        launch_staged(stream, described, request.views, request.arguments, request.count, staged, work, report);
    if (done) return report.position;
    if (request.outcome->ok()) return std::move(done).error();
    return failure_of(*stream.device, request, false, done.error());
}

// The short way, as launch_at_once(): whole buffers that this stream alone uses, or in-place ones, with no fence owed.
// Such memory is allowed in every launch mode. false: nothing was done.
bool at_once(StreamState& stream, const NativeRequest& request, Result<std::uint64_t>& done) {
    const DeviceState& device = *stream.device;
    if (device.books->order != nullptr || stream.external) return false;
    std::array<InPlaceClaim, InPlaceClaim::most> claims;
    std::size_t count = 0;
    const process::OnStream here;
    const std::lock_guard lock(stream.mutex);
    if (stream.handle == platform::StreamHandle::none || stream.recording != nullptr) return false;
    for (std::uint32_t at = 0; at < request.count; ++at) {
        const LaunchArgument& argument = request.arguments[at];
        BufferState* const buffer = argument.buffer->get();
        if (buffer == nullptr || argument.is_part) return false;
        if (!buffer->only_for(stream, device)) {
            const ArgumentUse use = request.parameters[at].use;
            if (count == claims.size() || !claimable(*buffer, use, stream, device)) return false;
            claims[count++] = {buffer, use};
        }
        request.views[at].data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(buffer->memory->device_address));
    }
    if (!stays(stream, claims.data(), count) || !claim_in_place(stream, claims.data(), count)) return false;
    const std::uint64_t position = stream.advance(request.name);
    for (std::uint32_t at = 0; at < request.count; ++at) {
        BufferState& buffer = **request.arguments[at].buffer;
        if (buffer.memory->host == nullptr) buffer.first_use.raise(position);
    }
    stream.gives(request.name);
    const platform::Status status = give(stream, request);
    join_tail(stream, claims.data(), count);  // also if it failed: it may have given the stream some of its work
    if (status.ok()) {
        done = position;
    } else {
        Error told = stream.device->failure(status, request.name);
        done = request.outcome->called ? failure_of(device, request, false, told) : std::move(told);
    }
    return true;
}

// A launch of a graph of the CPU device calls the kept work.
platform::Status call_kept(void* erased) {
    KeptWork& kept = *static_cast<KeptWork*>(erased);
    const DeviceState& device = *kept.device;
    NativeOutcome outcome;
    {
        const process::InNativeWork here;
        kept.run(outcome);
    }
    if (!outcome.ok()) {
        device.config->say(Severity::error,
                           composed("a graph's launch: {}", error_of(device, outcome, kept.name).text()));
    }
    return status_of(device, outcome, kept.name);
}

Result<std::uint64_t> on_captured_cpu(StreamState& stream, const KernelInfo& described, const NativeRequest& request) {
    const std::shared_ptr<KeptWork> kept =
        request.keep == nullptr ? nullptr : request.keep(request.work, request.views);
    if (kept == nullptr) return make_error<errors::native_work_not_kept>(request.name);
    kept->name = request.name;
    kept->device = stream.device.get();
    Operation operation(stream, request.name, &described);
    claim_all(operation, request);
    operation.keeps(kept);
    return operation.issue([&] { return stream.device->execution.run_work(stream.handle, call_kept, kept.get()); });
}

// As launch_on_cpu().
Result<std::uint64_t> on_cpu(StreamState& stream, const KernelInfo& described, const NativeRequest& request) {
    while (!in_capture(stream)) {
        LaunchScopes scopes(described, request.arguments, request.count, true);
        if (Result<void> opened = open_all(scopes, request); !opened) return std::move(opened).error();
        const process::OnStream here;
        const std::lock_guard lock(stream.mutex);
        if (Result<void> handle = stream.open_handle(); !handle) return std::move(handle).error();
        if (stream.recording != nullptr) continue;  // another thread has just begun a capture
        stream.gives(request.name);
        call(request, nullptr);
        const std::uint64_t position = stream.advance(request.name);
        if (!request.outcome->ok()) return error_of(*stream.device, *request.outcome, request.name);
        return position;
    }
    return on_captured_cpu(stream, described, request);
}

// LaunchMode::verify: waits, so that this call reports a fault, and not a later one (L11).
Result<std::uint64_t> verified(StreamState& stream, const char* name, std::uint64_t position) {
    Result<void> waited = stream.wait_until(position, Wait{});
    if (waited) return position;
    const Error& error = waited.error();
    return make_error_as<errors::verified_native_work_failed>(error.code(), name, error.message(), error.remedy())
        .from_call(error.call(), error.driver_code());
}

// Expects that the gate has let the call in.
Result<std::uint64_t> give_work(StreamState& stream, const NativeRequest& request) {
    const DeviceState& device = *stream.device;
    const LaunchMode mode = stream.mode.load(std::memory_order_relaxed);
    if (mode == LaunchMode::verify && in_capture(stream)) {
        return make_error<errors::native_work_verified_in_capture>(request.name);
    }
    Result<std::uint64_t> done = std::uint64_t{0};
    if (!device.synchronous && mode != LaunchMode::verify && at_once(stream, request, done)) return done;
    const KernelInfo described = detail::described(request);
    Judgement judgement;
    if (Result<void> judged =
            judge_arguments(device, mode, described, request.arguments, request.count, request.views, judgement);
        !judged) {
        return std::move(judged).error();
    }
    if (device.synchronous) return on_cpu(stream, described, request);
    done = judgement.staged.empty() ? on_stream(stream, described, request)
                                    : on_stream_staged(stream, described, request, judgement.staged);
    return done && mode == LaunchMode::verify ? verified(stream, request.name, *done) : done;
}

}  // namespace

KeptWork::~KeptWork() = default;

Result<std::uint64_t> enqueue_native(const Stream& on, const NativeRequest& request) {
    StreamState& stream = *on.state();
    DeviceState& device = *stream.device;
    ObservedSpan span(device.observer(), Span::native_work, request.name, [&] { return stream.observed(); });
    if (device.bars(rules::PublicCall::enqueue_native)) {
        return span.over(device.refusal(rules::PublicCall::enqueue_native,
                                        worded("giving a stream the work '{}'", short_name(request.name))));
    }
    if (span.facts() != nullptr) {
        tell_arguments(stream, stream.mode.load(std::memory_order_relaxed), request.arguments, request.parameters,
                       request.count);
    }
    Result<std::uint64_t> done = give_work(stream, request);
    if (ObservedFacts* const facts = span.facts(); facts != nullptr && done) facts->position = *done;
    span.over(done);
    // What the work dropped ends now that no lock is held.
    device.books->after_host_functions.drain();
    return done;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
