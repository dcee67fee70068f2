// SPDX-License-Identifier: Apache-2.0
// Mailbox: requests from the CPU to a running kernel, and its replies. Uses loads and stores only, so it works on every
// machine and makes no driver call.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/concurrent/mailbox_view.hpp>
#include <isthmus/concurrent_view.hpp>
#include <isthmus/device.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace isthmus {
inline namespace v0 {

namespace detail {
// The untyped part of a mailbox.
class ISTHMUS_API MailboxCore {
public:
    // The best memory kind for a mailbox on this device; refuses a capacity that is not a power of two.
    static Result<MemoryKind> kind_for(const Device& device, std::uint32_t capacity);
    static Result<MailboxCore> open(Device& device, const std::shared_ptr<BufferState>& buffer,
                                    const MailboxShape& shape);
    MailboxCore(MailboxCore&&) noexcept = default;
    MailboxCore& operator=(MailboxCore&&) noexcept = default;
    ~MailboxCore() = default;

    Result<bool> try_send(const std::uint32_t* words);
    Result<bool> try_receive(std::uint32_t* words);
    Result<void> send(const std::uint32_t* words, const Wait& wait);
    Result<void> receive(std::uint32_t* words, const Wait& wait);
    protocol::ServiceClient<protocol::SystemAtomics>& protocol() noexcept { return *client_; }
    const std::shared_ptr<DeviceState>& device() const noexcept { return device_; }
    void drop_replies();
    void command(protocol::ServiceCommand command) { client_->command(command); }
    // Called every millisecond of a wait; an error ends the wait. The service behind the mailbox sets it. `who` has
    // static storage and names the other side in messages.
    using Watch = Result<void> (*)(void* context);
    void watch(Watch ask, void* context, std::string_view who) noexcept {
        watch_ = ask;
        context_ = context;
        who_ = who;
    }

private:
    MailboxCore(std::shared_ptr<DeviceState> device, ConcurrentScope scope, const MailboxShape& shape);
    template <class Try>
    Result<void> until(Try attempt, const Wait& wait, std::string_view what);

    std::shared_ptr<DeviceState> device_;
    ConcurrentScope scope_;
    std::optional<protocol::ServiceClient<protocol::SystemAtomics>> client_;
    std::string_view who_;
    Watch watch_ = nullptr;
    void* context_ = nullptr;
};
}  // namespace detail

// Messages are trivially copyable. One host thread at a time, and one thread of a kernel at a time through a
// MailboxView. The mailbox keeps its memory open for concurrent use, so plain views and arguments of it are refused.
// Movable; a moved-from mailbox may only be destroyed or assigned to. Destroying a mailbox that a kernel uses waits for
// that kernel, as with any buffer.
template <class Request, class Reply>
class Mailbox {
public:
    using View = MailboxView<Request, Reply>;
    using Word = MailboxWord<Request, Reply>;

    // `capacity`: the number of requests, and of replies, that may be in flight; a power of two up to 2^20. Errors:
    // invalid_argument, and those of allocating.
    static Result<Mailbox> create(Device& device, std::uint32_t capacity = 16) {
        const detail::MailboxShape shape{detail::message_words<Request>, detail::message_words<Reply>, capacity};
        Result<MemoryKind> kind = detail::MailboxCore::kind_for(device, capacity);
        if (!kind) return std::move(kind).error();
        Result<Buffer<Word>> memory = device.allocate<Word>(shape.words(), *kind);
        if (!memory) return std::move(memory).error();
        Result<detail::MailboxCore> core = detail::MailboxCore::open(device, memory->state(), shape);
        if (!core) return std::move(core).error();
        return Mailbox(*std::move(memory), *std::move(core));
    }

    // A kernel that receives the request also sees what this thread wrote into other memory before. For replies the
    // kernel chooses (MailboxServer::reply()). false: no room now. Errors: invalid_handle (the other side left an
    // impossible counter or stamp).
    Result<bool> try_send(const Request& request) {
        std::uint32_t words[detail::message_words<Request>] = {};
        std::memcpy(words, &request, sizeof request);
        return core_.try_send(words);
    }
    // nullopt: no reply now.
    Result<std::optional<Reply>> try_receive() {
        std::uint32_t words[detail::message_words<Reply>];
        Result<bool> received = core_.try_receive(words);
        if (!received) return std::move(received).error();
        if (!*received) return std::optional<Reply>();
        return std::optional<Reply>(to_reply(words));
    }
    // As above, but waits for room or for a reply. Further errors: timed_out, not_ready (Wait::never()), device_lost.
    Result<void> send(const Request& request, Wait wait = {}) {
        std::uint32_t words[detail::message_words<Request>] = {};
        std::memcpy(words, &request, sizeof request);
        return core_.send(words, wait);
    }
    Result<Reply> receive(Wait wait = {}) {
        std::uint32_t words[detail::message_words<Reply>];
        Result<void> received = core_.receive(words, wait);
        if (!received) return std::move(received).error();
        return to_reply(words);
    }
    // Tells the kernel to answer the requests sent and to return (finish), or to return at once (abandon).
    void command(protocol::ServiceCommand command) { core_.command(command); }
    protocol::ServiceState state() { return core_.protocol().state(); }

    // The launch argument for a MailboxView parameter.
    Buffer<Word>& device_end() noexcept { return memory_; }
    MemoryKind kind() const noexcept { return memory_.kind(); }
    // For code that takes many messages at once, and for services.
    detail::MailboxCore& core() noexcept { return core_; }

private:
    Mailbox(Buffer<Word> memory, detail::MailboxCore core) : memory_(std::move(memory)), core_(std::move(core)) {}
    static Reply to_reply(const std::uint32_t* words) {
        Reply reply;
        std::memcpy(&reply, words, sizeof reply);
        return reply;
    }
    Buffer<Word> memory_;
    detail::MailboxCore core_;  // declared last: closes before the memory is released
};

}  // namespace v0
}  // namespace isthmus
