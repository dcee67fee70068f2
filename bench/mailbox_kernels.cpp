// SPDX-License-Identifier: Apache-2.0
// Kernels that echo, receive and send messages.
#include "mailbox_kernels.hpp"

namespace bench {

using namespace isthmus;
using protocol::Publishes;
using protocol::RingStatus;

namespace {
constexpr std::uint32_t max_at_once = 16;  // stores that leave together
constexpr std::uint32_t looks_between_commands = 64;
}  // namespace

ISTHMUS_KERNEL(echo, Index, Echo mailbox) {
    auto server = mailbox.serve();
    for (std::uint64_t word; server.receive(word, Publishes::message_only);) {
        if (!server.reply(word, Publishes::message_only)) return;
    }
}

// Sums up `messages` messages, and takes up to Most at a time.
template <std::uint32_t Most>
ISTHMUS_KERNEL_FUNCTION void drain_by(Echo mailbox, std::uint64_t messages) {
    auto server = mailbox.serve();
    std::uint64_t sum = 0;
    std::uint64_t batch[Most];
    for (std::uint64_t taken = 0; taken < messages;) {
        std::uint32_t received = 0;
        if (!server.receive_some(batch, received, Publishes::message_only)) return;
            // The loop has a constant length, so that the batch stays in registers.
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (std::uint32_t at = 0; at < Most; ++at) {
            if (at < received) sum += batch[at];
        }
        taken += received;
    }
    (void)server.reply(sum);
    server.end();
}

ISTHMUS_KERNEL(drain_1, Index, Echo mailbox, std::uint64_t messages) {
    drain_by<1>(mailbox, messages);
}
ISTHMUS_KERNEL(drain_16, Index, Echo mailbox, std::uint64_t messages) {
    drain_by<16>(mailbox, messages);
}
ISTHMUS_KERNEL(drain_32, Index, Echo mailbox, std::uint64_t messages) {
    drain_by<32>(mailbox, messages);
}

ISTHMUS_KERNEL(pour, Index, Echo mailbox, std::uint64_t messages) {
    auto server = mailbox.serve();
    auto& replies = server.protocol().replies();
    std::uint32_t looks = 0;
    for (std::uint64_t sent = 0; sent < messages;) {
        const std::uint32_t wanted =
            messages - sent < max_at_once ? static_cast<std::uint32_t>(messages - sent) : max_at_once;
        const RingStatus status = replies.room(wanted);
        if (status == RingStatus::broken) break;
        if (status == RingStatus::wait) {
            if (++looks % looks_between_commands == 0 &&
                server.protocol().commanded() == protocol::ServiceCommand::abandon) {
                break;
            }
            continue;
        }
        for (std::uint32_t at = 0; at < wanted; ++at) {
            replies.write(at, 0, static_cast<std::uint32_t>(sent + at));
            replies.write(at, 1, static_cast<std::uint32_t>((sent + at) >> 32));
        }
        replies.publish(wanted);
        sent += wanted;
    }
    server.end();
}

ISTHMUS_KERNEL(echo_word, Index, AtomicView<std::uint32_t> words) {
    const protocol::SystemAtomics atomics;
    for (std::uint32_t last = 0;;) {
        const std::uint32_t word = atomics.load_relaxed(words.data);
        if (word == last) continue;
        if (word == 0xffffffffu) return;
        atomics.store_relaxed(words.data + 32, word);
        last = word;
    }
}

ISTHMUS_KERNEL(count_up, Index, View<std::uint64_t> word) {
    word[0] += 1;
}

}  // namespace bench
