// SPDX-License-Identifier: Apache-2.0
// Staged launches: ordered on the stream; the host waits only for host memory that is read or written.
#include "staged_launch.hpp"

#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "kernel_argument.hpp"
#include "launch_errors.hpp"
#include "piece_release.hpp"
#include "operation.hpp"
#include "stream_state.hpp"
#include "uncaptured_scope.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using rules::StagedCopy;
using rules::StagingPlan;

// The launch's use of this argument's bytes, and of those opened together with them: arguments may share a buffer.
rules::SpanUse combined_use(const KernelInfo& kernel, const LaunchArgument* arguments, std::size_t count,
                            std::uint32_t which) {
    const std::shared_ptr<BufferState>& buffer = *arguments[which].buffer;
    rules::SpanUses uses;
    const auto use_of = [&](std::size_t at) {
        const rules::ByteSpan span = span_of(arguments[at], kernel.parameter[at]);
        return rules::SpanUse{rules::claimed_span(buffer->memory->path, span),
                              rules::claimed_use(kernel.parameter[at].use, buffer->memory->path, span)};
    };
    for (std::size_t at = 0; at < count; ++at) {
        if (arguments[at].buffer != nullptr && *arguments[at].buffer == buffer) uses.push_back(use_of(at));
    }
    rules::join(uses);
    const rules::ByteSpan own = use_of(which).span;
    const auto found = std::find_if(uses.begin(), uses.end(),
                                    [&](const rules::SpanUse& one) { return rules::overlap(one.span, own); });
    return found == uses.end() ? rules::SpanUse{own, ArgumentUse::read} : *found;  // the argument has no bytes
}

constexpr int tries = 3;  // for cleanup that cannot be tried again later

bool is_host(const StagedCopy& copy) {
    return copy.ordinal < 0;
}

// One staged launch, from its temporary to the last copy. The functions that issue work expect the stream's lock.
class StagedLaunch {
public:
    StagedLaunch(StreamState& stream, const StagingPlan& plan)
        : stream_(stream), device_(*stream.device), plan_(plan), pooled_(device_.capabilities.has(Feature::pools)) {}
    StagedLaunch(const StagedLaunch&) = delete;
    StagedLaunch& operator=(const StagedLaunch&) = delete;
    ~StagedLaunch() {
        if (uploaded_ != nullptr) device_.drop_event(uploaded_);
        if (temporary_.bytes != 0) give_back();
    }

    platform::Status allocate();
    std::uint64_t address(std::uint64_t offset) const noexcept { return temporary_.device + offset; }
    platform::Status copy_in();
    // `host`: the copies to host memory; otherwise those to another GPU's memory.
    platform::Status copy_out(bool host);
    // Releases pool memory in stream order, after all work given to the stream. The destructor releases other memory.
    void release_on_stream();

    bool has_host_output() const { return std::any_of(plan_.out.begin(), plan_.out.end(), is_host); }
    // Waits until host memory that is only read has been read. Expects no lock.
    Result<void> wait_for_upload();
    std::uint64_t bytes_in() const noexcept { return bytes_in_; }
    std::uint64_t bytes_out() const noexcept { return bytes_out_; }

private:
    void give_back();
    platform::Status release(platform::StreamHandle order);

    StreamState& stream_;
    DeviceState& device_;
    const StagingPlan& plan_;
    const bool pooled_;
    platform::Allocation temporary_;
    FenceEvent* uploaded_ = nullptr;
    std::uint64_t bytes_in_ = 0;
    std::uint64_t bytes_out_ = 0;
};

platform::Status StagedLaunch::allocate() {
    const MemoryKind kind = pooled_ ? MemoryKind::pool : MemoryKind::device;
    const platform::Status fine =
        device_.may_now(SealedAct::allocate_memory, pooled_ ? "cuMemAllocAsync" : "cuMemAlloc");
    if (!fine.ok()) return fine;
    const platform::Status status =
        device_.driver->memory().allocate(kind, plan_.bytes, platform::Attachment::global, stream_.handle, temporary_);
    if (!status.ok()) temporary_ = {};
    return status;
}

platform::Status StagedLaunch::copy_in() {
    bool from_host = false;
    for (const StagedCopy& copy : plan_.in) {
        const platform::Status status =
            is_host(copy)
                ? device_.driver->memory().copy(address(copy.offset), copy.address, copy.bytes,
                                                platform::CopyDirection::host_to_device, stream_.handle)
                : device_.driver->transfers()->copy_between(address(copy.offset), device_.driver->facts().ordinal,
                                                            copy.address, copy.ordinal, copy.bytes, stream_.handle);
        if (!status.ok()) return status;
        from_host |= is_host(copy);
        bytes_in_ += copy.bytes;
    }
    if (!from_host || has_host_output()) return {};
    // The driver does not promise to have read pageable memory when its call returns: an event shows when it has.
    if (const platform::Status status = device_.take_event(uploaded_); !status.ok()) {
        uploaded_ = nullptr;
        return status;
    }
    return device_.driver->execution().record_event(uploaded_->handle, stream_.handle);
}

platform::Status StagedLaunch::copy_out(bool host) {
    for (const StagedCopy& copy : plan_.out) {
        if (is_host(copy) != host) continue;
        const platform::Status status =
            host ? device_.driver->memory().copy(copy.address, address(copy.offset), copy.bytes,
                                                 platform::CopyDirection::device_to_host, stream_.handle)
                 : device_.driver->transfers()->copy_between(copy.address, copy.ordinal, address(copy.offset),
                                                             device_.driver->facts().ordinal, copy.bytes,
                                                             stream_.handle);
        if (!status.ok()) return status;
        bytes_out_ += copy.bytes;
    }
    return {};
}

platform::Status StagedLaunch::release(platform::StreamHandle order) {
    const platform::Status status = device_.driver->memory().release(temporary_, order);
    if (status.ok() || status.code == Code::device_lost) temporary_ = {};
    return status;
}

// If this fails, the destructor tries again.
void StagedLaunch::release_on_stream() {
    if (!pooled_ || temporary_.bytes == 0) return;
    if (const platform::Status status = release(stream_.handle); !status.ok()) {
        device_.config->say(Severity::warning, composed("releasing a staged launch's temporary: {}",
                                                        device_.failure(status, "releasing a temporary").text()));
    }
}

// Frees memory that the stream no longer uses: after services, or later if the driver does not take it back. Gives it
// up if a kernel hangs (R5).
void StagedLaunch::give_back() {
    Result<void> waited;
    if (pooled_) {
        Wait wait;
        const auto lock = stream_.lock_within(wait, "releasing a staged launch's temporary");
        if (lock) {
            release_on_stream();
            if (temporary_.bytes == 0) return;
        } else {
            waited = lock.error();
        }
    }
    const std::uint64_t last = stream_.issued;
    for (int attempt = 0; waited.code() != Code::timed_out && attempt < tries && device_.usable(); ++attempt) {
        waited = stream_.wait_until(last, Wait{});
        if (waited) break;
    }
    if (!waited && !device_.is_lost()) {
        device_.config->say(Severity::error,
                            composed("a staged launch's temporary was given up: {}", waited.error().text()));
        return;
    }
    Piece piece;
    piece.make_own().allocation = std::exchange(temporary_, {});
    free_or_keep(device_, std::move(piece), "of a staged launch");
}

Result<void> StagedLaunch::wait_for_upload() {
    if (uploaded_ == nullptr) return {};
    ObservedSpan span(device_.observer(), Span::wait, "the copies of staged arguments",
                      [&] { return stream_.observed(stream_.issued); });
    const platform::Status status = poll_event(device_, uploaded_->handle, device_.config->wait_timeout);
    if (status.ok()) return {};
    if (status.code != Code::timed_out) {
        return span.over(device_.failure(status, "copying staged arguments to the device"));
    }
    return span.over(make_error<errors::staged_upload_timed_out>());
}

void write_address(const KernelInfo& kernel, std::uint32_t argument, void* pack, std::uint64_t address) {
    std::memcpy(static_cast<unsigned char*>(pack) + kernel.parameter[argument].offset_bytes, &address, sizeof address);
}

// Copies results to host memory. The kernel has ended, so the host waits for the copies only.
Result<void> bring_home(StreamState& stream, StagedLaunch& launch) {
    std::uint64_t position = 0;
    platform::Status status;
    {
        const std::lock_guard lock(stream.mutex);
        status = launch.copy_out(true);
        launch.release_on_stream();
        position = stream.advance("the copies back of a staged launch");
    }
    Result<void> waited = stream.wait_until(position, Wait{});
    if (!status.ok()) return stream.device->failure(status, "copying staged results back");
    return waited;
}

}  // namespace

void claim_argument(Operation& operation, const LaunchArgument& argument, const ParameterInfo& parameter,
                    std::uint32_t at) {
    BufferState& buffer = **argument.buffer;
    if (!argument.is_part) {
        if (buffer.memory->bytes > 0) operation.uses(*argument.buffer, parameter.use, at);
    } else if (argument.raw_count > 0) {
        operation.uses_part(*argument.buffer, parameter.use, at, span_of(argument, parameter));
    }
}

LaunchScopes::LaunchScopes(const KernelInfo& kernel, const LaunchArgument* arguments, std::size_t count, bool in_place)
    : kernel_(kernel), arguments_(arguments), count_(count), in_place_(in_place) {}

Result<void> LaunchScopes::open(std::uint32_t at) {
    const std::shared_ptr<BufferState>& buffer = *arguments_[at].buffer;
    if (buffer->memory->bytes == 0) return {};
    const rules::SpanUse all = combined_use(kernel_, arguments_, count_, at);
    if (all.span.begin >= all.span.end) return {};
    const auto is_open = [&](const auto& one) { return one.buffer == buffer.get() && one.all.span == all.span; };
    if (std::any_of(opened_.begin(), opened_.end(), is_open)) return {};
    Result<ViewScope> scope =
        in_place_ ? open_for_launch(*buffer, all.use, all.span)
                  : open_scope(*buffer, rules::claimed_use(all.use, LaunchPath::stage), Wait{}, all.span);
    if (!scope) {
        const Error& error = scope.error();
        return make_error_as<errors::argument_not_usable>(
            error.code(), argument_text(kernel_, at), detail::message_in_words(error), detail::remedy_in_words(error));
    }
    opened_.push_back({buffer.get(), all});
    scopes_.push_back(std::move(scope).value());
    return {};
}

void LaunchScopes::leave_to(StreamState& stream, std::uint64_t position) {
    if (stream.device->is_lost()) return;  // a lost device runs nothing
    for (const auto& [buffer, all] : opened_) {
        const std::lock_guard lock(buffer->views);
        buffer->touch(stream, position, all.use, all.span);
    }
}

Result<void> launch_staged(StreamState& stream, const KernelInfo& kernel, void* pack, const LaunchArgument* arguments,
                           std::size_t count, const std::vector<StagedArgument>& staged, const StagedWork& work,
                           LaunchReport& report) {
    // Held until the copies back have ended.
    const Result<UncapturedScope> uncaptured = UncapturedScope::enter(stream, "a staged launch");
    if (!uncaptured) {
        return make_error<errors::argument_copied_in_capture>(argument_text(kernel, staged.front().argument));
    }
    LaunchScopes scopes(kernel, arguments, count, false);
    Operation operation(stream, kernel.name, &kernel);
    if (work.native) operation.runs_native();
    std::vector<rules::StagedRange> ranges;
    for (const StagedArgument& argument : staged) {
        ranges.push_back(argument.range);
        if (argument.buffer == nullptr) continue;
        if (argument.range.ordinal >= 0) {
            operation.uses_part(*argument.buffer, argument.range.use, argument.argument,
                                span_of(arguments[argument.argument], kernel.parameter[argument.argument]));
        } else if (Result<void> opened = scopes.open(argument.argument); !opened) {
            return opened;
        }
    }
    const auto is_staged = [&](std::uint32_t at) {
        return std::any_of(staged.begin(), staged.end(), [&](const StagedArgument& s) { return s.argument == at; });
    };
    for (std::uint32_t at = 0; at < count; ++at) {
        if (!arguments[at].is_view || arguments[at].buffer == nullptr || is_staged(at)) continue;
        claim_argument(operation, arguments[at], kernel.parameter[at], at);
    }
    const StagingPlan plan = rules::plan_staging(ranges);
    StagedLaunch launch(stream, plan);
    Result<std::uint64_t> issued = operation.issue([&] {
        platform::Status status = launch.allocate();
        if (status.ok()) status = launch.copy_in();
        if (status.ok()) {
            for (std::size_t at = 0; at < staged.size(); ++at) {
                write_address(kernel, staged[at].argument, pack, launch.address(plan.offsets[at]));
            }
            status = work.give(work.data);
        }
        if (status.ok()) status = launch.copy_out(false);
        if (!status.ok() || !launch.has_host_output()) launch.release_on_stream();
        return status;
    });
    if (!issued) {
        // Copies issued so far may still read the caller's memory.
        if (launch.bytes_in() > 0 && !stream.wait_until(stream.issued, Wait{})) scopes.leave_to(stream, stream.issued);
        return std::move(issued).error();
    }
    report.position = *issued;
    report.unordered_arguments = operation.unordered();
    stream.device->books->launches.staged_launches.fetch_add(1, std::memory_order_relaxed);
    Result<void> done;
    if (launch.has_host_output()) {
        done = stream.wait_until(*issued, Wait{});
        if (done) done = bring_home(stream, launch);
    } else {
        done = launch.wait_for_upload();
    }
    if (!done) scopes.leave_to(stream, stream.issued);
    report.staged_bytes = operation.staged_bytes() + launch.bytes_in();
    report.copied_back_bytes = launch.bytes_out();
    const Observer& observer = stream.device->observer();
    constexpr std::string_view why = "the device may not reach an argument, which LaunchMode::staged copies";
    const auto copied = [&](std::uint64_t bytes) {
        ObservedFacts facts = stream.observed(*issued, bytes);
        facts.reason = why;
        return facts;
    };
    LaunchBooks& books = stream.device->books->launches;
    if (launch.bytes_in() > 0) books.count_upload(launch.bytes_in());
    if (launch.bytes_out() > 0) books.count_download(launch.bytes_out());
    if (launch.bytes_in() > 0) observer.mark(Mark::upload, kernel.name, [&] { return copied(launch.bytes_in()); });
    if (launch.bytes_out() > 0) observer.mark(Mark::download, kernel.name, [&] { return copied(launch.bytes_out()); });
    return done;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
