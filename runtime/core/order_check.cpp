// SPDX-License-Identifier: Apache-2.0
// OrderChecker: records streams and buffers in the order book, and composes the texts of its findings.
#include "order_check.hpp"

#include "buffer_state.hpp"
#include "composed.hpp"
#include "core_errors.hpp"
#include "device_state.hpp"
#include "kernel_argument.hpp"
#include "recording.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <functional>
#include <optional>

namespace isthmus {
inline namespace v0 {
namespace detail {

namespace {

// Made by the first use that is checked. Expects the checker's lock.
OrderHistory& history_of(BufferState& buffer) {
    std::unique_ptr<OrderHistory>& order = buffer.make_extras().order;
    if (!order) order = std::make_unique<OrderHistory>();
    return *order;
}

}  // namespace

OrderChecker::OrderChecker(OrderCheck mode, std::shared_ptr<const RuntimeConfig> config)
    : mode_(mode), config_(std::move(config)) {}

void OrderChecker::know(StreamState& stream) {
    book_.began(stream.id);
    streams_.emplace(stream.id, &stream);
}

OrderUse OrderChecker::entered(const Attempt& attempt, const Use& use, std::uint64_t position) {
    OrderUse entry;
    entry.stream = attempt.stream.id;
    entry.position = position;
    entry.range = use.range;
    entry.writes = writes(use.use);
    entry.concurrent = use.use == ArgumentUse::concurrent;
    entry.name = use.name != nullptr ? use.name : attempt.name;
    entry.kernel = use.name != nullptr ? use.kernel : attempt.kernel;
    entry.argument = use.argument;
    return entry;
}

Result<void> OrderChecker::begin(Attempt& attempt) {
    StreamState& stream = attempt.stream;
    // CUDA calls of other code may order its own stream, which the runtime cannot see: uses there are not judged.
    if (stream.external) attempt.uses.clear();
    std::optional<Error> refused;
    const std::lock_guard lock(mutex_);
    know(stream);
    std::erase_if(attempt.uses, [](const Use& entry) { return entry.range.width == 0; });
    for (const Use& entry : attempt.uses) {
        OrderHistory& history = history_of(*entry.buffer);
        const OrderUse use = entered(attempt, entry, stream.issued + 1);
        bool unordered = false;
        book_.conflicts(history, use, attempt.behind, [&](const OrderUse& earlier) {
            unordered = true;
            found(attempt, earlier, use, refused);
        });
        attempt.violations += unordered;
    }
    if (refused) {
        violations_.fetch_add(attempt.violations, std::memory_order_relaxed);
        return *std::move(refused);
    }
    for (const Use& entry : attempt.uses) {
        OrderUse use = entered(attempt, entry, stream.issued + 1);
        use.pending = true;
        OrderHistory& history = history_of(*entry.buffer);
        // A graph may do the same to the same bytes many times: one entry is enough.
        const bool known = std::any_of(history.uses.begin(), history.uses.end(), [&](const OrderUse& other) {
            return other.pending && other.stream == stream.id && conflicts_as_much(other, use) &&
                   rules::contains(other.range, use.range);
        });
        if (!known) book_.add(history, use);
    }
    return {};
}

void OrderChecker::end(Attempt& attempt, std::uint64_t position) {
    {
        const std::lock_guard lock(mutex_);
        for (const Use& entry : attempt.uses) {
            OrderHistory& history = history_of(*entry.buffer);
            std::vector<OrderUse> ours;
            std::erase_if(history.uses, [&](const OrderUse& use) {
                const bool pending = use.pending && use.stream == attempt.stream.id;
                if (pending) ours.push_back(use);
                return pending;
            });
            if (position == 0) continue;
            for (OrderUse& use : ours) {
                use.pending = false;
                use.position = position;
                book_.add(history, use);
            }
        }
    }
    if (position != 0) count(attempt);
}

void OrderChecker::count(const Attempt& attempt) {
    violations_.fetch_add(attempt.violations, std::memory_order_relaxed);
    for (const std::string& line : attempt.lines) config_->say(Severity::warning, line);
}

Result<void> OrderChecker::judge_recorded(Recording& recording, Attempt& attempt) {
    const CaptureBranch* const branch = recording.branch_of(attempt.stream.id);
    if (branch == nullptr || attempt.stream.external) return {};
    const std::vector<bool> before = followed_by(recording.operations, branch->tail);
    std::optional<Error> refused;
    const std::lock_guard lock(mutex_);
    know(attempt.stream);
    for (const Use& entry : attempt.uses) {
        const OrderUse use = entered(attempt, entry, 0);
        bool unordered = false;
        for (std::size_t at = 0; at < before.size(); ++at) {
            if (before[at]) continue;
            const RecordedOperation& operation = recording.operations[at];
            if (operation.failed) continue;
            for (const RecordedUse& other : operation.uses) {
                if (other.buffer.get() != entry.buffer) continue;
                const OrderUse earlier{operation.stream_id,
                                       0,
                                       other.range,
                                       writes(other.use),
                                       other.use == ArgumentUse::concurrent,
                                       false,
                                       operation.name,
                                       operation.kernel,
                                       other.argument};
                if (!conflict_without_order(earlier, use)) continue;
                if (!rules::share_a_byte(other.range, entry.range)) continue;
                unordered = true;
                found(attempt, earlier, use, refused);
            }
        }
        attempt.violations += unordered;
    }
    if (!refused) return {};
    violations_.fetch_add(attempt.violations, std::memory_order_relaxed);
    return *std::move(refused);
}

// OrderCheck::refuse: the first finding is the error. OrderCheck::report: each pair is reported once.
void OrderChecker::found(Attempt& attempt, const OrderUse& earlier, const OrderUse& later,
                         std::optional<Error>& refused) {
    if (mode_ == OrderCheck::refuse) {
        if (!refused) refused = refusal(earlier, later, attempt.behind);
    } else if (first_time(earlier, later)) {
        const Error told = refusal(earlier, later, attempt.behind);
        attempt.lines.push_back(composed("not ordered: {}. Try: {}", told.message(), told.remedy()));
    }
}

void OrderChecker::waits(StreamState& later, StreamState& earlier, std::uint64_t position) {
    if (&later == &earlier) return;
    const std::lock_guard lock(mutex_);
    know(later);
    know(earlier);
    book_.wait(later.id, later.issued + 1, earlier.id, position);
}

void OrderChecker::shown(StreamState& stream, std::uint64_t position) {
    const std::lock_guard lock(mutex_);
    know(stream);
    book_.shown(stream.id, position);
}

void OrderChecker::waits_for_others(StreamState& stream) {
    const std::lock_guard lock(mutex_);
    know(stream);
    book_.wait_for_others(stream.id, stream.issued + 1);
}

void OrderChecker::seen_others() {
    const std::lock_guard lock(mutex_);
    book_.seen_others();
}

void OrderChecker::allocated(BufferState& buffer, StreamState& stream, std::uint64_t position) {
    if (stream.external) return;  // as in begin()
    const std::lock_guard lock(mutex_);
    know(stream);
    OrderUse use;
    use.stream = stream.id;
    use.position = position;
    use.writes = true;
    use.name = "its allocation";
    book_.add(history_of(buffer), use);
}

OrderClock OrderChecker::before(StreamState& stream, std::uint64_t position) {
    const std::lock_guard lock(mutex_);
    know(stream);
    return book_.before(stream.id, position);
}

void OrderChecker::seen(const StreamState& stream, std::uint64_t position) {
    seen(stream.id, position);
}

void OrderChecker::seen(std::uint64_t stream_id, std::uint64_t position) {
    const std::lock_guard lock(mutex_);
    book_.seen(stream_id, position);
}

void OrderChecker::ended(StreamState& stream) {
    const std::lock_guard lock(mutex_);
    book_.ended(stream.id, stream.issued, stream.device->index);
    streams_.erase(stream.id);
}

OrderClock OrderChecker::ended_on(std::size_t device) {
    const std::lock_guard lock(mutex_);
    return book_.ended_on(device);
}

void OrderChecker::seen_ended_streams(std::size_t device, const OrderClock& ended) {
    const std::lock_guard lock(mutex_);
    book_.seen_ended(device, ended);
}

std::string OrderChecker::stream_text(std::uint64_t stream) const {
    const auto found = streams_.find(stream);
    const std::string number = composed("stream {}", stream);
    return found == streams_.end() ? number : composed("{} of {}", number, named(*found->second->device));
}

std::string OrderChecker::text(const OrderUse& use) const {
    const Words who = use.kernel != nullptr ? argument_text(*use.kernel, use.argument) : Words().append(use.name);
    const std::string where = use.position == 0 ? " of the capture" : composed(" (position {})", use.position);
    const char* const deed = use.concurrent ? " uses concurrently" : use.writes ? " writes" : " reads";
    return composed("{}{} on {}{}", who, deed, stream_text(use.stream), where);
}

Error OrderChecker::refusal(const OrderUse& earlier, const OrderUse& later, const OrderClock& besides) const {
    const std::uint64_t known = later.position == 0 ? 0 : book_.known(later.stream, earlier.stream, besides);
    const std::string later_use = text(later);
    const std::string earlier_use = text(earlier);
    if (known == 0) return make_error<errors::uses_without_order>(later_use, earlier_use, later.stream, earlier.stream);
    return make_error<errors::uses_ordered_too_early>(later_use, earlier_use, known, later.stream, earlier.stream);
}

bool OrderChecker::first_time(const OrderUse& earlier, const OrderUse& later) {
    const auto mix = [](std::uint64_t seed, std::uint64_t value) {
        return (seed ^ value) * 0x9E3779B97F4A7C15u + (seed >> 29);
    };
    const auto address = [](const OrderUse& use) {
        return static_cast<std::uint64_t>(use.kernel != nullptr ? reinterpret_cast<std::uintptr_t>(use.kernel)
                                                                : reinterpret_cast<std::uintptr_t>(use.name));
    };
    std::uint64_t source = mix(mix(mix(address(earlier), earlier.argument), earlier.stream), later.stream);
    source = mix(source, static_cast<std::uint64_t>(earlier.writes) * 2 + static_cast<std::uint64_t>(later.writes));
    const void* const kernel = later.kernel != nullptr ? static_cast<const void*>(later.kernel) : later.name;
    return told_.ask({kernel, later.argument, source, 0}) == WarnOnce::Answer::first;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
