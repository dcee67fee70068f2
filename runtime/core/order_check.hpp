// SPDX-License-Identifier: Apache-2.0
// OrderChecker: the order checker of one runtime. It tracks what its streams wait for, and finds uses of its buffers
// that lack an order.
#pragma once

#include <isthmus/order_check.hpp>
#include <isthmus/result.hpp>

#include "order_book.hpp"
#include "warn_once.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct BufferState;
struct Recording;
struct RuntimeConfig;
struct StreamState;

// Thread-safe. Its mutex is the innermost: taken with the locks of a stream, a buffer or an event held, never the
// reverse. Stored in Books; nullptr where nothing is checked.
class OrderChecker {
public:
    OrderChecker(OrderCheck mode, std::shared_ptr<const RuntimeConfig> config);

    struct Use {
        BufferState* buffer;
        ArgumentUse use;
        std::uint32_t argument;
        rules::ByteRange range;
        // For an operation within this one: its name for messages; nullptr: the attempt itself.
        const char* name = nullptr;
        const KernelInfo* kernel = nullptr;
    };
    // An operation that is about to be given to the driver, at the position behind `stream.issued`.
    struct Attempt {
        StreamState& stream;
        const char* name;
        const KernelInfo* kernel;
        std::vector<Use> uses{};
        OrderClock behind{};               // what it will be made to wait for in addition
        std::uint32_t violations = 0;      // found by begin()
        std::vector<std::string> lines{};  // to be logged once it has happened
    };
    // The next three functions expect the stream's lock. begin() enters the uses, so that other threads find them, and
    // refuses in OrderCheck::refuse. end() keeps them at the operation's final position, or removes them if it did not
    // happen (0): what precedes it (a return of managed memory, an upload) takes positions, too.
    Result<void> begin(Attempt& attempt);
    void end(Attempt& attempt, std::uint64_t position);
    // As begin(), for an operation that a captured stream records: finds branches of the capture that were not joined
    // in between. Expects the recording's lock. The capture enters the uses itself, and count() follows.
    Result<void> judge_recorded(Recording& recording, Attempt& attempt);
    void count(const Attempt& attempt);
    // Later work of `later` comes behind this operation of `earlier`.
    void waits(StreamState& later, StreamState& earlier, std::uint64_t position);
    // Other processes may see the operation complete, through a shared event.
    void shown(StreamState& stream, std::uint64_t position);
    // Later work of the stream comes behind work of another process, and so perhaps behind all that was shown.
    // seen_others(): the host saw such work complete.
    void waits_for_others(StreamState& stream);
    void seen_others();
    // The memory exists once the stream has reached the position.
    void allocated(BufferState& buffer, StreamState& stream, std::uint64_t position);
    // All that comes before an operation, for Attempt::behind.
    OrderClock before(StreamState& stream, std::uint64_t position);

    // The host saw the operation complete. Called before any other thread can see that.
    void seen(const StreamState& stream, std::uint64_t position);
    void seen(std::uint64_t stream_id, std::uint64_t position);  // no driver call: also called in host functions
    void ended(StreamState& stream);                             // called by its destructor
    // What the host knows once it has waited for the streams of a device that have ended so far. Call it before looking
    // at what is waited for.
    OrderClock ended_on(std::size_t device);
    void seen_ended_streams(std::size_t device, const OrderClock& ended);

    std::uint64_t violations() const noexcept { return violations_.load(std::memory_order_relaxed); }

private:
    void know(StreamState& stream);
    void found(Attempt& attempt, const OrderUse& earlier, const OrderUse& later, std::optional<Error>& refused);
    std::string text(const OrderUse& use) const;
    std::string stream_text(std::uint64_t stream) const;
    static OrderUse entered(const Attempt& attempt, const Use& use, std::uint64_t position);
    Error refusal(const OrderUse& earlier, const OrderUse& later, const OrderClock& besides) const;
    bool first_time(const OrderUse& earlier, const OrderUse& later);

    const OrderCheck mode_;
    const std::shared_ptr<const RuntimeConfig> config_;
    std::atomic<std::uint64_t> violations_{0};
    std::mutex mutex_;  // guards what follows
    OrderBook book_;
    std::unordered_map<std::uint64_t, const StreamState*> streams_;  // live streams, for messages
    WarnOnce told_;
};

// One attempt at an operation; its destructor withdraws it unless it happened.
class OrderedAttempt {
public:
    OrderedAttempt() = default;
    OrderedAttempt(const OrderedAttempt&) = delete;
    OrderedAttempt& operator=(const OrderedAttempt&) = delete;
    ~OrderedAttempt() {
        if (checker_ != nullptr) checker_->end(*attempt_, position_);
    }
    Result<void> begin(OrderChecker& checker, OrderChecker::Attempt attempt) {
        attempt_.emplace(std::move(attempt));
        Result<void> judged = checker.begin(*attempt_);
        if (judged) checker_ = &checker;
        return judged;
    }
    // Returns the value of LaunchReport::unordered_arguments.
    std::uint32_t happened(std::uint64_t position) noexcept {
        position_ = position;
        return attempt_ ? attempt_->violations : 0;
    }

private:
    OrderChecker* checker_ = nullptr;  // set once it has begun
    std::optional<OrderChecker::Attempt> attempt_;
    std::uint64_t position_ = 0;  // 0: it did not happen
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
