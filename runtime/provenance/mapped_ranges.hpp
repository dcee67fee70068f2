// SPDX-License-Identifier: Apache-2.0
// MappedRanges: which ranges of reserved addresses have memory, and which devices have access to each (V9).
#pragma once

#include <isthmus/memory_place.hpp>

#include "virtual_memory_rules.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Thread-safe. Access is recorded for the first 64 devices of a runtime, by index; further devices get no access.
class MappedRanges {
public:
    static constexpr std::size_t max_devices = 64;

    // Starts without access for any device. `lies` as in rules::RangeFacts. The ranges do not overlap; reservations
    // guarantee that.
    void add(std::uint64_t base, std::uint64_t bytes, int lies);
    void remove(std::uint64_t base);
    // For the range that begins at `base`.
    void set(std::uint64_t base, std::size_t device, RangeAccess access);
    RangeAccess access(std::uint64_t base, std::size_t device) const;
    // For all of [address, address + bytes), over as many adjacent ranges as needed. Adjacent ranges with equal facts
    // are merged, so a buffer that grew in many steps costs no more than one that grew in few.
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
    void cut(std::uint64_t address);         // makes a run begin at `address`, if one extends across it
    void join(Runs::iterator run) noexcept;  // merges the run with its neighbours, where they are equal
    Runs::iterator alone(std::uint64_t base, std::uint64_t bytes);

    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> ranges_;  // bytes by base, as added
    Runs runs_;                                      // the same memory, with equal neighbours merged into one run
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
