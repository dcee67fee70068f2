// SPDX-License-Identifier: Apache-2.0
// Operation: one asynchronous operation of a GPU stream and the buffers that it uses, from the claim to the driver
// call.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include "buffer_state.hpp"
#include "few.hpp"
#include "order_check.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;
struct FenceEvent;
struct HeldCode;
struct Recording;
struct StreamState;

// Steps: order uploads that other streams queued → lock the stream → departure fence → claim every buffer (refuse open
// views, copy staged buffers, attach managed ones) → driver call. If a step fails, the sides of staged buffers are
// restored.
class Operation {
public:
    // `name` has static storage and is used in messages; `kernel` names the arguments, or is nullptr.
    Operation(StreamState& stream, const char* name, const KernelInfo* kernel);

    // A reference to `held` lives as long as the operation.
    void uses(const std::shared_ptr<BufferState>& held, ArgumentUse use, std::uint32_t argument) {
        BufferState& buffer = *held;
        entries_.push_back({&buffer, use, argument, &held});
        if (buffer.memory->host != nullptr) add_viewable(buffer);
        if (buffer.ordered()) special_ = true;
    }

    // The same for these bytes of the buffer.
    void uses_part(const std::shared_ptr<BufferState>& buffer, ArgumentUse use, std::uint32_t argument,
                   const rules::ByteSpan& span) {
        uses(buffer, use, argument);
        if (!span.whole()) only({.offset = span.begin, .width = span.end - span.begin}, span);
    }
    // Restricts the buffer named last to this range; otherwise all of it is touched. For the order checker (OrderBook),
    // and where parts of the buffer are in use.
    void only(const rules::ByteRange& range) { only(range, touched(*entries_.back().buffer, range)); }
    // Something besides buffers that a graph has to hold if this operation is recorded.
    void keeps(std::shared_ptr<void> closure) { closure_ = std::move(closure); }
    // Code of modules that a graph has to hold if this operation is recorded.
    void keeps_code(std::shared_ptr<HeldCode> code) { code_.push_back(std::move(code)); }
    void keeps_code(const std::vector<std::shared_ptr<HeldCode>>& code) { code_ = code; }
    // A use by an operation within this one. If there are any, the order checker looks at them, and not at what uses()
    // said of all of them together.
    void within(const OrderChecker::Use& use) { within_.push_back(use); }
    // Tells the order checker that the driver itself orders the operation behind this one of another stream, which the
    // caller keeps alive.
    void driver_orders_behind(StreamState& other, std::uint64_t position) { behind_.emplace_back(&other, position); }

    // The action is work of other code. If it fails, it may have given the stream some of its work before, which the
    // buffers wait for; a capture then makes no graph. `kernel` need not outlive issue().
    void runs_native() noexcept { native_ = true; }
    // It begins this native scope, whose own marks do not refuse it.
    void of_scope(const void* scope) noexcept { scope_ = scope; }

    // Calls action(), a platform::Status(), with the stream's lock held and its handle open. Returns the position.
    template <class Action>
    Result<std::uint64_t> issue(Action action) {
        return issue_erased([](void* erased) { return (*static_cast<Action*>(erased))(); }, &action);
    }
    std::uint64_t staged_bytes() const noexcept { return staged_bytes_; }
    // If the stream is captured, the driver is asked which node the operation becomes.
    void ask_for_node() noexcept { asks_for_node_ = true; }
    std::uint32_t recorded_at() const noexcept { return recorded_at_; }     // its index in the recording, after issue()
    std::uint32_t unordered() const noexcept { return unordered_; }         // for LaunchReport::unordered_arguments
    bool failed_in_capture() const noexcept { return failed_in_capture_; }  // work of other code did

private:
    struct Entry {
        BufferState* buffer;
        ArgumentUse use;
        std::uint32_t argument;
        const std::shared_ptr<BufferState>* held;  // the caller's reference, for a graph
    };
    struct Upload {
        BufferState* buffer;
        std::shared_ptr<StreamState> stream;
        std::uint64_t position;
        FenceEvent* event;
    };
    struct Sides {
        BufferState* buffer;
        BufferSides::Claim before;
    };
    using Action = platform::Status (*)(void*);

    void add_viewable(BufferState& buffer);
    void only(const rules::ByteRange& range, const rules::ByteSpan& span);
    rules::ByteSpan span_of(std::size_t entry) const noexcept;
    Result<std::uint64_t> issue_erased(Action action, void* erased);
    Result<bool> attempt(Action action, void* erased);
    const KernelInfo* kept_kernel() const;
    OrderChecker::Attempt order_attempt();
    rules::ByteRange range_of(std::size_t entry) const noexcept;
    Result<void> order_uploads();
    Result<void> order_first_use(BufferState& buffer);
    Result<void> refuse_views() const;
    Result<void> refuse_views(std::size_t entry) const;
    Result<bool> claim();
    Result<bool> record(Recording& recording, Action action, void* erased);
    Result<bool> record_elsewhere(Action action, void* erased, std::uint64_t capture);
    Result<void> refuse_graph_memory(const Entry& entry, std::uint64_t recording) const;
    Error refuse_released(const Entry& entry) const;
    Result<bool> claim_staged(BufferState& buffer, std::unique_lock<OpenViews>& held);
    ArgumentUse use_of_all(const BufferState& staged) const noexcept;
    Result<bool> wait_for_upload(const BufferState& buffer);
    Result<bool> claim_attached(BufferState& buffer, std::unique_lock<OpenViews>& held);
    void prefetch(BufferState& buffer, ArgumentUse use, const rules::ByteSpan& span, std::unique_lock<OpenViews>& held);
    void restore_sides();
    void drop_waits();
    Words who(std::uint32_t argument) const;

    StreamState& stream_;
    DeviceState& device_;
    const char* name_;  // outlives the operation once attempt() has begun
    const KernelInfo* const kernel_;
    // Room for the operations of most programs: more need the heap.
    static constexpr std::size_t usual = 64;
    static constexpr std::size_t usual_parts = 16;
    Few<Entry, usual> entries_;
    Few<BufferState*, usual> viewable_;  // buffers that the host may view
    bool special_ = false;               // some buffer is staged, attached, or was allocated in the order of a stream
    Few<Upload, usual_parts> waits_;
    Few<BufferState::Making, 4> makers_;  // streams that allocated what this operation uses first
    Few<Sides, usual_parts> sides_;
    std::vector<std::pair<std::size_t, rules::ByteRange>> ranges_;     // for the order checker
    Few<std::pair<std::size_t, rules::ByteSpan>, usual_parts> spans_;  // of entries that are parts
    std::uint64_t parts_key_ = 0;                                      // the key of all parts: StreamState::tail_parts
    std::vector<OrderChecker::Use> within_;
    Few<std::pair<StreamState*, std::uint64_t>, 4> behind_;
    std::uint64_t staged_bytes_ = 0;
    std::uint32_t unordered_ = 0;
    std::uint64_t position_ = 0;
    bool touched_ = false;  // the uses of some buffer already name the next position
    bool asks_for_node_ = false;
    bool native_ = false;
    bool failed_in_capture_ = false;
    const void* scope_ = nullptr;
    std::uint32_t recorded_at_ = 0;
    std::shared_ptr<void> closure_;
    std::vector<std::shared_ptr<HeldCode>> code_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
