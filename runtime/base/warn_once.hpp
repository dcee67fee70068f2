// SPDX-License-Identifier: Apache-2.0
// WarnOnce: the warnings that were given already, in a bounded table that is read without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The subject of a warning. Kernels have static storage; sources are identities or addresses.
struct WarningKey {
    const void* kernel = nullptr;
    std::uint32_t argument = 0;
    std::uint64_t source = 0;
    std::size_t device = 0;  // Device::index() of the launch device
};

// Thread-safe. No entry is ever removed, so each warning is given at most once. Warnings that find no room are not
// given.
class WarnOnce {
public:
    static constexpr std::size_t max_warnings = 512;
    enum class Answer : std::uint8_t {
        first,  // new: give the warning
        known,
        full,        // no room: do not give it
        first_full,  // no room, for the first time: log that
    };
    Answer ask(const WarningKey& key) noexcept;
    std::size_t size() const noexcept { return used_.load(std::memory_order_relaxed); }

private:
    static constexpr std::size_t places = 1024;              // a power of two; at most half of them are filled
    std::array<std::atomic<std::uint64_t>, places> seen_{};  // hashes; 0: empty
    std::atomic<std::size_t> used_{0};
    std::atomic<bool> told_full_{false};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
