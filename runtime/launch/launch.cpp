// SPDX-License-Identifier: Apache-2.0
// Stream's launches: judge the arguments, and give the kernel to the device.
#include <isthmus/module_launch.hpp>
#include <isthmus/stream.hpp>

#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "kernel_argument.hpp"
#include "launch_at_once.hpp"
#include "launch_errors.hpp"
#include "launch_judge.hpp"
#include "launch_node.hpp"
#include "operation.hpp"
#include "process.hpp"
#include "recording.hpp"
#include "short_name.hpp"
#include "staged_launch.hpp"
#include "stream_state.hpp"
#include "told.hpp"

#include <algorithm>

namespace isthmus {
inline namespace v0 {
namespace {

using detail::BufferState;
using detail::LaunchArgument;
using detail::LaunchBooks;
using detail::StreamState;

bool is_empty(const Extent& extent) {
    return extent.x == 0 || extent.y == 0 || extent.z == 0;
}

// Launches asynchronously, or records the launch.
Result<void> launch_on_stream(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                              const LaunchArgument* arguments, std::size_t count, LaunchReport& report,
                              std::uint32_t* node) {
    detail::Operation operation(stream, kernel.name, &kernel);
    if (node != nullptr) operation.ask_for_node();
    if (kernel.rank == detail::module_rank) {
        const detail::ModuleLaunch& told = *static_cast<const detail::ModuleLaunch*>(pack);
        operation.keeps_code(std::static_pointer_cast<detail::HeldCode>(*told.keeps));
    }
    for (std::uint32_t at = 0; at < count; ++at) {
        if (!arguments[at].is_view || arguments[at].buffer == nullptr) continue;
        detail::claim_argument(operation, arguments[at], kernel.parameter[at], at);
    }
    Result<std::uint64_t> issued = operation.issue([&] {
        platform::LaunchRequest request{&kernel, platform::FunctionHandle::none, extent, pack, stream.handle};
        const platform::Status found = stream.resolve(kernel, request.function);
        return found.ok() ? stream.device->driver->execution().launch(request) : found;
    });
    if (!issued) return std::move(issued).error();
    report.position = *issued;
    report.staged_bytes = operation.staged_bytes();
    if (node != nullptr) *node = operation.recorded_at();
    report.unordered_arguments = operation.unordered();
    return {};
}

// Opens every buffer like a host view for the duration of the launch: a GPU's work on it is waited for, its host side
// is brought up to date, and views on other threads see the conflict. A captured launch is recorded, and each launch of
// the graph opens the buffers.
Result<void> launch_on_cpu(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                           const LaunchArgument* arguments, std::size_t count, LaunchReport& report,
                           std::uint32_t* node) {
    while (!detail::in_capture(stream)) {
        detail::LaunchScopes scopes(kernel, arguments, count, true);
        for (std::uint32_t at = 0; at < count; ++at) {
            if (!arguments[at].is_view || arguments[at].buffer == nullptr) continue;
            if (Result<void> opened = scopes.open(at); !opened) return opened;
        }
        const process::OnStream here;
        const std::lock_guard lock(stream.mutex);
        if (Result<void> handle = stream.open_handle(); !handle) return handle;
        if (stream.recording != nullptr) continue;  // another thread has just begun a capture
        platform::LaunchRequest request{&kernel, platform::FunctionHandle::none, extent, pack, stream.handle};
        platform::Status status = stream.resolve(kernel, request.function);
        const char* const name = stream.name_of(kernel);
        stream.gives(name);
        if (status.ok()) status = stream.device->driver->execution().launch(request);
        if (!status.ok()) return stream.device->failure(status, short_name(kernel.name));
        report.position = stream.advance(name);
        return {};
    }
    return launch_on_stream(stream, kernel, extent, pack, arguments, count, report, node);
}

// LaunchMode::verify: waits for the kernel, so that this launch reports a fault, and not a later call (L11).
Result<void> verify(StreamState& stream, const KernelInfo& kernel, std::uint64_t position) {
    Result<void> waited = stream.wait_until(position, Wait{});
    if (waited) return waited;
    const Error& error = waited.error();
    return make_error_as<errors::verified_kernel_failed>(error.code(), kernel.name, error.message(), error.remedy())
        .from_call(error.call(), error.driver_code());
}

LaunchMode mode_of(const StreamState& stream, const LaunchOptions& options) noexcept {
    return options.mode.value_or(stream.mode.load(std::memory_order_relaxed));
}

// launch_with_care() without the observer. `node`: if not nullptr, receives the index of the recorded operation,
// and the driver is asked for its graph node.
Result<LaunchReport> launch_untold(StreamState& stream, LaunchMode mode, const KernelInfo& kernel, const Extent& extent,
                                   void* pack, const LaunchArgument* arguments, std::size_t count,
                                   std::uint32_t* node) {
    if (stream.device->bars(rules::PublicCall::launch)) {
        return stream.device->refusal(rules::PublicCall::launch, launching(kernel.name));
    }
    if (stream.device->observer()) [[unlikely]]
        detail::tell_arguments(stream, mode, arguments, kernel.parameter, count);
    if (Result<void> possible = detail::check_extent(kernel, extent); !possible) return std::move(possible).error();
    if (mode == LaunchMode::verify && detail::in_capture(stream)) {
        return make_error<errors::verify_in_capture>(kernel.name);
    }
    // Checked before anything is claimed. resolve() detects a service that starts after this check.
    if (stream.device->services.any() && !stream.device->execution.is_resolved(kernel)) {
        Result<void> fine = stream.device->services.allow(
            rules::DriverUse::load_code, worded("{}, whose code is not loaded yet,", launching(kernel.name)));
        if (!fine) return std::move(fine).error();
    }
    LaunchReport report;
    detail::Judgement judgement;
    Result<void> done = detail::judge_arguments(*stream.device, mode, kernel, arguments, count, pack, judgement);
    report.unverified_arguments = judgement.unverified;
    if (done && !is_empty(extent)) {
        if (stream.device->synchronous) {
            done = launch_on_cpu(stream, kernel, extent, pack, arguments, count, report, node);
        } else if (!judgement.staged.empty()) {
            auto give = [&] {
                platform::LaunchRequest request{&kernel, platform::FunctionHandle::none, extent, pack, stream.handle};
                const platform::Status found = stream.resolve(kernel, request.function);
                return found.ok() ? stream.device->execution.launch(request) : found;
            };
            const detail::StagedWork work{[](void* erased) { return (*static_cast<decltype(give)*>(erased))(); },
                                          &give};
            done = detail::launch_staged(stream, kernel, pack, arguments, count, judgement.staged, work, report);
        } else {
            done = launch_on_stream(stream, kernel, extent, pack, arguments, count, report, node);
        }
        if (done && mode == LaunchMode::verify) done = verify(stream, kernel, report.position);
    }
    if (!done) return std::move(done).error();
    return report;
}

// Launches that launch_at_once() does not handle.
Result<LaunchReport> launch_with_care(StreamState& stream, LaunchMode mode, const KernelInfo& kernel,
                                      const Extent& extent, void* pack, const LaunchArgument* arguments,
                                      std::size_t count, std::uint32_t* node) {
    detail::ObservedSpan span(stream.device->observer(), Span::launch, kernel.name, [&] { return stream.observed(); });
    Result<LaunchReport> launched = launch_untold(stream, mode, kernel, extent, pack, arguments, count, node);
    if (ObservedFacts* const facts = span.facts(); facts != nullptr && launched) {
        facts->position = launched->position;
        facts->bytes = launched->staged_bytes + launched->copied_back_bytes;
    }
    if (!launched) LaunchBooks::count(stream.device->books->launches.refused_launches);
    span.over(launched);
    return launched;
}

}  // namespace

Result<std::uint32_t> detail::launch_for_node(StreamState& stream, const LaunchOptions& options,
                                              const KernelInfo& kernel, const Extent& extent, void* pack,
                                              const LaunchArgument* arguments, std::size_t count) {
    std::uint32_t node = 0;
    Result<LaunchReport> launched =
        launch_with_care(stream, mode_of(stream, options), kernel, extent, pack, arguments, count, &node);
    if (!launched) return std::move(launched).error();
    return node;
}

Result<LaunchReport> detail::launch_described(StreamState& stream, const LaunchOptions& options,
                                              const KernelInfo& kernel, const Extent& extent, void* pack,
                                              const LaunchArgument* arguments, std::size_t count) {
    return launch_with_care(stream, mode_of(stream, options), kernel, extent, pack, arguments, count, nullptr);
}

bool Stream::launch_buffers(const LaunchOptions& options, const KernelInfo& kernel, const Extent& extent, void* pack,
                            const std::shared_ptr<BufferState>* const* buffers, Result<LaunchReport>& report) {
    StreamState& stream = *state_;
    // Device-only memory is allowed in every mode.
    if (stream.device->synchronous || mode_of(stream, options) == LaunchMode::verify ||
        stream.device->bars(rules::PublicCall::launch)) {
        return false;
    }
    platform::Status status;
    const detail::AtOnce at_once =
        detail::launch_at_once(stream, kernel, extent, pack, buffers, report->position, status);
    if (at_once == detail::AtOnce::failed) report = stream.device->failure(status, short_name(kernel.name));
    return at_once != detail::AtOnce::not_so_simple;
}

Result<LaunchReport> Stream::launch_packed(const LaunchOptions& options, const KernelInfo& kernel, const Extent& extent,
                                           void* pack, const LaunchArgument* arguments, std::size_t count) {
    return launch_with_care(*state_, mode_of(*state_, options), kernel, extent, pack, arguments, count, nullptr);
}

}  // namespace v0
}  // namespace isthmus
