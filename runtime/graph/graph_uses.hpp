// SPDX-License-Identifier: Apache-2.0
// GraphUses: the buffers that a graph instance currently uses, counted by argument, so that single uses can be removed.
#pragma once

#include "few.hpp"
#include "recording.hpp"

#include <cstddef>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Holds the buffers, as a graph does (S15): a launch of the instance claims them, and they cannot be released. Not
// thread-safe.
class GraphUses {
public:
    struct Entry {
        RecordedUse held;             // with the combined use of the whole graph, as if by one operation
        std::size_t readers = 0;      // arguments that read it
        std::size_t writers = 0;      // arguments that write it
        std::size_t concurrents = 0;  // concurrent uses, in neither count
    };

    void add(const std::shared_ptr<BufferState>& buffer, ArgumentUse use);
    // Undoes an add(). A buffer without remaining uses goes to `let_go`: its release may wait for streams, so drop it
    // without holding a lock.
    using LetGo = Few<RecordedUse, 4>;
    void remove(const BufferState& buffer, ArgumentUse use, LetGo& let_go);
    const std::vector<Entry>& entries() const noexcept { return entries_; }

private:
    Entry* place_of(const BufferState& buffer, std::size_t& last) noexcept {
        Entry* const guess = entries_.data() + last;
        return guess < entries_.data() + entries_.size() && guess->held.buffer.get() == &buffer ? guess
                                                                                                : find(buffer, last);
    }
    Entry* find(const BufferState& buffer, std::size_t& last) noexcept;
    std::vector<Entry> entries_;  // sorted by address
    // Where the last buffer was found; a guess, which place_of() checks.
    std::size_t added_ = 0;
    std::size_t removed_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
