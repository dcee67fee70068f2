// SPDX-License-Identifier: Apache-2.0
// Runs of mapped ranges: adjacent ranges with equal facts are one run.
#include "mapped_ranges.hpp"

#include <algorithm>
#include <iterator>

namespace isthmus {
inline namespace v0 {
namespace detail {

RangeAccess MappedRanges::Run::access(std::size_t device) const noexcept {
    if (device >= max_devices) return RangeAccess::none;
    if (((writers >> device) & 1u) != 0) return RangeAccess::read_write;
    return ((readers >> device) & 1u) != 0 ? RangeAccess::read : RangeAccess::none;
}

MappedRanges::Runs::const_iterator MappedRanges::run_at(std::uint64_t address) const noexcept {
    auto run = runs_.upper_bound(address);
    if (run == runs_.begin()) return runs_.end();
    --run;
    return address - run->first < run->second.bytes ? run : runs_.end();
}

void MappedRanges::cut(std::uint64_t address) {
    const auto found = run_at(address);
    if (found == runs_.end() || found->first == address) return;
    Run behind = found->second;
    const std::uint64_t before = address - found->first;
    behind.bytes -= before;
    runs_.emplace(address, behind);
    runs_[found->first].bytes = before;
}

// Makes the range a run of its own. Expects the range to be recorded.
MappedRanges::Runs::iterator MappedRanges::alone(std::uint64_t base, std::uint64_t bytes) {
    cut(base);
    cut(base + bytes);
    return runs_.find(base);
}

void MappedRanges::join(Runs::iterator run) noexcept {
    if (run != runs_.begin()) {
        const auto before = std::prev(run);
        if (before->first + before->second.bytes == run->first && before->second.alike(run->second)) {
            before->second.bytes += run->second.bytes;
            runs_.erase(run);
            run = before;
        }
    }
    const auto behind = std::next(run);
    if (behind == runs_.end() || run->first + run->second.bytes != behind->first) return;
    if (!run->second.alike(behind->second)) return;
    run->second.bytes += behind->second.bytes;
    runs_.erase(behind);
}

void MappedRanges::add(std::uint64_t base, std::uint64_t bytes, int lies) {
    const std::lock_guard lock(mutex_);
    ranges_[base] = bytes;
    join(runs_.insert_or_assign(base, Run{bytes, lies, 0, 0}).first);
}

void MappedRanges::remove(std::uint64_t base) {
    const std::lock_guard lock(mutex_);
    const auto found = ranges_.find(base);
    if (found == ranges_.end()) return;
    runs_.erase(alone(base, found->second));
    ranges_.erase(found);
}

void MappedRanges::set(std::uint64_t base, std::size_t device, RangeAccess access) {
    if (device >= max_devices) return;
    const std::uint64_t bit = std::uint64_t{1} << device;
    const std::lock_guard lock(mutex_);
    const auto found = ranges_.find(base);
    if (found == ranges_.end()) return;
    const auto run = alone(base, found->second);
    Run& known = run->second;
    known.readers = access == RangeAccess::none ? known.readers & ~bit : known.readers | bit;
    known.writers = access == RangeAccess::read_write ? known.writers | bit : known.writers & ~bit;
    join(run);
}

RangeAccess MappedRanges::access(std::uint64_t base, std::size_t device) const {
    const std::lock_guard lock(mutex_);
    const auto run = run_at(base);
    return run == runs_.end() ? RangeAccess::none : run->second.access(device);
}

rules::RangeFacts MappedRanges::over(std::uint64_t address, std::uint64_t bytes, std::size_t device) const {
    const std::lock_guard lock(mutex_);
    auto run = run_at(address);
    if (run == runs_.end()) return {};
    rules::RangeFacts facts{true, RangeAccess::read_write, run->second.lies};
    while (run != runs_.end() && address >= run->first && address - run->first < run->second.bytes) {
        facts.access = std::min(facts.access, run->second.access(device));
        if (run->second.lies != facts.lies) {
            const bool multicast = std::min(run->second.lies, facts.lies) == rules::RangeFacts::multicast;
            facts.lies = multicast ? rules::RangeFacts::multicast : rules::RangeFacts::in_several;
        }
        const std::uint64_t left = run->second.bytes - (address - run->first);
        if (bytes <= left) return facts;
        bytes -= left;
        address += left;
        ++run;
    }
    return {};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
