// SPDX-License-Identifier: Apache-2.0
// DeviceSegment: device memory as blocks of one range of addresses, in which handles are mapped as blocks need them.
#pragma once

#include <platform/driver.hpp>

#include "segment_map.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The range is reserved at the first allocation. A handle has one granule, is mapped when a block first needs it, and
// is unmapped when it holds no block any more. Observed on an H100, driver 580: cuMemMap, cuMemSetAccess and cuMemUnmap
// wait for no kernel, unlike cuMemFree; the caller enters them all the same as calls that may (DriverUse).
//
// Thread-safe. The destructor calls no driver: end() does, once nothing uses the memory.
class DeviceSegment {
public:
    // With `enabled` false it is empty for good.
    DeviceSegment(platform::Driver& driver, bool enabled) : driver_(driver), enabled_(enabled) {}
    DeviceSegment(const DeviceSegment&) = delete;
    DeviceSegment& operator=(const DeviceSegment&) = delete;

    bool enabled() const noexcept { return enabled_; }
    // A block of kind device. Code::unsupported, without a call where that is known already: the addresses could not be
    // reserved, or no free range of them is large enough; the caller asks for memory of its own. On an error of another
    // kind nothing has changed.
    platform::Status allocate(std::size_t bytes, platform::Allocation& out);
    // Whether this address is in its range.
    bool owns(std::uint64_t address) const noexcept;
    // The block is no block from here on, and nothing may use it. Granules that the driver does not unmap stay mapped
    // for later blocks; trim() tries again. Code::invalid_argument: no block begins there.
    platform::Status release(const platform::Allocation& block);
    void trim() noexcept;
    // Whether a block of so many bytes leaves at most `most` bytes mapped, or needs no more than is mapped.
    bool fits_within(std::size_t bytes, std::uint64_t most) const;
    std::uint64_t mapped_bytes() const;
    // Unmaps everything and frees the addresses.
    void end() noexcept;

private:
    // Expect the lock.
    platform::Status begin();
    platform::Status map(const OffsetRange& run);
    void unmap(const OffsetRange& run) noexcept;

    platform::Driver& driver_;
    const bool enabled_;
    mutable std::mutex mutex_;
    std::optional<SegmentMap> map_;  // empty: not begun
    bool refused_ = false;           // the addresses could not be reserved
    std::uint64_t reserved_bytes_ = 0;
    std::atomic<std::uint64_t> base_{0};
    std::atomic<std::uint64_t> end_{0};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
