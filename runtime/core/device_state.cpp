// SPDX-License-Identifier: Apache-2.0
// DeviceState: work that outlives its stream, and the list of streams.
#include "device_state.hpp"

#include "access_rules.hpp"
#include "core_errors.hpp"
#include "piece_release.hpp"
#include "process.hpp"
#include "stream_state.hpp"
#include "wait_pause.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

std::array<rules::PathAnswer, memory_kind_count> all_paths(const Capabilities& capabilities) {
    std::array<rules::PathAnswer, memory_kind_count> paths{};
    for (int kind = 0; kind < memory_kind_count; ++kind) {
        paths[static_cast<std::size_t>(kind)] = rules::launch_path(capabilities, static_cast<MemoryKind>(kind));
    }
    return paths;
}

// Says why a device that lies in the way has none.
bool has_segment(const DeviceSession& device) {
    rules::SegmentFacts facts;
    facts.asked = device.config->device_segments;
    facts.virtual_memory =
        device.capabilities.has(Feature::virtual_memory) && device.driver->virtual_memory() != nullptr;
    facts.separate = device.capabilities.memory == MemoryModel::separate;
    facts.gpus = device.config->gpus;
    const std::string_view why = rules::why_no_segments(facts);
    if (facts.asked && !why.empty() && !device.synchronous) {
        device.config->say(Severity::info, composed("no segments on {}: {}", named(device), why));
    }
    return why.empty();
}

}  // namespace

DeviceState::DeviceState(std::shared_ptr<const RuntimeConfig> shared, std::shared_ptr<Books> memory_books,
                         std::unique_ptr<platform::Driver> opened, std::size_t position)
    : DeviceSession(std::move(shared), memory_books->captures, std::move(opened), position),
      books(std::move(memory_books)),
      reachable(rules::reachable_kinds(capabilities)),
      paths(all_paths(capabilities)),
      atomics(capabilities),
      watched(static_cast<bool>(config->observer) || books->order != nullptr),
      cache(driver->memory(), config->cache_bytes),
      segment(*driver, has_segment(*this)) {}

DeviceState::~DeviceState() {
    if (config->forked()) {  // the child owns no objects of the driver
        process::keep_until_exit(driver);
        return;
    }
    if (!all_work_ended()) {
        if (!is_lost()) {
            config->say(Severity::error, "a kernel still runs: its device is left open until the process ends");
        }
        orphaned_calls_.drop_all();  // the driver may still call them, and finds them empty
        process::keep_until_exit(driver);
        process::keep_until_exit(books);  // also the memory that the kernel may write
        while (std::optional<Piece> piece = unreturned.next()) {
            process::keep_until_exit(std::make_shared<Piece>(*std::move(piece)));
        }
        // With the books stays also the memory that is kept for later allocations.
        return;
    }
    orphaned_calls_.drop_all();  // calls without a fence behind them; all other calls have run
    copies.bounce.close(*this);
    free_leftovers();
    events.close(execution);
}

// Frees memory that users never released, memory that was given up because of a hung kernel that has ended since, and
// memory that the driver has not released so far.
void DeviceState::free_leftovers() {
    close_lanes(*this);  // of blocks: buffers that rest hold the device
    for (Piece& piece : books->ledger.take_all(index)) free_at_end(*this, std::move(piece));
    while (std::optional<Piece> piece = unreturned.next()) free_at_end(*this, *std::move(piece));
    for (Piece* const kept : cache.take_out(0)) {
        Piece piece = books->ledger.take_parked(*kept);
        piece.unused = true;
        free_at_end(*this, std::move(piece));
    }
    if (is_lost() && !driver->context_died()) return;
    // What is still mapped may have had users that nothing waited for. If they do not end, it stays mapped.
    const bool may_be_used = segment.mapped_bytes() != 0 && !context_gone();
    if (!may_be_used || execution.synchronize_context().ok()) segment.end();
}

void DeviceState::set_out_of_memory_handler(OutOfMemoryHandler handler) {
    std::shared_ptr<const OutOfMemoryHandler> kept;
    if (handler) kept = std::make_shared<const OutOfMemoryHandler>(std::move(handler));
    const std::lock_guard lock(handler_mutex_);
    // The previous handler is destroyed without the lock: its destructor may run users' code.
    out_of_memory_handler_.swap(kept);
}

bool DeviceState::make_room(std::size_t bytes) {
    std::shared_ptr<const OutOfMemoryHandler> handler;
    {
        const std::lock_guard lock(handler_mutex_);
        handler = out_of_memory_handler_;  // called without the lock: it may set another handler
    }
    // A handler that itself runs out of memory is not called for that: it would recurse without end.
    static thread_local bool asking = false;
    if (!handler || asking) return false;
    asking = true;
    const bool again = (*handler)(bytes);
    asking = false;
    return again;
}

void DeviceState::outlive(FenceEvent* last_work) {
    const std::lock_guard lock(last_works_mutex_);
    // Streams may come and go as long as the process runs: completed events are not kept.
    std::erase_if(last_works_, [&](FenceEvent* earlier) {
        const bool ended = driver->execution().query_event(earlier->handle).ok();
        if (ended) drop_event(earlier);
        return ended;
    });
    last_works_.push_back(last_work);
}

Result<void> DeviceState::wait_for_ended_streams(Wait wait) {
    std::vector<FenceEvent*> works;
    // Read before the list: streams that end in between are not waited for.
    OrderClock ended;
    if (books->order != nullptr && !unfenced_.load(std::memory_order_relaxed)) ended = books->order->ended_on(index);
    {
        const std::lock_guard lock(last_works_mutex_);
        works = last_works_;
        for (FenceEvent* work : works) work->keep();
    }
    platform::Status status;
    const Deadline deadline(wait, config->wait_timeout);
    std::optional<ObservedSpan> span;
    if (!works.empty()) {
        span.emplace(observer(), Span::wait, "the last work of destroyed streams", [&] { return observed(); });
    }
    for (FenceEvent* work : works) {
        const std::chrono::nanoseconds left = deadline.left().timeout.value_or(std::chrono::nanoseconds(0));
        if (status.ok() && usable()) status = poll_event(*this, work->handle, left);
        drop_event(work);
    }
    if (status.ok()) {
        if (books->order != nullptr) books->order->seen_ended_streams(index, ended);
        return {};
    }
    if (status.code != Code::timed_out) return failure(status, "waiting for a destroyed stream's work");
    return make_error_as<errors::destroyed_stream_still_works>(wait.refuse ? Code::not_ready : Code::timed_out);
}

void DeviceState::end_host_functions(HostCalls& calls) {
    if (is_lost()) {
        calls.drop_all();
        orphaned_calls_.drop_all();
    }
    calls.reap();
    orphaned_calls_.reap();
    books->after_host_functions.drain();
    return_unreturned(*this);
}

void DeviceState::settle_host_functions() {
    services.forget_ended();  // work deferred behind a service that was given up holds the device
    constexpr int tries = 3;  // a failed call may succeed when repeated; a timeout is not retried
    const auto settle = [&](HostCalls& calls, const auto& wait) {
        for (int attempt = 0; attempt < tries && calls.any() && usable(); ++attempt) {
            const Result<void> waited = wait();
            end_host_functions(calls);
            if (waited.code() == Code::timed_out) return;
        }
        end_host_functions(calls);
    };
    for (const std::shared_ptr<StreamState>& stream : live_streams()) {
        settle(stream->host_calls, [&] { return stream->wait_for_all(Wait{}); });
    }
    settle(orphaned_calls_, [&] { return wait_for_ended_streams(Wait{}); });
}

void DeviceState::end_later(HostCalls& calls) {
    if (calls.any()) orphaned_calls_.take(calls);  // nothing is destroyed here, where a buffer's lock may be held
}

DeviceState::OthersCaptures DeviceState::external_captures() {
    OthersCaptures found = OthersCaptures::none;
    for (const std::shared_ptr<StreamState>& stream : live_streams()) {
        if (!stream->external) continue;
        Wait wait = Wait::never();
        const Result<StreamLock> lock = stream->lock_within(wait, "asking for captures");
        if (!lock) {  // another thread is in the driver with this stream
            found = OthersCaptures::busy;
            continue;
        }
        if (stream->handle == platform::StreamHandle::none) continue;
        // One that was lost is open, too: until its owner ends it, the driver refuses to wait for the whole context.
        if (const Result<std::uint64_t> capture = stream->foreign_capture(); !capture || *capture != 0) {
            return OthersCaptures::open;
        }
    }
    return found;
}

Result<void> DeviceState::wait_for_others(const Deadline& deadline) {
    if (synchronous || books->captures.any() || external_captures() != OthersCaptures::none) return {};
    bool in_use = false;
    if (const platform::Status status = execution.context_in_use(in_use); !status.ok()) {
        return failure(status, "asking whether a device's context is in use");
    }
    if (!in_use) return {};
    constexpr rules::DriverUse use = rules::DriverUse::synchronize_device;
    std::optional<CallInFlight> call = services.enter(use);
    if (!call) return services.refusal(use, "a synchronisation");
    FenceEvent* event = nullptr;
    if (const platform::Status status = take_event(event); !status.ok()) return failure(status, "creating an event");
    const Wait wait = deadline.left();
    platform::Status status = execution.record_context(event->handle);
    const bool recorded = status.ok();
    if (!recorded && status.code == Code::unsupported) {
        status = wait.refuse ? platform::Status{} : execution.synchronize_context();
    }
    call->leave();  // a service that starts now comes after the event
    if (recorded) {
        const ObservedSpan span(observer(), Span::wait, "work of other code", [&] { return observed(); });
        status = poll_event(*this, event->handle, wait.timeout.value_or(std::chrono::nanoseconds(0)));
    }
    drop_event(event);
    // A capture that another thread began meanwhile is treated as if it had been open before.
    if (status.ok() || (status.code == Code::capture_error && status.driver_code == 0)) return {};
    if (status.code != Code::timed_out) return failure(status, "waiting for a device");
    return make_error_as<errors::other_code_still_works>(wait.refuse ? Code::not_ready : Code::timed_out);
}

bool DeviceState::all_work_ended() {
    // After a fault nothing runs any more. A driver that ended with the process does not tell what still runs (R4).
    constexpr int deinitialized = 4;  // CUDA_ERROR_DEINITIALIZED
    if (is_lost()) return lost_code() != deinitialized;
    if (unfenced_.load(std::memory_order_relaxed)) return context_gone();
    constexpr int tries = 3;  // a failed call may succeed when repeated; a timeout is not retried
    for (const FenceEvent* last : last_works_) {
        platform::Status status{Code::not_ready, 0, ""};
        for (int attempt = 0; attempt < tries && !status.ok() && status.code != Code::timed_out; ++attempt) {
            status = poll_event(*this, last->handle, config->wait_timeout);
            if (status.code == Code::device_lost) return status.driver_code != deinitialized;
        }
        if (!status.ok()) return context_gone();
    }
    return true;
}

std::shared_ptr<StreamState> DeviceState::download_stream() {
    const std::lock_guard lock(streams_mutex_);
    std::shared_ptr<StreamState> stream = download_stream_.lock();
    if (!stream) {
        stream = StreamState::make(shared_from_this(), 0);
        download_stream_ = stream;
        streams_.push_back(stream);
    }
    return stream;
}

void DeviceState::add_stream(const std::shared_ptr<StreamState>& stream) {
    const std::lock_guard lock(streams_mutex_);
    std::erase_if(streams_, [](const std::weak_ptr<StreamState>& known) { return known.expired(); });
    streams_.push_back(stream);
}

std::vector<std::shared_ptr<StreamState>> DeviceState::live_streams() {
    std::vector<std::shared_ptr<StreamState>> live;
    const std::lock_guard lock(streams_mutex_);
    for (const std::weak_ptr<StreamState>& known : streams_) {
        if (std::shared_ptr<StreamState> stream = known.lock()) live.push_back(std::move(stream));
    }
    return live;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
