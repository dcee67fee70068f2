// SPDX-License-Identifier: Apache-2.0
// NativeScope: marks on the buffers from opening to closing, and an operation of the stream at either end.
#include <isthmus/native_work.hpp>

#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "few.hpp"
#include "kernel_argument.hpp"
#include "launch_judge.hpp"
#include "native_description.hpp"
#include "native_errors.hpp"
#include "operation.hpp"
#include "order_check.hpp"
#include "process.hpp"
#include "short_name.hpp"
#include "staged_launch.hpp"
#include "stream_state.hpp"
#include "told.hpp"
#include "uncaptured_scope.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct NativeScopeState {
    NativeScopeState(const Stream& on, const char* work) : stream(on), name(work) {}
    NativeScopeState(const NativeScopeState&) = delete;
    NativeScopeState& operator=(const NativeScopeState&) = delete;
    // In memory that the device keeps for the next scope.
    static void* operator new(std::size_t bytes, KeptBlocks& kept) { return kept.take(bytes); }
    static void operator delete(void* unmade, KeptBlocks& kept) noexcept { kept.give_back(unmade); }
    static void operator delete(NativeScopeState* ended, std::destroying_delete_t) noexcept {
        const std::shared_ptr<DeviceState> device = ended->stream.state()->device;
        std::destroy_at(ended);
        device->native_scopes->give_back(ended);
    }
    ~NativeScopeState() { unmark(); }

    struct Used {
        std::shared_ptr<BufferState> buffer;
        ArgumentUse use;
        std::uint32_t argument;
        rules::ByteSpan span;
    };

    Result<void> open(const NativeRequest& request);
    Result<std::uint64_t> end();

    const Stream stream;  // holds the wrapper of an external stream
    const char* const name;
    void* cu_stream = nullptr;
    std::uint64_t position = 0;  // of its end; 0: it is open

private:
    Result<void> open_on_host(const KernelInfo& described, const NativeRequest& request);
    Result<void> open_on_stream(const KernelInfo& described, const NativeRequest& request);
    Result<void> mark(const KernelInfo& described, bool beside_views);
    void unmark() noexcept;
    void claim_behind(StreamState& on, std::uint64_t at);

    std::optional<UncapturedScope> uncaptured_;
    Few<Used, 8> uses_;        // the first ones need no memory from the heap
    std::size_t marked_ = 0;   // the uses whose marks stand
    Few<ViewScope, 8> views_;  // the CPU device: the buffers are open on the host
};

namespace {

OpenUse mark_of(const NativeScopeState::Used& used, const char* name) {
    const LaunchPath path = used.buffer->memory->path;
    const rules::ByteSpan span = used.buffer->views_of_parts() || used.buffer->memory->host == nullptr
                                     ? rules::claimed_span(path, used.span)
                                     : rules::ByteSpan{};
    return {rules::scope_use(used.use, path), span, name};
}

}  // namespace

Result<void> NativeScopeState::mark(const KernelInfo& described, bool beside_views) {
    for (const Used& used : uses_) {
        Result<void> begun =
            used.buffer->begin_native(this, argument_text(described, used.argument), mark_of(used, name), beside_views);
        if (!begun) return begun;
        ++marked_;
    }
    return {};
}

void NativeScopeState::unmark() noexcept {
    for (; marked_ > 0; --marked_) uses_[marked_ - 1].buffer->end_native(this);
}

Result<void> NativeScopeState::open_on_host(const KernelInfo& described, const NativeRequest& request) {
    LaunchScopes scopes(described, request.arguments, request.count, true);
    if (Result<void> opened = open_all(scopes, request); !opened) return opened;
    std::move(scopes).move_to(views_);
    return mark(described, true);
}

// An operation that uses the buffers and gives the stream nothing: it uploads, attaches and waits for what the work's
// first call would have to wait for.
Result<void> NativeScopeState::open_on_stream(const KernelInfo& described, const NativeRequest& request) {
    if (Result<void> marked = mark(described, false); !marked) return marked;
    StreamState& on = *stream.state();
    Operation operation(on, name, &described);
    operation.runs_native();
    operation.of_scope(this);
    for (std::uint32_t at = 0; at < request.count; ++at) {
        claim_argument(operation, request.arguments[at], request.parameters[at], at);
    }
    Result<std::uint64_t> begun = operation.issue([&] {
        cu_stream = on.device->execution.native_stream(on.handle);
        return platform::Status{};
    });
    if (!begun) return std::move(begun).error();
    on.handed_out.store(true, std::memory_order_release);  // a synchronisation has to cover work without a position
    return {};
}

Result<void> NativeScopeState::open(const NativeRequest& request) {
    StreamState& on = *stream.state();
    DeviceState& device = *on.device;
    Result<UncapturedScope> uncaptured = UncapturedScope::enter(on, "a native scope was to be opened");
    if (!uncaptured) return std::move(uncaptured).error();
    uncaptured_.emplace(std::move(uncaptured).value());
    const KernelInfo described = detail::described(request);
    Judgement judgement;
    const LaunchMode mode = on.mode.load(std::memory_order_relaxed);
    if (Result<void> judged =
            judge_arguments(device, mode, described, request.arguments, request.count, request.views, judgement);
        !judged) {
        return judged;
    }
    if (!judgement.staged.empty()) {
        return make_error<errors::native_scope_needs_copies>(name, judgement.staged.front().argument, named(device));
    }
    for (std::uint32_t at = 0; at < request.count; ++at) {
        const LaunchArgument& argument = request.arguments[at];
        const std::shared_ptr<BufferState>& buffer = *argument.buffer;
        if ((argument.is_part ? argument.raw_count : buffer->memory->bytes) == 0) continue;
        uses_.push_back({buffer, request.parameters[at].use, at, span_of(argument, request.parameters[at])});
    }
    return device.synchronous ? open_on_host(described, request) : open_on_stream(described, request);
}

// The uses name the position that the stream's work ends at: from here on everybody waits for it.
void NativeScopeState::claim_behind(StreamState& on, std::uint64_t at) {
    for (const Used& used : uses_) {
        BufferState& buffer = *used.buffer;
        {
            const LaunchPath path = buffer.memory->path;
            const std::lock_guard lock(buffer.views);
            buffer.touch(
                on, at,
                buffer.memory->host == nullptr ? ArgumentUse::write : rules::claimed_use(used.use, path, used.span),
                rules::claimed_span(path, used.span));
        }
        if (buffer.memory->host == nullptr) continue;
        on.tail_parts = 1;  // no operation's: if the fence fails, the next operation records one
        if (std::find(on.tail.begin(), on.tail.end(), &buffer) == on.tail.end()) on.tail.push_back(&buffer);
    }
}

Result<std::uint64_t> NativeScopeState::end() {
    StreamState& on = *stream.state();
    Result<void> fenced;
    {
        Wait wait;
        const Result<StreamLock> lock = on.lock_within(wait, "closing a native scope");
        if (!lock) return lock.error();  // it stays open
        position = on.issued + 1;
        OrderedAttempt order;
        if (OrderChecker* const checker = on.device->books->order.get(); checker != nullptr) {
            OrderChecker::Attempt attempt{on, name, nullptr};
            for (const Used& used : uses_) {
                rules::ByteRange range;
                if (!used.span.whole()) range = {.offset = used.span.begin, .width = used.span.end - used.span.begin};
                attempt.uses.push_back({used.buffer.get(), used.use, used.argument, range});
            }
            (void)order.begin(*checker, std::move(attempt));  // the work is there: nothing can be refused any more
        }
        claim_behind(on, position);
        on.advance(name);
        (void)order.happened(position);
        unmark();  // before the fence, which gives attached memory back to the host
        if (on.device->usable()) fenced = on.fence();
    }
    views_.clear();
    uncaptured_.reset();
    const bool verify = on.mode.load(std::memory_order_relaxed) == LaunchMode::verify;
    if (fenced && verify && on.device->usable()) fenced = on.wait_until(position, Wait{});
    if (const Observer& observer = on.device->observer()) {
        ObservedFacts facts = on.observed(position);
        facts.code = fenced.code();
        if (!fenced) facts.error = fenced.error().id();
        observer.end(Span::native_scope, name, facts);
    }
    return fenced ? Result<std::uint64_t>(position) : std::move(fenced).error();
}

OpenedNative::OpenedNative(std::unique_ptr<NativeScopeState> state) noexcept : state_(std::move(state)) {}
OpenedNative::OpenedNative(OpenedNative&& other) noexcept = default;

OpenedNative& OpenedNative::operator=(OpenedNative&& other) noexcept {
    if (this != &other) {
        drop();
        state_ = std::move(other.state_);
    }
    return *this;
}

OpenedNative::~OpenedNative() {
    drop();
}

void OpenedNative::drop() noexcept {
    if (!state_) return;
    DeviceState& device = *state_->stream.state()->device;
    if (device.config->forked()) {
        (void)state_.release();  // its marks and views are the parent's
        return;
    }
    if (state_->position != 0) return state_.reset();
    if (process::here.in_host_function) {  // the stream's lock may be held
        device.books->after_host_functions.put_off(
            [scope = std::make_shared<OpenedNative>(std::move(*this))]() mutable { scope.reset(); });
        return;
    }
    if (Result<std::uint64_t> ended = state_->end(); !ended && device.config->log) {
        device.config->say(Severity::warning,
                           ErrorLine().append("closing a native scope: ").append(text_in_words(ended.error())));
    }
    if (state_->position != 0) return state_.reset();
    // Another thread is blocked in the driver behind a kernel that hangs, and the memory may be in use for ever (R5).
    process::keep_until_exit(std::shared_ptr<NativeScopeState>(std::move(state_)));
}

void* OpenedNative::stream() const noexcept {
    return state_ != nullptr ? state_->cu_stream : nullptr;
}

Result<std::uint64_t> OpenedNative::close() {
    if (!state_) return make_error<errors::native_scope_moved_from>();
    if (state_->position != 0) return state_->position;
    DeviceState& device = *state_->stream.state()->device;
    if (device.bars(rules::PublicCall::close_native_scope)) {
        Error refused = device.refusal(rules::PublicCall::close_native_scope);
        if (refused.code() == Code::device_lost) (void)state_->end();
        return refused;
    }
    return state_->end();
}

Result<OpenedNative> open_native_scope(const Stream& on, const NativeRequest& request) {
    DeviceState& device = *on.state()->device;
    ObservedSpan span(device.observer(), Span::native_scope, request.name, [&] { return on.state()->observed(); });
    if (device.bars(rules::PublicCall::open_native_scope)) {
        return span.over(device.refusal(rules::PublicCall::open_native_scope,
                                        worded("opening a native scope for the work '{}'", short_name(request.name))));
    }
    if (span.facts() != nullptr) {
        StreamState& stream = *on.state();
        tell_arguments(stream, stream.mode.load(std::memory_order_relaxed), request.arguments, request.parameters,
                       request.count);
    }
    std::unique_ptr<NativeScopeState> state(new (*device.native_scopes) NativeScopeState(on, request.name));
    Result<void> opened = state->open(request);
    span.over_if_refused(opened);
    if (!opened) return std::move(opened).error();
    return OpenedNative(std::move(state));
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
