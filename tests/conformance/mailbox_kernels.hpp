// SPDX-License-Identifier: Apache-2.0
// Kernels that exchange messages with the host while they run, and the messages.
#pragma once

#include <isthmus/concurrent/mailbox_view.hpp>
#include <isthmus/kernel.hpp>

#include <cstdint>

namespace conformance {

struct Question {
    std::uint32_t number;
    std::uint32_t twice;  // 2 × number, to detect a torn message
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
// As above, and adds each number to the sum.
ISTHMUS_DECLARE_KERNEL(answer_and_sum, isthmus::Index i, Questions mailbox, isthmus::View<std::uint64_t> sum);
// Answers `questions` questions and returns. Waits for each, or, where told not to wait, takes what has arrived.
ISTHMUS_DECLARE_KERNEL(answer_some, isthmus::Index i, Questions mailbox, std::uint32_t questions, std::uint32_t waits);
// Answers what has arrived, up to `questions`, taking eight at a time, and returns; before it answers a question it
// writes number + 1.
ISTHMUS_DECLARE_KERNEL(answer_batches, isthmus::Index i, Questions mailbox, std::uint32_t questions,
                       isthmus::AtomicView<std::uint32_t> seen);
// Answers until it is stopped, and takes up to eight at a time.
ISTHMUS_DECLARE_KERNEL(answer_some_at_once_until_stopped, isthmus::Index i, Questions mailbox);
// Takes questions, answers none, and returns when stopped.
ISTHMUS_DECLARE_KERNEL(answer_never, isthmus::Index i, Questions mailbox);
// Stops reading its mailbox, and runs until the flag is raised.
ISTHMUS_DECLARE_KERNEL(hang_until, isthmus::Index i, Questions mailbox, isthmus::AtomicView<std::uint32_t> flag);
// As answer_until_stopped, but answers nothing before the flag is raised.
ISTHMUS_DECLARE_KERNEL(answer_when_raised, isthmus::Index i, Questions mailbox,
                       isthmus::AtomicView<std::uint32_t> flag);
ISTHMUS_DECLARE_KERNEL(leave_at_once, isthmus::Index i, Questions mailbox);
// Overwrites the stamp of its own first reply, and waits to be stopped.
ISTHMUS_DECLARE_KERNEL(answer_nonsense, isthmus::Index i, Questions mailbox);

}  // namespace conformance
