// GraphUses: the buffers that an instance of a graph uses now, counted by argument, so that one may leave by itself.
#pragma once

#include "recording.hpp"

#include <cstddef>
#include <vector>

namespace isthmus::inline v0::detail {

// Holds what it counts, as a graph does (S15): a launch of the instance claims it, and nobody can release it. Not
// thread-safe.
class GraphUses {
public:
    struct Entry {
        RecordedUse held;             // … with what all of the graph does to it, as if one operation did
        std::size_t readers = 0;      // arguments that read it
        std::size_t writers = 0;      // … that write it
        std::size_t concurrents = 0;  // … that use it concurrently, and count as neither
    };

    void add(const std::shared_ptr<BufferState>& buffer, ArgumentUse use);
    // Undoes an add(). A buffer that nobody uses any more goes to `let_go`: its end may wait for streams, so that no
    // lock may be held then.
    void remove(const BufferState& buffer, ArgumentUse use, std::vector<RecordedUse>& let_go);
    const std::vector<Entry>& entries() const noexcept { return entries_; }

private:
    std::vector<Entry>::iterator place_of(const BufferState& buffer);
    std::vector<Entry> entries_;  // by address
};

}  // namespace isthmus::inline v0::detail
