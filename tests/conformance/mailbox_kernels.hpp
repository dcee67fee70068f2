// SPDX-License-Identifier: Apache-2.0
// Kernels that talk to the host while they run, and their messages.
#pragma once

#include <isthmus/concurrent/mailbox_view.hpp>
#include <isthmus/kernel.hpp>

#include <cstdint>

namespace conformance {

struct Question {
    std::uint32_t number;
    std::uint32_t twice;  // 2 × number: a torn message shows
    std::uint8_t filler;
};
inline Question question_of(std::uint32_t number) {
    return {number, 2 * number, static_cast<std::uint8_t>(number)};
}
struct Answer {
    std::uint64_t square;
    std::uint32_t number;
};

using Questions = isthmus::MailboxView<Question, Answer>;

// Answers until it is stopped.
ISTHMUS_DECLARE_KERNEL(answer_until_stopped, isthmus::Index i, Questions mailbox);
// … and adds each number to the sum.
ISTHMUS_DECLARE_KERNEL(answer_and_sum, isthmus::Index i, Questions mailbox, isthmus::View<std::uint64_t> sum);
// Answers `questions` of them, waiting for each, or what is there where told not to wait, and returns.
ISTHMUS_DECLARE_KERNEL(answer_some, isthmus::Index i, Questions mailbox, std::uint32_t questions, std::uint32_t waits);
// Answers those that are there, up to `questions`, which it takes eight at a time, and returns; before it answers one,
// it writes number + 1.
ISTHMUS_DECLARE_KERNEL(answer_batches, isthmus::Index i, Questions mailbox, std::uint32_t questions,
                       isthmus::AtomicView<std::uint32_t> seen);
// Takes questions, answers none, and returns when stopped.
ISTHMUS_DECLARE_KERNEL(answer_never, isthmus::Index i, Questions mailbox);
// Looks at its mailbox no more, and runs until the flag is raised.
ISTHMUS_DECLARE_KERNEL(hang_until, isthmus::Index i, Questions mailbox, isthmus::AtomicView<std::uint32_t> flag);
// Answers as answer_until_stopped does, but nothing before the flag is raised.
ISTHMUS_DECLARE_KERNEL(answer_when_raised, isthmus::Index i, Questions mailbox,
                       isthmus::AtomicView<std::uint32_t> flag);
// Returns at once.
ISTHMUS_DECLARE_KERNEL(leave_at_once, isthmus::Index i, Questions mailbox);
// Writes over the stamp of its own first reply, and waits to be stopped.
ISTHMUS_DECLARE_KERNEL(answer_nonsense, isthmus::Index i, Questions mailbox);

}  // namespace conformance
