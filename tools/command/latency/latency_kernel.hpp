// SPDX-License-Identifier: Apache-2.0
// The kernels of the loop: each word of the buffer becomes an answer that only this turn has. And one that keeps a
// device busy.
#pragma once

#include <isthmus/concurrent/mailbox_view.hpp>
#include <isthmus/detail/host_device.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/view.hpp>

#include <cstdint>

namespace isthmus::tools::latency {

// What the CPU writes into a word of the buffer.
ISTHMUS_KERNEL_FUNCTION constexpr std::uint32_t question(std::uint32_t turn, std::uint32_t at) {
    return turn * 0x9e3779b9u + at;
}
// What the device makes of it. The CPU checks every word: an answer of an earlier turn, or none, is another value.
ISTHMUS_KERNEL_FUNCTION constexpr std::uint32_t answer(std::uint32_t question, std::uint32_t salt) {
    const std::uint32_t mixed = (question ^ (question >> 15)) * 0x2c1b3c6du;
    return (mixed ^ (mixed >> 12)) + salt + 0x5bd1e995u;  // 0 has an answer of its own, too
}

// Of the service: the words of the buffer to answer with this salt. The reply is the turn.
struct TurnRequest {
    std::uint32_t turn = 0;
    std::uint32_t salt = 0;
};
using TurnMailbox = MailboxView<TurnRequest, std::uint32_t>;
// The turn of a request that the service takes and does not answer: --mutant no_answer.
inline constexpr std::uint32_t unanswered_turn = 0xffffffffu;

ISTHMUS_DECLARE_KERNEL(latency_answer, isthmus::Index i, isthmus::View<std::uint32_t> words, std::uint32_t salt);
ISTHMUS_DECLARE_KERNEL(latency_serve, isthmus::Index, isthmus::tools::latency::TurnMailbox mailbox,
                       isthmus::AtomicView<std::uint32_t> words);
ISTHMUS_DECLARE_KERNEL(latency_disturb, isthmus::Index i, isthmus::View<std::uint32_t> words, std::uint32_t rounds);

}  // namespace isthmus::tools::latency
