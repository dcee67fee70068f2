// SPDX-License-Identifier: Apache-2.0
// The kernels that the tests of mailboxes and services launch.
#include "mailbox_kernels.hpp"

#include <isthmus/atomic_ref.hpp>

#include <cstring>

namespace conformance {

using namespace isthmus;

ISTHMUS_KERNEL_FUNCTION Answer answer_to(const Question& question) {
    const bool whole =
        question.twice == 2 * question.number && question.filler == static_cast<std::uint8_t>(question.number);
    return {whole ? std::uint64_t{question.number} * question.number : 0, question.number};
}

ISTHMUS_KERNEL(answer_until_stopped, Index, Questions mailbox) {
    auto server = mailbox.serve();
    for (Question question; server.receive(question);) {
        if (!server.reply(answer_to(question))) return;
    }
}

ISTHMUS_KERNEL(answer_and_sum, Index, Questions mailbox, View<std::uint64_t> sum) {
    auto server = mailbox.serve();
    for (Question question; server.receive(question);) {
        sum[0] += question.number;
        if (!server.reply(answer_to(question))) return;
    }
}

ISTHMUS_KERNEL(answer_some, Index, Questions mailbox, std::uint32_t questions, std::uint32_t waits) {
    auto server = mailbox.serve();
    Question question;
    for (std::uint32_t answered = 0; answered < questions; ++answered) {
        if (waits != 0 ? !server.receive(question) : !server.try_receive(question)) break;
        if (waits != 0) {
            if (!server.reply(answer_to(question))) return;
        } else if (!server.try_reply(answer_to(question))) {
            break;
        }
    }
    server.end();
}

ISTHMUS_KERNEL(answer_batches, Index, Questions mailbox, std::uint32_t questions, AtomicView<std::uint32_t> seen) {
    auto server = mailbox.serve();
    const protocol::SystemAtomics atomics{};
    constexpr std::uint32_t words = isthmus::detail::message_words<Question>;
    std::uint32_t batch[8][words];
    for (std::uint32_t answered = 0; answered < questions;) {
        std::uint32_t received = 0;
        if (server.protocol().requests().try_receive_some(batch, received) != protocol::RingStatus::done) break;
        for (std::uint32_t at = 0; at < received; ++at, ++answered) {
            Question question;
            std::memcpy(&question, batch[at], sizeof question);
            atomics.store_relaxed(seen.data + answered, question.number + 1);
            if (!server.try_reply(answer_to(question), protocol::Publishes::all_memory)) return;
        }
    }
    server.end();
}

ISTHMUS_KERNEL(answer_some_at_once_until_stopped, Index, Questions mailbox) {
    auto server = mailbox.serve();
    Question questions[8];
    for (std::uint32_t received = 0; server.receive_some(questions, received);) {
        for (std::uint32_t at = 0; at < received; ++at) {
            if (!server.reply(answer_to(questions[at]))) return;
        }
    }
}

ISTHMUS_KERNEL(answer_never, Index, Questions mailbox) {
    auto server = mailbox.serve();
    for (Question question; server.receive(question);) {
    }
}

ISTHMUS_KERNEL(hang_until, Index, Questions mailbox, AtomicView<std::uint32_t> flag) {
    (void)mailbox;
    const protocol::SystemAtomics atomics{};
    for (std::uint32_t looks = 0; atomics.load_acquire(flag.data) == 0; ++looks) atomics.pause(looks);
}

ISTHMUS_KERNEL(answer_when_raised, Index, Questions mailbox, AtomicView<std::uint32_t> flag) {
    const protocol::SystemAtomics atomics{};
    auto server = mailbox.serve();
    for (Question question; server.receive(question);) {
        for (std::uint32_t looks = 0; atomics.load_acquire(flag.data) == 0; ++looks) atomics.pause(looks);
        if (!server.reply(answer_to(question))) return;
    }
}

ISTHMUS_KERNEL(leave_at_once, Index, Questions mailbox) {
    (void)mailbox.serve();
}

ISTHMUS_KERNEL(answer_nonsense, Index, Questions mailbox) {
    auto server = mailbox.serve();
    server.protocol().replies().publish(0x40000000u);
    server.protocol().replies().write(0, 0, 1);
    for (Question question; server.receive(question);) {
    }
}

}  // namespace conformance
