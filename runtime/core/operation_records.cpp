// SPDX-License-Identifier: Apache-2.0
// Operations on streams in a capture: recorded instead of claimed.
#include "operation.hpp"

#include "core_errors.hpp"
#include "device_state.hpp"
#include "recording.hpp"
#include "short_name.hpp"
#include "stream_state.hpp"

#include <mutex>
#include <optional>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The runtime does not see the launches of a graph that other code captures: it can do nothing around a launch, and
// claims nothing.
Result<bool> Operation::record_elsewhere(Action action, void* erased, std::uint64_t capture) {
    for (std::size_t at = 0; at < entries_.size(); ++at) {
        const Entry& entry = entries_[at];
        if (Result<void> here = refuse_graph_memory(entry, capture); !here) return std::move(here).error();
        if (entry.buffer->memory->path != LaunchPath::attach && entry.buffer->memory->path != LaunchPath::stage)
            continue;
        return make_error<errors::argument_handed_over_in_foreign_capture>(who(entry.argument));
    }
    if (!makers_.empty()) return make_error<errors::unallocated_memory_in_foreign_capture>();
    for (const Entry& entry : entries_) entry.buffer->memory.exposed.store(true, std::memory_order_relaxed);
    const platform::Status status = action(erased);
    failed_in_capture_ = native_ && !status.ok();
    if (!status.ok()) return device_.failure(status, short_name(name_));
    return true;
}

// On a captured stream nothing runs: no position, no fence, no claim. What a launch of the graph will have to claim is
// recorded.
Result<bool> Operation::record(Recording& recording, Action action, void* erased) {
    if (recording.outer && closure_) return make_error<errors::host_function_in_body>();
    for (std::size_t at = 0; at < entries_.size(); ++at) {
        const Entry& entry = entries_[at];
        if (Result<void> here = refuse_graph_memory(entry, recording.id); !here) {
            return std::move(here).error();
        }
        if (entry.buffer->views.has_parts()) {
            const std::lock_guard lock(entry.buffer->views);  // a release that begins later sees the capture
            if (entry.buffer->views.released()) return refuse_released(entry);
        }
    }
    OrderChecker* const checker = device_.books->order.get();
    std::optional<OrderChecker::Attempt> ordered;
    if (checker != nullptr) {
        ordered.emplace(order_attempt());
        if (Result<void> judged = checker->judge_recorded(recording, *ordered); !judged)
            return std::move(judged).error();
    }
    RecordedOperation operation;
    operation.name = name_;
    operation.kernel = kept_kernel();
    for (std::size_t at = 0; at < entries_.size(); ++at) {
        const Entry& entry = entries_[at];
        // Memory of the graph needs no claim outside the graph.
        if (entry.buffer->memory->of_graph) continue;
        operation.uses.emplace_back(*entry.held, rules::recorded_use(entry.use, span_of(at)), entry.argument);
        operation.uses.back().range = range_of(at);
    }
    operation.closure = std::move(closure_);
    operation.code = std::move(code_);
    if (const platform::Status status = action(erased); !status.ok()) {
        // Some of the driver calls may have become nodes, and nothing can be removed from an open capture: the memory
        // that they use is kept. The operation has no place in the order.
        operation.failed = true;
        operation.stream_id = stream_.id;
        operation.device = device_.index;
        recording.operations.push_back(std::move(operation));
        failed_in_capture_ = native_;
        if (native_) recording.failed_work = name_;
        return device_.failure(status, short_name(name_));
    }
    if (checker != nullptr) checker->count(*ordered);
    unordered_ = ordered ? ordered->violations : 0;
    if (asks_for_node_) {  // without the node, only its arguments cannot be changed
        const platform::Status told = device_.driver->captures()->last_node(stream_.handle, operation.node);
        if (!told.ok()) (void)device_.failure(told, "asking which node a launch became");  // latches a sticky error
    }
    recorded_at_ = recording.add(stream_, std::move(operation));
    return true;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
