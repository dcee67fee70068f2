// SPDX-License-Identifier: Apache-2.0
// Adaptors: allocators around an allocator. Each adds one thing; they compose by nesting, in any order:
//   TrackingAllocator tracked(LimitAllocator(device.allocator(MemoryKind::pinned), 64 << 20));
//   device.allocate<float>(n, tracked);
// Adaptors are handles: copies share one state, and so does a moved-from handle, so that an adaptor which was passed to
// a device can still be queried. Thread-safe. Requests for 0 bytes and empty blocks never reach them (Allocator filters
// those).
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

struct AllocationCounters {
    std::uint64_t current_bytes = 0;  // may wrap below 0 in a scope that releases memory of an outer scope
    std::uint64_t peak_bytes = 0;
    std::uint64_t total_bytes = 0;  // ever allocated
    std::uint64_t current_blocks = 0;
    std::uint64_t peak_blocks = 0;
    std::uint64_t total_blocks = 0;
    std::uint64_t failures = 0;  // allocations that failed
};

// Counts allocations and releases, in total and within nested scopes.
class ISTHMUS_API StatisticsAllocator {
public:
    explicit StatisticsAllocator(Allocator upstream);
    StatisticsAllocator(const StatisticsAllocator&) = default;
    StatisticsAllocator& operator=(const StatisticsAllocator&) = default;
    ~StatisticsAllocator() = default;
    Result<MemoryBlock> allocate(const AllocationRequest& request);
    Result<void> release(const MemoryBlock& block, Stream* after);
    MemoryKind kind() const noexcept;     // of the upstream
    AllocationCounters counters() const;  // since the innermost open scope began; without one, in total

    // Counts from zero for its lifetime; at its end the counts are added to the enclosing scope. Scopes end in
    // reverse order.
    class [[nodiscard]] ISTHMUS_API Scope {
    public:
        explicit Scope(const StatisticsAllocator& statistics);
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        ~Scope();

    private:
        std::shared_ptr<struct StatisticsState> state_;
    };

private:
    std::shared_ptr<StatisticsState> state_;
};

// Asks the upstream for at least this alignment, in bytes: device.allocate<float>(n, AlignedAllocator(
// device.allocator(MemoryKind::pinned), 4096)). AllocationRequest::alignment says which alignments are kept.
class ISTHMUS_API AlignedAllocator {
public:
    AlignedAllocator(Allocator upstream, std::size_t alignment_bytes)
        : upstream_(std::move(upstream)), alignment_(alignment_bytes) {}
    Result<MemoryBlock> allocate(const AllocationRequest& request) const;
    Result<void> release(const MemoryBlock& block, Stream* after) const { return upstream_.release(block, after); }
    MemoryKind kind() const noexcept { return upstream_.kind(); }

private:
    Allocator upstream_;
    std::size_t alignment_;
};

// Refuses an allocation that would bring the bytes in use above the limit: Code::out_of_memory, without a call to the
// upstream.
class ISTHMUS_API LimitAllocator {
public:
    LimitAllocator(Allocator upstream, std::uint64_t limit_bytes);
    LimitAllocator(const LimitAllocator&) = default;
    LimitAllocator& operator=(const LimitAllocator&) = default;
    ~LimitAllocator() = default;
    Result<MemoryBlock> allocate(const AllocationRequest& request);
    Result<void> release(const MemoryBlock& block, Stream* after);
    MemoryKind kind() const noexcept;  // of the upstream
    std::uint64_t used_bytes() const noexcept;
    std::uint64_t limit_bytes() const noexcept;

private:
    std::shared_ptr<struct LimitState> state_;
};

// Writes a line of CSV for every call: time_ns,thread,action,id,address,bytes,stream. Actions: allocate,
// allocate_failure, release, release_failure. The first line names the columns.
class ISTHMUS_API LoggingAllocator {
public:
    // Called with one line at a time, by one thread at a time; must not allocate through this allocator.
    using Sink = std::function<void(std::string_view line)>;
    LoggingAllocator(Allocator upstream, Sink sink);
    LoggingAllocator(const LoggingAllocator&) = default;
    LoggingAllocator& operator=(const LoggingAllocator&) = default;
    ~LoggingAllocator() = default;
    // Creates or empties the file; system_error where that fails. Each line is written at once; a line whose write
    // fails is lost.
    static Result<LoggingAllocator> create(Allocator upstream, const std::string& path);
    Result<MemoryBlock> allocate(const AllocationRequest& request);
    Result<void> release(const MemoryBlock& block, Stream* after);
    MemoryKind kind() const noexcept;  // of the upstream

private:
    std::shared_ptr<struct LoggingState> state_;
};

// Calls the callback when the upstream is out of memory. true: memory was freed, and the upstream is tried again.
class ISTHMUS_API FailureCallbackAllocator {
public:
    // Has to answer false eventually. May release memory, also through this allocator.
    using Callback = std::function<bool(std::size_t bytes, const Error& error)>;
    FailureCallbackAllocator(Allocator upstream, Callback callback);
    FailureCallbackAllocator(const FailureCallbackAllocator&) = default;
    FailureCallbackAllocator& operator=(const FailureCallbackAllocator&) = default;
    ~FailureCallbackAllocator() = default;
    Result<MemoryBlock> allocate(const AllocationRequest& request);
    Result<void> release(const MemoryBlock& block, Stream* after);
    MemoryKind kind() const noexcept;  // of the upstream

private:
    std::shared_ptr<struct FailureState> state_;
};

// Records every outstanding block and refuses to release any other: unknown_pointer, interior_pointer,
// already_released; the upstream is not called then.
class ISTHMUS_API TrackingAllocator {
public:
    struct Outstanding {
        MemoryBlock block;
        // From 1, in the order of allocation: the same in every run of a deterministic program.
        std::uint64_t number = 0;
    };
    explicit TrackingAllocator(Allocator upstream);
    TrackingAllocator(const TrackingAllocator&) = default;
    TrackingAllocator& operator=(const TrackingAllocator&) = default;
    ~TrackingAllocator() = default;
    Result<MemoryBlock> allocate(const AllocationRequest& request);
    Result<void> release(const MemoryBlock& block, Stream* after);
    MemoryKind kind() const noexcept;              // of the upstream
    std::vector<Outstanding> outstanding() const;  // oldest first
    std::string leak_report() const;               // one line per block; empty: no block is outstanding

private:
    std::shared_ptr<struct TrackingState> state_;
};

}  // namespace v0
}  // namespace isthmus
