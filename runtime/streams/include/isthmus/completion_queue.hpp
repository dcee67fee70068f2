// SPDX-License-Identifier: Apache-2.0
// CompletionQueue: finds which of many outstanding operations have finished, with one driver query per stream.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus {
inline namespace v0 {

// Finds finished operations among many in flight (camera buffers, server requests), without an event for each. An
// operation is identified by its stream and its position there: the result of Stream::mark(), or LaunchReport::position
// with a later mark. Holds a stream while an operation of it is outstanding. Use from one thread at a time; other
// threads may use the streams meanwhile, and other CompletionQueues are independent.
class ISTHMUS_API CompletionQueue {
public:
    // `tag` identifies the operation in collect(), for example an index or an address. Positions may come in any order;
    // ascending order is the cheapest.
    void add(const Stream& stream, std::uint64_t position, std::uint64_t tag);
    // Appends the tags of operations that finished since the last call, stream by stream, in the order of positions,
    // and returns their number. Never waits. Per stream: no driver call if all operations are known to have finished,
    // otherwise one Stream::poll(), whatever the number of operations. Errors, after the other streams were polled:
    // those of poll(). Tags found until then are appended; operations not known to have finished stay outstanding.
    Result<std::size_t> collect(std::vector<std::uint64_t>& finished);
    // Drops a stream, for example one whose device was lost, and appends the tags of its unfinished operations.
    void abandon(const Stream& stream, std::vector<std::uint64_t>& unfinished);
    std::size_t outstanding() const noexcept { return outstanding_; }

private:
    struct Operation {
        std::uint64_t position;
        std::uint64_t tag;
    };
    struct Lane {
        Stream stream;
        std::vector<Operation> operations;  // sorted by position, valid from `first` on
        std::size_t first = 0;
    };
    Result<void> collect_from(Lane& lane, std::vector<std::uint64_t>& finished);

    std::vector<Lane> lanes_;
    std::size_t outstanding_ = 0;
};

}  // namespace v0
}  // namespace isthmus
