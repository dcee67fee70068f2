// SPDX-License-Identifier: Apache-2.0
// Kernels that answer numbers with their squares: one runs until it is stopped; the other answers the requests in its
// mailbox and ends.
#include "squares.hpp"

ISTHMUS_KERNEL(squares, isthmus::Index, Squares mailbox) {
    auto server = mailbox.serve();
    for (std::uint32_t number; server.receive(number);) {
        if (!server.reply(std::uint64_t{number} * number)) return;
    }
}

// show: some_squares
ISTHMUS_KERNEL(some_squares, isthmus::Index, Squares mailbox, std::uint32_t most) {
    auto server = mailbox.serve();
    std::uint32_t number;
    for (std::uint32_t answered = 0; answered < most && server.try_receive(number); ++answered) {
        if (!server.try_reply(std::uint64_t{number} * number)) return;
    }
}
// end
