// SPDX-License-Identifier: Apache-2.0
// MailboxView: a mailbox as a kernel sees it, and the memory layout of a mailbox.
#pragma once

#include <isthmus/concurrent/protocol/atomics.hpp>
#include <isthmus/concurrent/protocol/service.hpp>
#include <isthmus/detail/host_device.hpp>
#include <isthmus/detail/pack.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace isthmus {
inline namespace v0 {

namespace detail {
// Messages travel as words; unused bytes of the last word are 0.
template <class T>
inline constexpr std::uint32_t message_words = (sizeof(T) + 3) / 4;

// Six lines with one writer each, then the requests, then the replies; each word of a message has its stamp. Requests
// in a row lie on different lines, so that a kernel's loads of many overlap; replies follow each other, so that a
// kernel's stores leave together.
struct MailboxShape {
    std::uint32_t request_words;
    std::uint32_t reply_words;
    std::uint32_t capacity;
    // In words of 4 bytes. Grows with the capacity, so that a kernel can derive the capacity from the length.
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t words() const {
        return 6 * protocol::line_words + request_lines() + 2 * protocol::stamped_words(capacity, reply_words, 0);
    }
    // The shape with the largest capacity that fits into `words`.
    ISTHMUS_KERNEL_FUNCTION static constexpr MailboxShape of(std::uint32_t request_words, std::uint32_t reply_words,
                                                             std::uint64_t words) {
        MailboxShape shape{request_words, reply_words, 1};
        for (MailboxShape next = shape;; shape = next) {
            next.capacity = shape.capacity * 2;
            if (next.capacity == 0 || next.words() > words) return shape;
        }
    }
    template <class Cell>
    ISTHMUS_KERNEL_FUNCTION constexpr protocol::ServicePlace<Cell> place(Cell begin) const {
        constexpr std::uint32_t line = protocol::line_words;
        const Cell slots = begin + 6 * line;
        return {begin,
                begin + line,
                {begin + 2 * line, begin + 3 * line, slots, capacity, request_words, spread()},
                {begin + 4 * line, begin + 5 * line, slots + request_lines(), capacity, reply_words}};
    }

private:
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint32_t spread() const {
        return protocol::spread_for(capacity, request_words);
    }
    // Words of 4 bytes, whole lines.
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t request_lines() const {
        constexpr std::uint64_t line = protocol::line_words;
        return (2 * protocol::stamped_words(capacity, request_words, spread()) + line - 1) / line * line;
    }
};
}  // namespace detail

// Element type of a mailbox's memory: distinguishes mailboxes with different message types.
template <class Request, class Reply>
struct MailboxWord {
    std::uint32_t value;
};

// The device's end while a kernel serves it. One thread.
template <class Request, class Reply>
class MailboxServer {
public:
    ISTHMUS_KERNEL_FUNCTION explicit MailboxServer(const protocol::ServicePlace<std::uint32_t*>& place)
        : server_(protocol::SystemAtomics{}, place) {}
    // Waits for the next request. The kernel then sees what the host wrote before it sent the request; with
    // protocol::Publishes::message_only only the request, a fifth of a microsecond sooner on a GPU behind a link.
    // false: the host sent stop, return from the kernel.
    ISTHMUS_KERNEL_FUNCTION bool receive(Request& request,
                                         protocol::Publishes publishes = protocol::Publishes::all_memory) {
        std::uint32_t words[detail::message_words<Request>];
        if (!server_.receive(words, publishes)) return false;
        std::memcpy(&request, words, sizeof request);
        return true;
    }
    // The same for as many requests as are there, at most Most: `received` says how many, at least one. The loads of
    // all are in flight together: on a GPU behind a link sixteen take little longer than two.
    template <std::uint32_t Most>
    ISTHMUS_KERNEL_FUNCTION bool receive_some(Request (&requests)[Most], std::uint32_t& received,
                                              protocol::Publishes publishes = protocol::Publishes::all_memory) {
        std::uint32_t words[Most][detail::message_words<Request>];
        if (!server_.receive_some(words, received, publishes)) return false;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (std::uint32_t at = 0; at < Most; ++at) {  // a constant length, so that registers can hold the words
            if (at < received) std::memcpy(&requests[at], words[at], sizeof(Request));
        }
        return true;
    }
    // Waits for room. false: as above. The receiver of the reply also sees what this thread wrote into other memory
    // before, which costs a GPU behind a link a large part of a microsecond: pass protocol::Publishes::message_only
    // where only the reply has to be visible. The end of the service makes everything visible in any case.
    ISTHMUS_KERNEL_FUNCTION bool reply(const Reply& reply,
                                       protocol::Publishes publishes = protocol::Publishes::all_memory) {
        std::uint32_t words[detail::message_words<Reply>] = {};
        std::memcpy(words, &reply, sizeof reply);
        return server_.reply(words, publishes);
    }
    // For kernels that answer the requests present and return: takes the next request, if there is one.
    ISTHMUS_KERNEL_FUNCTION bool try_receive(Request& request,
                                             protocol::Publishes publishes = protocol::Publishes::all_memory) {
        std::uint32_t words[detail::message_words<Request>];
        if (server_.requests().try_receive(words, publishes) != protocol::RingStatus::done) return false;
        std::memcpy(&request, words, sizeof request);
        return true;
    }
    ISTHMUS_KERNEL_FUNCTION bool try_reply(const Reply& reply,
                                           protocol::Publishes publishes = protocol::Publishes::all_memory) {
        std::uint32_t words[detail::message_words<Reply>] = {};
        std::memcpy(words, &reply, sizeof reply);
        return server_.replies().try_send(words, publishes) == protocol::RingStatus::done;
    }
    // Tells the host that no more replies come; receive() and reply() do this when they answer false.
    ISTHMUS_KERNEL_FUNCTION void end() {
        (void)server_.end(protocol::ServiceState::ended);
    }
    // The underlying protocol, for kernels that take many messages at once.
    ISTHMUS_KERNEL_FUNCTION protocol::ServiceServer<protocol::SystemAtomics>& protocol() {
        return server_;
    }

private:
    protocol::ServiceServer<protocol::SystemAtomics> server_;
};

// A kernel parameter; its argument is Mailbox::device_end().
//   ISTHMUS_KERNEL(square, Index, MailboxView<int, int> mailbox) {
//       auto server = mailbox.serve();
//       for (int number; server.receive(number);) {
//           if (!server.reply(number * number)) return;
//       }
//   }
template <class Request, class Reply>
struct MailboxView {
    static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<Reply>,
                  "isthmus: messages are plain data, because they travel as words");
    MailboxWord<Request, Reply>* data = nullptr;
    std::uint64_t count = 0;  // words

    ISTHMUS_KERNEL_FUNCTION MailboxServer<Request, Reply> serve() const {
        const auto shape =
            detail::MailboxShape::of(detail::message_words<Request>, detail::message_words<Reply>, count);
        return MailboxServer<Request, Reply>(shape.place(reinterpret_cast<std::uint32_t*>(data)));
    }
};

namespace detail {
template <class Request, class Reply>
struct Parameter<MailboxView<Request, Reply>> : ViewParameter<MailboxWord<Request, Reply>, ArgumentUse::concurrent> {};
}  // namespace detail

}  // namespace v0
}  // namespace isthmus
