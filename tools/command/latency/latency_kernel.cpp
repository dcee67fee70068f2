// SPDX-License-Identifier: Apache-2.0
// The service is one thread: it takes the words in pieces, whose loads are in flight together.
#include "latency_kernel.hpp"

#include <isthmus/atomic_ref.hpp>

namespace isthmus::tools::latency {

ISTHMUS_KERNEL(latency_answer, isthmus::Index i, isthmus::View<std::uint32_t> words, std::uint32_t salt) {
    words[i] = answer(words[i], salt);
}

ISTHMUS_KERNEL(latency_serve, isthmus::Index, isthmus::tools::latency::TurnMailbox mailbox,
               isthmus::AtomicView<std::uint32_t> words) {
    constexpr std::uint32_t piece = 16;
    const auto count = static_cast<std::uint32_t>(words.size());
    auto server = mailbox.serve();
    for (TurnRequest request; server.receive(request);) {
        if (request.turn == unanswered_turn) continue;
        // The request orders these loads behind the host's stores, and the reply orders the stores before it.
        for (std::uint32_t begin = 0; begin < count; begin += piece) {
            std::uint32_t questions[piece];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
            for (std::uint32_t at = 0; at < piece; ++at) {
                if (begin + at < count) questions[at] = words.at(begin + at).load_relaxed();
            }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
            for (std::uint32_t at = 0; at < piece; ++at) {
                if (begin + at < count) words.at(begin + at).store_relaxed(answer(questions[at], request.salt));
            }
        }
        if (!server.reply(request.turn)) return;
    }
}

ISTHMUS_KERNEL(latency_disturb, isthmus::Index i, isthmus::View<std::uint32_t> words, std::uint32_t rounds) {
    std::uint32_t value = words[i];
    for (std::uint32_t round = 0; round < rounds; ++round) value = answer(value, round);
    words[i] = value;
}

}  // namespace isthmus::tools::latency
