// MappedRanges: which ranges of reserved addresses have memory, and which devices were let into each (V9).
#pragma once

#include <isthmus/memory_place.hpp>

#include "virtual_memory_rules.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace isthmus::inline v0::detail {

// Thread-safe. Access is known of the first 64 devices of a runtime, by index; further ones are not let in.
class MappedRanges {
public:
    static constexpr std::size_t most_devices = 64;

    // Nobody is let in yet. `lies` as rules::RangeFacts. The ranges do not overlap: reservations see to that.
    void add(std::uint64_t base, std::uint64_t bytes, int lies);
    void remove(std::uint64_t base);
    // Of the range that begins at `base`.
    void set(std::uint64_t base, std::size_t device, RangeAccess access);
    RangeAccess access(std::uint64_t base, std::size_t device) const;
    // All of [address, address + bytes), over as many neighbouring ranges as it takes: those that are alike count as
    // one, so that a buffer that grew in many steps costs no more than one that grew in few.
    rules::RangeFacts over(std::uint64_t address, std::uint64_t bytes, std::size_t device) const;

private:
    struct Run {
        std::uint64_t bytes = 0;
        int lies = 0;
        std::uint64_t readers = 0;  // one bit for each device
        std::uint64_t writers = 0;
        RangeAccess access(std::size_t device) const noexcept;
        bool alike(const Run& other) const noexcept {
            return lies == other.lies && readers == other.readers && writers == other.writers;
        }
    };
    using Runs = std::map<std::uint64_t, Run>;  // by base
    Runs::const_iterator run_at(std::uint64_t address) const noexcept;
    void cut(std::uint64_t address);         // a run begins there, where one reaches across
    void join(Runs::iterator run) noexcept;  // with its neighbours, where they are alike
    Runs::iterator alone(std::uint64_t base, std::uint64_t bytes);

    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> ranges_;  // bytes by base, as they were added
    Runs runs_;                                      // the same memory: neighbours that are alike are one run
};

}  // namespace isthmus::inline v0::detail
