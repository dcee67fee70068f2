// Completions: which of many outstanding operations have finished, at one question to the driver per stream.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus::inline v0 {

// For those who keep many things in flight (buffers of a camera, requests of a server) and want to know now and then
// which are done, without an event for each. An operation is named by its stream and its position there: what
// Stream::mark(), or LaunchReport::position and a mark behind it, answered. Holds its streams while something of them
// is outstanding. For one thread at a time; the streams may be used by others meanwhile, and other Completions are
// independent.
class ISTHMUS_API Completions {
public:
    // `tag` is what collect() names the operation by: an index, an address. Positions may come in any order; rising
    // ones cost least.
    void add(const Stream& stream, std::uint64_t position, std::uint64_t tag);
    // Appends the tags of what has finished since, stream by stream, in the order of positions, and answers how many.
    // Waits for nothing. Per stream: none of the driver's calls where all of it is known to be done, else one poll
    // (Stream::poll), whatever the number of its operations. Errors, after the other streams have been asked: what
    // poll() answered; the operations of that stream stay outstanding.
    Result<std::size_t> collect(std::vector<std::uint64_t>& finished);
    // Lets go of a stream, one whose device was lost for instance, and appends the tags of what never finished.
    void abandon(const Stream& stream, std::vector<std::uint64_t>& unfinished);
    std::size_t outstanding() const noexcept { return outstanding_; }

private:
    struct Operation {
        std::uint64_t position;
        std::uint64_t tag;
    };
    struct Lane {
        Stream stream;
        std::vector<Operation> operations;  // by position, from `first` on
        std::size_t first = 0;
    };
    Result<void> collect_from(Lane& lane, std::vector<std::uint64_t>& finished);

    std::vector<Lane> lanes_;
    std::size_t outstanding_ = 0;
};

}  // namespace isthmus::inline v0
