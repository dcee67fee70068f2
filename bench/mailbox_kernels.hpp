// SPDX-License-Identifier: Apache-2.0
// Kernels of the mailbox benchmark: one echoes, others move many messages in one direction.
#pragma once

#include <isthmus/concurrent/mailbox_view.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/view.hpp>

#include <cstdint>

namespace bench {

using Echo = isthmus::MailboxView<std::uint64_t, std::uint64_t>;

ISTHMUS_DECLARE_KERNEL(echo, isthmus::Index, Echo mailbox);
// Takes `messages` requests, up to 1, 16 or 32 at once, and replies with their sum.
ISTHMUS_DECLARE_KERNEL(drain_1, isthmus::Index, Echo mailbox, std::uint64_t messages);
ISTHMUS_DECLARE_KERNEL(drain_16, isthmus::Index, Echo mailbox, std::uint64_t messages);
ISTHMUS_DECLARE_KERNEL(drain_32, isthmus::Index, Echo mailbox, std::uint64_t messages);
// Replies with 0, 1, 2, … up to `messages`.
ISTHMUS_DECLARE_KERNEL(pour, isthmus::Index, Echo mailbox, std::uint64_t messages);
// One question at a time, as written by hand: a word in each direction, no flow control, and a number to end it.
// words[0] is the question, words[32] the answer; words[0] == 0xffffffff ends the kernel.
ISTHMUS_DECLARE_KERNEL(echo_word, isthmus::Index, isthmus::AtomicView<std::uint32_t> words);
ISTHMUS_DECLARE_KERNEL(count_up, isthmus::Index, isthmus::View<std::uint64_t> word);

}  // namespace bench
