// SPDX-License-Identifier: Apache-2.0
// Kernels that echo, receive and send messages.
#include "mailbox_kernels.hpp"

namespace bench {

using namespace isthmus;
using protocol::Publishes;
using protocol::RingStatus;

namespace {
constexpr std::uint32_t max_at_once = 16;  // loads in flight at the same time, which hides the link's latency
constexpr std::uint32_t looks_between_commands = 64;
}  // namespace

ISTHMUS_KERNEL(echo, Index, Echo mailbox) {
    auto server = mailbox.serve();
    for (std::uint64_t word; server.receive(word, Publishes::message_only);) {
        if (!server.reply(word, Publishes::message_only)) return;
    }
}

ISTHMUS_KERNEL(drain, Index, Echo mailbox, std::uint64_t messages) {
    auto server = mailbox.serve();
    auto& requests = server.protocol().requests();
    std::uint64_t sum = 0;
    std::uint32_t looks = 0;
    std::uint32_t batch[max_at_once][2];
    for (std::uint64_t taken = 0; taken < messages;) {
        std::uint32_t received = 0;
        const RingStatus status = requests.try_receive_some(batch, received, Publishes::message_only);
        if (status == RingStatus::broken) break;
        if (status == RingStatus::wait) {
            if (++looks % looks_between_commands == 0 &&
                server.protocol().commanded() == protocol::ServiceCommand::abandon) {
                break;
            }
            continue;
        }
        // The loop has a constant length, so that the batch stays in registers.
        for (std::uint32_t at = 0; at < max_at_once; ++at) {
            if (at < received) sum += (std::uint64_t{batch[at][1]} << 32) + batch[at][0];
        }
        taken += received;
    }
    (void)server.reply(sum);
    server.end();
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
