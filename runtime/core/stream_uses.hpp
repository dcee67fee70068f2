// SPDX-License-Identifier: Apache-2.0
// StreamUses: which streams use a buffer, and up to which of their operations. FirstUse: the same for one stream,
// without a lock.
#pragma once

#include "few.hpp"
#include "part_book.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct StreamState;

// The first stream that uses a buffer; its launches store their position without a lock. The place is that stream's as
// long as it may be given work: if passed on, a late store could be taken for another stream's position.
// Two sorts: memory that the host can never view, where is() answers; and memory that it may view and that the stream
// uses in place, where is_again() does. There a view that opens at the same time has to see the position, or the launch
// the view: see claim_in_place().
class FirstUse {
public:
    bool is(const StreamState& stream) const noexcept {
        return stream_.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(&stream);
    }
    bool is_again(const StreamState& stream, bool writes) const noexcept {
        return stream_.load(std::memory_order_relaxed) ==
               (reinterpret_cast<std::uintptr_t>(&stream) | (writes ? viewable_write : viewable_read));
    }
    StreamState* stream() const noexcept {  // nullptr: none so far
        return reinterpret_cast<StreamState*>(stream_.load(std::memory_order_relaxed) & ~marks);
    }
    bool viewable() const noexcept {
        return (stream_.load(std::memory_order_relaxed) & (viewable_read | viewable_write)) != 0;
    }
    // What the launches that position() counts do.
    ArgumentUse use() const noexcept {
        return (stream_.load(std::memory_order_relaxed) & viewable_read) != 0 ? ArgumentUse::read : ArgumentUse::write;
    }
    std::uint64_t position() const noexcept { return position_.load(std::memory_order_relaxed); }
    // Expects is(stream) or is_again(), and that stream's lock.
    void raise(std::uint64_t position) noexcept { position_.store(position, std::memory_order_relaxed); }
    // Does nothing if there is a first stream already. Expects the buffer's lock.
    void begin(StreamState& stream, std::uint64_t position) noexcept {
        if (this->stream() != nullptr) return;
        position_.store(position, std::memory_order_relaxed);
        const std::uintptr_t held = stream_.load(std::memory_order_relaxed) & held_back;
        stream_.store(reinterpret_cast<std::uintptr_t>(&stream) | held, std::memory_order_release);
    }
    // The same for memory that the host may view; the position before must have been entered elsewhere. Expects the
    // stream's lock, too.
    void begin_viewable(StreamState& stream, std::uint64_t position, bool writes) noexcept {
        if (StreamState* const first = this->stream(); first != nullptr && first != &stream) return;
        position_.store(position, std::memory_order_relaxed);
        const std::uintptr_t held = stream_.load(std::memory_order_relaxed) & held_back;
        stream_.store(reinterpret_cast<std::uintptr_t>(&stream) | held | (writes ? viewable_write : viewable_read),
                      std::memory_order_release);
    }
    // The stream is given no more work, or memory that the host may view gives it up. Expects the buffer's lock; in the
    // second case the stream's, too: a thread that wraps the stream again may be about to store a position.
    void end() noexcept {
        stream_.store(stream_.load(std::memory_order_relaxed) & held_back, std::memory_order_release);
    }
    // While a native scope is open, is() answers no for every stream, so that launches take the lock and find the
    // scope. Expects the buffer's lock.
    void hold_back(bool held) noexcept {
        const std::uintptr_t named = stream_.load(std::memory_order_relaxed) & ~held_back;
        stream_.store(named | (held ? held_back : 0), std::memory_order_release);
    }

private:
    // In stream_, beside the address.
    static constexpr std::uintptr_t held_back = 1;
    static constexpr std::uintptr_t viewable_read = 2;
    static constexpr std::uintptr_t viewable_write = 4;
    static constexpr std::uintptr_t marks = held_back | viewable_read | viewable_write;
    std::atomic<std::uintptr_t> stream_{0};
    std::atomic<std::uint64_t> position_{0};
};

struct StreamUse : LastUse {
    std::shared_ptr<StreamState> stream;
};

// Expects the buffer's lock unless stated otherwise. One entry per stream; StreamState::standing counts the entries of
// a stream in all buffers.
class StreamUses {
public:
    using Uses = Few<StreamUse, 1>;  // one stream needs no memory from the heap

    StreamUses() = default;
    StreamUses(const StreamUses&) = delete;
    StreamUses& operator=(const StreamUses&) = delete;

    const StreamUse* begin() const noexcept { return uses_.begin(); }
    const StreamUse* end() const noexcept { return uses_.end(); }
    std::size_t size() const noexcept { return uses_.size(); }  // streams

    // The stream's use of the buffer; nullptr: none so far.
    LastUse* find(const StreamState& stream) noexcept {
        const auto use = std::find_if(uses_.begin(), uses_.end(),
                                      [&](const StreamUse& known) { return known.stream.get() == &stream; });
        return use != uses_.end() ? use : nullptr;
    }
    LastUse& add(StreamState& stream);
    // A reference to the stream; nullptr: it has no entry.
    std::shared_ptr<StreamState> held(const StreamState* stream) const noexcept {
        for (const StreamUse& use : uses_) {
            if (use.stream.get() == stream) return use.stream;
        }
        return nullptr;
    }
    // Removes streams that only buffers hold and whose work here has ended: streams may come and go while the buffer
    // stays. A fence is behind their last use, so that their tail does not name the buffer. Returns them, so that they
    // end where the caller holds no lock of theirs. `named`: streams that the buffer names elsewhere, which stay.
    std::vector<std::shared_ptr<StreamState>> forget_ended(const std::array<const StreamState*, 3>& named);
    // Called as the buffer ends: returns the uses, which no longer count, and forgets the order of its allocation.
    Uses take_all() noexcept;

    // The running uses that may not run beside a host view of this use. `narrow(use)`: the part of a use that is looked
    // at.
    using Running = Few<StreamUse, 4>;
    template <class Narrow>
    Running running(ArgumentUse host_use, Narrow narrow) const {
        Running found;
        for (const StreamUse& use : uses_) {
            if (ended(use, use.before(host_use))) continue;
            StreamUse waited{narrow(use), use.stream};
            if (!ended(waited, waited.before(host_use))) found.push_back(std::move(waited));
        }
        return found;
    }
    bool all_ended() const noexcept {
        return std::all_of(uses_.begin(), uses_.end(), [](const StreamUse& use) { return ended(use, use.last); });
    }

    // For memory that was allocated in the order of a stream: other streams wait for that once, before their first use.
    void order_on(StreamState& stream, std::uint64_t position) noexcept {
        ordered_position_ = position;
        ordered_on_.store(&stream, std::memory_order_relaxed);
    }
    // Whether there is an allocation that some stream may have to wait for. Expects no lock.
    bool ordered() const noexcept { return ordered_on_.load(std::memory_order_relaxed) != nullptr; }
    // The allocation that `stream` has to wait for before its first use. Without a stream: none.
    struct Allocated {
        std::shared_ptr<StreamState> stream;
        std::uint64_t position = 0;
    };
    Allocated allocation_before(const StreamState& stream) noexcept;

    // The number of graphs that use the buffer: their work contains its addresses. Expect no lock.
    void enter_graph() noexcept { graphs_.fetch_add(1, std::memory_order_relaxed); }
    void leave_graph() noexcept { graphs_.fetch_sub(1, std::memory_order_relaxed); }
    bool in_graphs() const noexcept { return graphs_.load(std::memory_order_relaxed) > 0; }

private:
    static bool ended(const StreamUse& use, std::uint64_t position) noexcept;

    Uses uses_;
    std::atomic<StreamState*> ordered_on_{nullptr};  // nullptr: nothing to wait for, or no longer
    std::uint64_t ordered_position_ = 0;
    std::atomic<int> graphs_{0};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
