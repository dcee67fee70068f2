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

    // Nobody is let in yet. The ranges do not overlap: reservations see to that.
    void add(std::uint64_t base, std::uint64_t bytes);
    void remove(std::uint64_t base);
    // Of the range that begins at `base`.
    void set(std::uint64_t base, std::size_t device, RangeAccess access);
    RangeAccess access(std::uint64_t base, std::size_t device) const;
    // All of [address, address + bytes), over as many neighbouring ranges as it takes.
    rules::RangeFacts over(std::uint64_t address, std::uint64_t bytes, std::size_t device) const;

private:
    struct Range {
        std::uint64_t bytes = 0;
        std::uint64_t readers = 0;  // one bit for each device
        std::uint64_t writers = 0;
        RangeAccess access(std::size_t device) const noexcept;
    };
    mutable std::mutex mutex_;
    std::map<std::uint64_t, Range> ranges_;  // by base
};

}  // namespace isthmus::inline v0::detail
