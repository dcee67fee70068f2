// SPDX-License-Identifier: Apache-2.0
// Kernels of programs that exit with work in flight.
#pragma once

#include <isthmus/concurrent/mailbox_view.hpp>
#include <isthmus/kernel.hpp>

#include <cstdint>

namespace endings {

ISTHMUS_DECLARE_KERNEL(increase, isthmus::Index i, isthmus::View<std::int32_t> data);
// Passes over the data `rounds` times.
ISTHMUS_DECLARE_KERNEL(take_long, isthmus::Index i, isthmus::View<std::int32_t> data, std::int32_t rounds);
// Echoes what it receives until it is stopped.
using Words = isthmus::MailboxView<std::uint32_t, std::uint32_t>;
ISTHMUS_DECLARE_KERNEL(echo, isthmus::Index i, Words mailbox);

}  // namespace endings
