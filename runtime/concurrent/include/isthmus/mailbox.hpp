// Mailbox: requests from the CPU to a kernel that runs, and its replies, by loads and stores alone: on every machine,
// without a driver call.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/concurrent_view.hpp>
#include <isthmus/device.hpp>
#include <isthmus/export.hpp>
#include <isthmus/mailbox_view.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace isthmus::inline v0 {

namespace detail {
// A mailbox without its types.
class ISTHMUS_API MailboxCore {
public:
    // Where it lies best on the device; a capacity that is no power of two is refused.
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
    // Asked every millisecond of a wait: an error ends it. The service behind the mailbox sets it; `who` has static
    // storage and is what messages call the other side.
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
    std::uint32_t reply_words_;
    std::optional<protocol::ServiceClient<protocol::SystemAtomics>> client_;
    std::string_view who_;
    Watch watch_ = nullptr;
    void* context_ = nullptr;
};
}  // namespace detail

// Messages are plain data. One thread of the host at a time; kernels one thread at a time, by a MailboxView. Keeps the
// memory open for concurrent use, so that plain views and arguments of it are refused. Movable; moved-from it may only
// be destroyed or assigned to. Destroying it while a kernel uses it waits for that as any buffer does.
template <class Request, class Reply>
class Mailbox {
public:
    using View = MailboxView<Request, Reply>;
    using Word = MailboxWord<Request, Reply>;

    // `capacity`: how many requests, and how many replies, may be under way; a power of two up to 2^20.
    // Errors: invalid_argument, and those of allocating.
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

    // The kernel that receives a request sees what this thread wrote before, in other memory, too; for replies that is
    // the kernel's choice (MailboxServer::reply()).
    // false: no room now. Errors: invalid_handle where the other side left a counter or a stamp that cannot be.
    Result<bool> try_send(const Request& request) {
        std::uint32_t words[detail::message_words<Request>] = {};
        std::memcpy(words, &request, sizeof request);
        return core_.try_send(words);
    }
    // Nothing: no reply now.
    Result<std::optional<Reply>> try_receive() {
        std::uint32_t words[detail::message_words<Reply>];
        Result<bool> received = core_.try_receive(words);
        if (!received) return std::move(received).error();
        if (!*received) return std::optional<Reply>();
        return std::optional<Reply>(to_reply(words));
    }
    // As above, waiting for room, or for a reply. Further errors: timed_out, not_ready (Wait::never()), device_lost.
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
    // Tells the kernel to answer what was sent and to return (finish), or to return at once (abandon).
    void command(protocol::ServiceCommand command) { core_.command(command); }
    protocol::ServiceState state() { return core_.protocol().state(); }

    // What a launch passes for a MailboxView.
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
    detail::MailboxCore core_;  // closes before the memory goes
};

}  // namespace isthmus::inline v0
