// SPDX-License-Identifier: Apache-2.0
// Kernels of the mailbox benchmark: one that echoes, and two that move many messages one way.
#pragma once

#include <isthmus/concurrent/mailbox_view.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/view.hpp>

#include <cstdint>

namespace bench {

using Echo = isthmus::MailboxView<std::uint64_t, std::uint64_t>;

ISTHMUS_DECLARE_KERNEL(echo, isthmus::Index, Echo mailbox);
// Takes `messages` requests, as many at once as are there, and replies with their sum.
ISTHMUS_DECLARE_KERNEL(drain, isthmus::Index, Echo mailbox, std::uint64_t messages);
// Replies with 0, 1, 2, … up to `messages`.
ISTHMUS_DECLARE_KERNEL(pour, isthmus::Index, Echo mailbox, std::uint64_t messages);
// What a program writes by hand for one question at a time: a word each way, no room to wait for, no end but a number.
// words[0] asks, words[32] answers; words[0] == 0xffffffff ends it.
ISTHMUS_DECLARE_KERNEL(echo_word, isthmus::Index, isthmus::AtomicView<std::uint32_t> words);
ISTHMUS_DECLARE_KERNEL(count_up, isthmus::Index, isthmus::View<std::uint64_t> word);

}  // namespace bench
