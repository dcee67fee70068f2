// SPDX-License-Identifier: Apache-2.0
// Statistics, limit and failure callback around an allocator.
#include <isthmus/allocator_adaptors.hpp>

#include "memory_errors.hpp"
#include "provenance_errors.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {

struct StatisticsState {
    Allocator upstream;
    std::mutex mutex;
    std::vector<AllocationCounters> scopes{1};  // innermost last
};

StatisticsAllocator::StatisticsAllocator(Allocator upstream) : state_(std::make_shared<StatisticsState>()) {
    state_->upstream = std::move(upstream);
}

Result<MemoryBlock> StatisticsAllocator::allocate(const AllocationRequest& request) {
    Result<MemoryBlock> made = state_->upstream.allocate(request);
    const std::lock_guard lock(state_->mutex);
    AllocationCounters& now = state_->scopes.back();
    if (!made) {
        ++now.failures;
        return made;
    }
    now.current_bytes += made->bytes;  // a release subtracts the same; an allocator may round up
    now.total_bytes += made->bytes;
    now.current_blocks += 1;
    now.total_blocks += 1;
    // A scope with more releases than allocations is below zero, which is no peak.
    now.peak_bytes = std::max<std::uint64_t>(now.peak_bytes,
                                             std::max<std::int64_t>(0, static_cast<std::int64_t>(now.current_bytes)));
    now.peak_blocks = std::max<std::uint64_t>(now.peak_blocks,
                                              std::max<std::int64_t>(0, static_cast<std::int64_t>(now.current_blocks)));
    return made;
}

Result<void> StatisticsAllocator::release(const MemoryBlock& block, Stream* after) {
    Result<void> done = state_->upstream.release(block, after);
    if (!done) return done;
    const std::lock_guard lock(state_->mutex);
    AllocationCounters& now = state_->scopes.back();
    now.current_bytes -= block.bytes;
    now.current_blocks -= 1;
    return done;
}

AllocationCounters StatisticsAllocator::counters() const {
    const std::lock_guard lock(state_->mutex);
    return state_->scopes.back();
}

StatisticsAllocator::Scope::Scope(const StatisticsAllocator& statistics) : state_(statistics.state_) {
    const std::lock_guard lock(state_->mutex);
    state_->scopes.emplace_back();
}

StatisticsAllocator::Scope::~Scope() {
    const std::lock_guard lock(state_->mutex);
    const AllocationCounters inner = state_->scopes.back();
    state_->scopes.pop_back();
    AllocationCounters& outer = state_->scopes.back();
    outer.peak_bytes = std::max(outer.peak_bytes, outer.current_bytes + inner.peak_bytes);
    outer.peak_blocks = std::max(outer.peak_blocks, outer.current_blocks + inner.peak_blocks);
    outer.current_bytes += inner.current_bytes;
    outer.current_blocks += inner.current_blocks;
    outer.total_bytes += inner.total_bytes;
    outer.total_blocks += inner.total_blocks;
    outer.failures += inner.failures;
}

Result<MemoryBlock> AlignedAllocator::allocate(const AllocationRequest& request) const {
    if (!std::has_single_bit(alignment_)) return make_error<errors::allocation_alignment>(alignment_);
    AllocationRequest aligned = request;
    aligned.alignment = std::max(aligned.alignment, alignment_);
    return upstream_.allocate(aligned);
}

struct LimitState {
    Allocator upstream;
    std::uint64_t limit = 0;
    std::atomic<std::uint64_t> used{0};
};

LimitAllocator::LimitAllocator(Allocator upstream, std::uint64_t limit_bytes) : state_(std::make_shared<LimitState>()) {
    state_->upstream = std::move(upstream);
    state_->limit = limit_bytes;
}

Result<MemoryBlock> LimitAllocator::allocate(const AllocationRequest& request) {
    LimitState& state = *state_;
    // Reserved before the upstream call, so that concurrent threads cannot pass the limit together.
    std::uint64_t used = state.used.load(std::memory_order_relaxed);
    do {
        if (request.bytes > state.limit - std::min(used, state.limit)) {
            return make_error<errors::allocator_limit_reached>(request.bytes, used, state.limit);
        }
    } while (!state.used.compare_exchange_weak(used, used + request.bytes, std::memory_order_relaxed));
    Result<MemoryBlock> made = state.upstream.allocate(request);
    // Count the block's size, which the upstream may have rounded up: a release subtracts that.
    const std::uint64_t counts = made ? made->bytes : 0;
    state.used.fetch_add(counts - request.bytes, std::memory_order_relaxed);
    return made;
}

Result<void> LimitAllocator::release(const MemoryBlock& block, Stream* after) {
    Result<void> done = state_->upstream.release(block, after);
    if (done) state_->used.fetch_sub(block.bytes, std::memory_order_relaxed);
    return done;
}

std::uint64_t LimitAllocator::used_bytes() const noexcept {
    return state_->used.load(std::memory_order_relaxed);
}
std::uint64_t LimitAllocator::limit_bytes() const noexcept {
    return state_->limit;
}

struct FailureState {
    Allocator upstream;
    FailureCallbackAllocator::Callback callback;
};

FailureCallbackAllocator::FailureCallbackAllocator(Allocator upstream, Callback callback)
    : state_(std::make_shared<FailureState>(FailureState{std::move(upstream), std::move(callback)})) {}

Result<MemoryBlock> FailureCallbackAllocator::allocate(const AllocationRequest& request) {
    for (;;) {
        Result<MemoryBlock> made = state_->upstream.allocate(request);
        if (made || made.code() != Code::out_of_memory || !state_->callback) return made;
        if (!state_->callback(request.bytes, made.error())) return made;
    }
}

Result<void> FailureCallbackAllocator::release(const MemoryBlock& block, Stream* after) {
    return state_->upstream.release(block, after);
}

MemoryKind StatisticsAllocator::kind() const noexcept {
    return state_->upstream.kind();
}
MemoryKind LimitAllocator::kind() const noexcept {
    return state_->upstream.kind();
}
MemoryKind FailureCallbackAllocator::kind() const noexcept {
    return state_->upstream.kind();
}

}  // namespace v0
}  // namespace isthmus
