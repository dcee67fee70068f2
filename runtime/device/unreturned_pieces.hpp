// SPDX-License-Identifier: Apache-2.0
// UnreturnedPieces: memory that was released and that the driver has not accepted back yet (ADR 78).
#pragma once

#include "ledger.hpp"

#include <atomic>
#include <cstddef>
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
    bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
    void add(Piece piece) {
        const std::lock_guard lock(mutex_);
        pieces_.push_back(std::move(piece));
        count_.store(pieces_.size(), std::memory_order_release);
    }
    // Removes the oldest piece.
    std::optional<Piece> next() {
        const std::lock_guard lock(mutex_);
        if (pieces_.empty()) return std::nullopt;
        std::optional<Piece> piece = std::move(pieces_.front());
        pieces_.pop_front();
        count_.store(pieces_.size(), std::memory_order_release);
        return piece;
    }
    std::size_t bytes() const {
        std::size_t sum = 0;
        const std::lock_guard lock(mutex_);
        for (const Piece& piece : pieces_) sum += piece.host_part ? piece.host_part->bytes() : piece.allocation.bytes;
        return sum;
    }

private:
    std::atomic<std::size_t> count_{0};
    mutable std::mutex mutex_;
    std::deque<Piece> pieces_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
