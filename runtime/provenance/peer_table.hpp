// SPDX-License-Identifier: Apache-2.0
// PeerTable: which device has access to which other device's memory. Written where the runtime switches access; read by
// access queries and launches, also in captures, without a driver call (L6).
#pragma once

#include "access_rules.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Thread-safe. Devices are named by their index in the runtime. Indices of 64 and more have access to no other device.
class PeerTable {
public:
    static constexpr std::size_t max_devices = 64;

    // Access of `device` to memory of `owner`.
    rules::PeerState state(std::size_t device, std::size_t owner) const noexcept {
        if (device >= max_devices || owner >= max_devices) return {};
        return {((peers_[device].load(std::memory_order_acquire) >> owner) & 1u) != 0,
                ((pools_[device].load(std::memory_order_acquire) >> owner) & 1u) != 0};
    }
    void record_peer(std::size_t device, std::size_t owner, bool allowed) noexcept {
        record(peers_, device, owner, allowed);
    }
    void record_pool(std::size_t device, std::size_t owner, bool allowed) noexcept {
        record(pools_, device, owner, allowed);
    }

private:
    using Table = std::array<std::atomic<std::uint64_t>, max_devices>;
    static void record(Table& table, std::size_t device, std::size_t owner, bool allowed) noexcept {
        if (device >= max_devices || owner >= max_devices) return;
        const std::uint64_t bit = std::uint64_t{1} << owner;
        if (allowed) {
            table[device].fetch_or(bit, std::memory_order_release);
        } else {
            table[device].fetch_and(~bit, std::memory_order_release);
        }
    }
    Table peers_{};
    Table pools_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
