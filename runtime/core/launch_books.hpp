// SPDX-License-Identifier: Apache-2.0
// LaunchBooks: what the launches and access queries of one runtime share: its devices, its warnings and its counters.
#pragma once

#include "warn_once.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;

// The devices of a runtime by index, for questions about memory that another device owns. Thread-safe.
class DeviceList {
public:
    void add(std::size_t index, const std::shared_ptr<DeviceState>& device) {
        const std::lock_guard lock(mutex_);
        if (devices_.size() <= index) devices_.resize(index + 1);
        devices_[index] = device;
    }
    std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return devices_.size();
    }
    std::shared_ptr<DeviceState> at(std::size_t index) const {
        const std::lock_guard lock(mutex_);
        return index < devices_.size() ? devices_[index].lock() : nullptr;
    }
    // The first device that `fits` accepts; nullptr: none.
    template <class Fits>
    std::shared_ptr<DeviceState> first(Fits fits) const {
        const std::lock_guard lock(mutex_);
        for (const std::weak_ptr<DeviceState>& known : devices_) {
            std::shared_ptr<DeviceState> device = known.lock();
            if (device && fits(*device)) return device;
        }
        return nullptr;
    }

    // The number of devices that `fits` accepts.
    template <class Fits>
    std::size_t count(Fits fits) const {
        const std::lock_guard lock(mutex_);
        std::size_t sum = 0;
        for (const std::weak_ptr<DeviceState>& known : devices_) {
            const std::shared_ptr<DeviceState> device = known.lock();
            if (device && fits(*device)) ++sum;
        }
        return sum;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::weak_ptr<DeviceState>> devices_;
};

struct LaunchBooks {
    DeviceList devices;
    WarnOnce warnings;
    std::mutex switching_peers;  // keeps the driver's state and the record consistent
    std::atomic<std::uint64_t> unverified_arguments{0};
    std::atomic<std::uint64_t> warnings_given{0};
    std::atomic<std::uint64_t> staged_launches{0};
    std::atomic<std::uint64_t> prefetches{0};
    std::atomic<std::uint64_t> failed_hints{0};
    // Counted where the call does much more anyway, for Runtime::counters().
    std::atomic<std::uint64_t> ended_operations{0};  // of streams that are gone
    std::atomic<std::uint64_t> uploads{0};           // of copied buffers, and of arguments of staged launches
    std::atomic<std::uint64_t> uploaded_bytes{0};
    std::atomic<std::uint64_t> downloads{0};
    std::atomic<std::uint64_t> downloaded_bytes{0};
    std::atomic<std::uint64_t> fences{0};
    std::atomic<std::uint64_t> waits{0};  // for a stream
    std::atomic<std::uint64_t> waited_ns{0};
    std::atomic<std::uint64_t> refused_launches{0};
    std::atomic<std::uint64_t> refused_views{0};
    std::atomic<std::uint64_t> budget_refusals{0};

    static void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
        counter.fetch_add(by, std::memory_order_relaxed);
    }
    void count_upload(std::uint64_t bytes) noexcept { count(uploads), count(uploaded_bytes, bytes); }
    void count_download(std::uint64_t bytes) noexcept { count(downloads), count(downloaded_bytes, bytes); }
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
