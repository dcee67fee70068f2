// SPDX-License-Identifier: Apache-2.0
// UnreturnedPieces: memory that was released and that the driver has not accepted back yet (ADR 78).
#pragma once

#include "ledger.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// For one device. Nothing uses the pieces. Each keeps its memory until the driver accepts it back; the former owner is
// not told. Thread-safe.
class UnreturnedPieces {
public:
    // What the driver may take at the next try.
    enum class Until : std::uint8_t {
        next_call,       // of whatever releases or asks for memory
        end_of_capture,  // of other code: nothing tells when that is, so only calls that go to the driver try it
    };
    bool any() const noexcept { return all_.load(std::memory_order_acquire) != 0; }
    bool any_for_next_call() const noexcept { return for_next_call_.load(std::memory_order_acquire) != 0; }
    void add(Piece piece, Until until = Until::next_call) {
        const std::lock_guard lock(mutex_);
        pieces_.push_back({std::move(piece), until});
        count();
    }
    // Removes the oldest piece.
    std::optional<Piece> next() {
        const std::lock_guard lock(mutex_);
        if (pieces_.empty()) return std::nullopt;
        std::optional<Piece> piece = std::move(pieces_.front().piece);
        pieces_.pop_front();
        count();
        return piece;
    }
    std::size_t bytes() const {
        std::size_t sum = 0;
        const std::lock_guard lock(mutex_);
        for (const auto& [piece, until] : pieces_) {
            sum += piece.bytes();
        }
        return sum;
    }

private:
    struct Waiting {
        Piece piece;
        Until until;
    };
    void count() noexcept {
        const auto waits = std::count_if(pieces_.begin(), pieces_.end(),
                                         [](const Waiting& one) { return one.until == Until::next_call; });
        all_.store(pieces_.size(), std::memory_order_release);
        for_next_call_.store(static_cast<std::size_t>(waits), std::memory_order_release);
    }

    std::atomic<std::size_t> all_{0};
    std::atomic<std::size_t> for_next_call_{0};
    mutable std::mutex mutex_;
    std::deque<Waiting> pieces_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
