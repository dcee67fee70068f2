// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <isthmus/concurrent/mailbox_view.hpp>
#include <isthmus/kernel.hpp>

#include <cstdint>

using Squares = isthmus::MailboxView<std::uint32_t, std::uint64_t>;

ISTHMUS_DECLARE_KERNEL(squares, isthmus::Index, Squares mailbox);
ISTHMUS_DECLARE_KERNEL(some_squares, isthmus::Index, Squares mailbox, std::uint32_t most);
