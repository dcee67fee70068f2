// SPDX-License-Identifier: Apache-2.0
// Kernels of programs that exit with work in flight.
#include "kernels.hpp"

namespace endings {

using namespace isthmus;

ISTHMUS_KERNEL(increase, Index i, View<std::int32_t> data) {
    data[i] += 1;
}

ISTHMUS_KERNEL(take_long, Index i, View<std::int32_t> data, std::int32_t rounds) {
    auto value = static_cast<std::uint32_t>(data[i]);
    for (std::int32_t round = 0; round < rounds; ++round) value = value * 1664525u + 1013904223u;
    data[i] = static_cast<std::int32_t>(value);
}

ISTHMUS_KERNEL(echo, Index, Words mailbox) {
    auto server = mailbox.serve();
    for (std::uint32_t word = 0; server.receive(word);) {
        if (!server.reply(word)) return;
    }
}

}  // namespace endings
