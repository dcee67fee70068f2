// SPDX-License-Identifier: Apache-2.0
// BufferSides: which side of a copied buffer is newer, and which stream brought the memory to its current side.
#pragma once

#include <isthmus/kernel_info.hpp>

#include "sharing_rules.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct StreamState;

// Expects the buffer's lock unless stated otherwise. At most one side is newer than the other, except between a claim
// and the end of its operation.
class BufferSides {
public:
    BufferSides() = default;
    // `staged`: the first launch must find on the device what the host sees. `relayed`: copies go from and to a relay.
    BufferSides(bool staged, bool relayed) noexcept { begin(staged, relayed); }
    BufferSides(const BufferSides&) = delete;
    BufferSides& operator=(const BufferSides&) = delete;

    bool host_newer() const noexcept { return host_newer_; }      // the device's side is stale
    bool device_newer() const noexcept { return device_newer_; }  // the host's side is stale

    // The host, or another process, writes the host's side.
    void host_writes() noexcept {
        device_newer_ = false;
        host_newer_ = true;
        relay_stale_ = relayed_;
    }
    // Called after the device's side was copied to the host's.
    void copied_to_host() noexcept { device_newer_ = false; }
    // Whether the relay must be filled before a copy from it.
    bool relay_stale() const noexcept { return relay_stale_; }
    void relay_filled() noexcept { relay_stale_ = false; }

    // The sides as an operation found them before it claimed the buffer.
    struct Claim {
        bool host_newer = false;
        bool device_newer = false;
        std::uint64_t number = 0;
    };
    // Claims the device's side for an operation. `uploads`: the host's side must be copied there first.
    struct Claimed {
        Claim before;
        bool uploads = false;
    };
    Claimed claim(ArgumentUse use) noexcept {
        const Claimed claimed{{host_newer_, device_newer_, ++claims_}, host_newer_ && rules::reads(use)};
        host_newer_ = false;
        if (rules::writes(use)) device_newer_ = true;
        return claimed;
    }
    // Undoes the claim of an operation that did not happen: it changed neither side. Does nothing if another operation
    // has claimed the buffer since.
    void restore(const Claim& before) noexcept {
        if (claims_ != before.number) return;
        host_newer_ = before.host_newer;
        device_newer_ = before.device_newer;
    }

    // The stream of the last upload, or of the last return of managed memory, and its position there. The buffer's uses
    // name the stream.
    const StreamState* brought_by() const noexcept { return brought_by_; }
    std::uint64_t brought_at() const noexcept { return brought_at_; }
    void brought(const StreamState& stream, std::uint64_t position) noexcept {
        brought_by_ = &stream;
        brought_at_ = position;
    }
    bool brought_elsewhere(const StreamState& stream) const noexcept {
        return brought_by_ != nullptr && brought_by_ != &stream;
    }

    // For managed memory that belongs to one side at a time: the stream that has it; nullptr: the host has it.
    const StreamState* attached_to() const noexcept { return attached_to_; }
    void attach(const StreamState& stream) noexcept { attached_to_ = &stream; }
    void detach() noexcept { attached_to_ = nullptr; }

    // Bytes copied between the sides. Expect no lock.
    void count_copied(std::size_t bytes) noexcept { copied_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
    std::uint64_t copied_bytes() const noexcept { return copied_bytes_.load(std::memory_order_relaxed); }

private:
    friend class NewBuffer;
    void begin(bool staged, bool relayed) noexcept {
        host_newer_ = staged;
        device_newer_ = false;
        relayed_ = relay_stale_ = relayed;
        claims_ = 0;
        brought_by_ = attached_to_ = nullptr;
        copied_bytes_.store(0, std::memory_order_relaxed);
    }

    bool host_newer_ = false;
    bool device_newer_ = false;
    bool relayed_ = false;      // constant
    bool relay_stale_ = false;  // the host wrote since the relay was filled
    std::uint64_t claims_ = 0;
    const StreamState* brought_by_ = nullptr;
    std::uint64_t brought_at_ = 0;
    const StreamState* attached_to_ = nullptr;
    std::atomic<std::uint64_t> copied_bytes_{0};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
