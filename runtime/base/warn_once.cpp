// SPDX-License-Identifier: Apache-2.0
// WarnOnce as an open-addressing table of hashes.
#include "warn_once.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Mixes every bit into every other (the finalizer of SplitMix64, whose constants are public domain).
std::uint64_t mixed(std::uint64_t value) noexcept {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

// If two keys had one hash, one of two warnings would be lost: with 512 warnings, once in about 10^14 tables.
std::uint64_t hash_of(const WarningKey& key) noexcept {
    std::uint64_t hash = mixed(reinterpret_cast<std::uintptr_t>(key.kernel));
    hash = mixed(hash + key.argument + 1);
    hash = mixed(hash + key.source + 1);
    hash = mixed(hash + key.device + 1);
    return hash == 0 ? 1 : hash;
}

}  // namespace

WarnOnce::Answer WarnOnce::ask(const WarningKey& key) noexcept {
    const std::uint64_t hash = hash_of(key);
    for (std::size_t step = 0; step < places; ++step) {
        std::atomic<std::uint64_t>& place = seen_[(hash + step) % places];
        std::uint64_t there = place.load(std::memory_order_relaxed);
        if (there == hash) return Answer::known;
        if (there != 0) continue;
        // Counted before the place is taken, so that concurrent threads do not exceed the limit.
        if (used_.fetch_add(1, std::memory_order_relaxed) >= max_warnings) {
            used_.fetch_sub(1, std::memory_order_relaxed);
            return told_full_.exchange(true, std::memory_order_relaxed) ? Answer::full : Answer::first_full;
        }
        if (place.compare_exchange_strong(there, hash, std::memory_order_relaxed)) return Answer::first;
        used_.fetch_sub(1, std::memory_order_relaxed);
        if (there == hash) return Answer::known;
    }
    return Answer::full;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
