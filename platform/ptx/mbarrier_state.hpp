// SPDX-License-Identifier: Apache-2.0
// The state of an mbarrier object (PTX ISA, "Asynchronous barrier objects"): pure functions on its 64 bits, whose
// layout PTX leaves open.
#pragma once

#include <cstdint>

namespace isthmus::ptx {

inline constexpr std::uint32_t most_arrivals = (1u << 20) - 1;  // PTX ISA: of counts of arrivals and of transactions

struct MbarrierState {
    std::uint32_t expected = 0;  // arrivals of each phase
    std::uint32_t pending = 0;   // of this phase, still to come
    std::int32_t transactions = 0;
    std::uint32_t phase = 0;  // modulo 8

    static constexpr MbarrierState of(std::uint64_t bits) noexcept {
        const auto transactions = static_cast<std::int32_t>(bits >> 40 & 0x1fffff);
        return {
            static_cast<std::uint32_t>(bits & most_arrivals), static_cast<std::uint32_t>(bits >> 20 & most_arrivals),
            transactions < 1 << 20 ? transactions : transactions - (1 << 21), static_cast<std::uint32_t>(bits >> 61)};
    }
    constexpr std::uint64_t bits() const noexcept {
        return std::uint64_t{expected} | std::uint64_t{pending} << 20 |
               (static_cast<std::uint64_t>(transactions) & 0x1fffff) << 40 | std::uint64_t{phase} << 61;
    }
    // A phase ends when all arrivals have come and no transaction is open.
    constexpr void complete() noexcept {
        if (pending != 0 || transactions != 0) return;
        phase = (phase + 1) & 7;
        pending = expected;
    }
};

// Why an operation on an mbarrier object is not defined; nullptr: it was done.
constexpr const char* init(MbarrierState& state, std::uint32_t count) noexcept {
    if (count == 0 || count > most_arrivals) return "the count of arrivals is not in 1 to 1048575";
    state = {count, count, 0, 0};
    return nullptr;
}
constexpr const char* add_transactions(MbarrierState& state, std::int64_t bytes) noexcept {
    const std::int64_t sum = state.transactions + bytes;
    if (sum > most_arrivals || sum < -std::int64_t{most_arrivals}) {
        return "the count of transactions leaves -1048575 to 1048575";
    }
    state.transactions = static_cast<std::int32_t>(sum);
    return nullptr;
}
constexpr const char* complete_transactions(MbarrierState& state, std::uint32_t bytes) noexcept {
    const char* const why = add_transactions(state, -std::int64_t{bytes});
    if (why == nullptr) state.complete();
    return why;
}
struct Arrival {
    std::uint32_t count = 1;
    std::uint32_t transactions = 0;  // expected before the arrival
    bool drops = false;              // later phases expect fewer arrivals
    bool completes = true;           // false: .noComplete
};
constexpr const char* arrive(MbarrierState& state, const Arrival& arrival) noexcept {
    if (arrival.count == 0 || arrival.count > most_arrivals) return "the count of arrivals is not in 1 to 1048575";
    if (arrival.count > state.pending) return "more threads arrive than its phase still expects";
    if (!arrival.completes && arrival.count == state.pending) return "an arrival with .noComplete would end the phase";
    if (const char* const why = add_transactions(state, arrival.transactions)) return why;
    if (arrival.drops) state.expected -= arrival.count;
    state.pending -= arrival.count;
    state.complete();
    return nullptr;
}

// Whether the phase of the state that an arrival returned has ended.
constexpr bool has_ended(const MbarrierState& state, std::uint64_t token) noexcept {
    return MbarrierState::of(token).phase != state.phase;
}
// Whether the phase with this parity has ended: the current one or the one before it.
constexpr bool has_ended_by_parity(const MbarrierState& state, std::uint64_t parity) noexcept {
    return (state.phase & 1) != (parity & 1);
}

}  // namespace isthmus::ptx
