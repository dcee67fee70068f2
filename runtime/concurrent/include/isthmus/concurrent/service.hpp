// SPDX-License-Identifier: Apache-2.0
// Service: a kernel that answers requests until it is stopped, as a scope.
#pragma once

#include <isthmus/concurrent/mailbox.hpp>
#include <isthmus/device.hpp>
#include <isthmus/export.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/result.hpp>
#include <isthmus/stream.hpp>
#include <isthmus/wait.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace isthmus {
inline namespace v0 {

namespace detail {
// The untyped part of a service: its stream, its registration with the device, and its end.
class ISTHMUS_API ServiceCore {
public:
    // Refused on devices where no kernel may run until it is told to stop.
    static Result<std::unique_ptr<ServiceCore>> open(Device& device, MailboxCore& mailbox, const KernelInfo& kernel);
    ServiceCore(const ServiceCore&) = delete;
    ServiceCore& operator=(const ServiceCore&) = delete;
    ~ServiceCore();  // abandons a kernel that does not stop: tells it to end at once and logs that

    Stream& stream() noexcept { return stream_; }
    void launched(std::uint64_t position);
    // One deadline for sending and receiving. First drops the replies to earlier calls that timed out.
    Result<void> call(const std::uint32_t* request, std::uint32_t* reply, const Wait& wait);
    Result<void> stop(const Wait& wait);
    bool running() const noexcept { return registered_ != 0; }

private:
    ServiceCore(std::shared_ptr<DeviceState> device, const Stream& stream, MailboxCore& mailbox,
                const KernelInfo& kernel, std::uint64_t registered);
    static Result<void> watch(void* self);
    bool answered_all();
    Result<void> wait_for_end(const Wait& wait);
    void unregister();

    std::shared_ptr<DeviceState> device_;
    Stream stream_;
    MailboxCore& mailbox_;
    const KernelInfo& kernel_;
    std::uint64_t position_ = 0;
    bool abandoned_ = false;        // the kernel was told to end at once: `finish` is not sent afterwards
    std::uint64_t owed_ = 0;        // replies due to calls that timed out
    std::uint64_t registered_ = 0;  // id among the device's services; 0: not registered (any more)
};
}  // namespace detail

// Loads a kernel's code onto the device now instead of at its first launch: while a service runs, a launch that has to
// load code is refused. Errors: no_gpu_code, in_use (a service runs already), device_lost.
ISTHMUS_API Result<void> prepare(Device& device, const KernelInfo& kernel);
template <class Signature>
Result<void> prepare(Device& device, const Kernel<Signature>& kernel) {
    return prepare(device, kernel.info());
}

// While a service runs on a device, calls that would wait for it in the driver are refused with Code::in_use, which
// names the kernel: releasing memory other than pool and host memory, Device::synchronize, loading code, switching peer
// access, and waiting for what the service uses. Buffers that go out of scope are freed when it stops. docs/sharing.md
// has the list. One host thread at a time. Starting a service waits for such calls of other threads.
template <class Request, class Reply>
class Service {
public:
    // Launches one item of the kernel on a stream of its own; the kernel's first parameter is a MailboxView<Request,
    // Reply>. Errors: unsupported (the CPU device; a watchdog ends long kernels on this device), timed_out (another
    // thread's driver call that would wait for the service takes longer than the runtime's wait timeout), and those of
    // a launch.
    template <class... P, class... A>
    static Result<Service> start(Device& device, Mailbox<Request, Reply> mailbox,
                                 const Kernel<void(Index, MailboxView<Request, Reply>, P...)>& kernel,
                                 A&&... arguments) {
        auto held = std::make_unique<Mailbox<Request, Reply>>(std::move(mailbox));
        Result<std::unique_ptr<detail::ServiceCore>> core =
            detail::ServiceCore::open(device, held->core(), kernel.info());
        if (!core) return std::move(core).error();
        Result<LaunchReport> launched =
            (*core)->stream().launch(kernel, 1, held->device_end(), std::forward<A>(arguments)...);
        if (!launched) return std::move(launched).error();
        (*core)->launched(launched->position);
        return Service(std::move(held), *std::move(core));
    }
    // The same, with a new mailbox.
    template <class... P, class... A>
    static Result<Service> start(Device& device, const Kernel<void(Index, MailboxView<Request, Reply>, P...)>& kernel,
                                 A&&... arguments) {
        Result<Mailbox<Request, Reply>> mailbox = Mailbox<Request, Reply>::create(device);
        if (!mailbox) return std::move(mailbox).error();
        return start(device, *std::move(mailbox), kernel, std::forward<A>(arguments)...);
    }
    Service(Service&&) noexcept = default;
    Service& operator=(Service&& other) noexcept {
        if (this == &other) return *this;
        end();
        mailbox_ = std::move(other.mailbox_);
        core_ = std::move(other.core_);
        return *this;
    }
    ~Service() { end(); }

    // Sends a request and waits for the next reply; one deadline for both. A call that timed out leaves its request
    // with the kernel; a later call drops that reply. Errors: timed_out, not_ready, invalid_handle (the service has
    // ended, or its kernel left an impossible value in the mailbox), device_lost.
    Result<Reply> call(const Request& request, Wait wait = {}) {
        std::uint32_t sent[detail::message_words<Request>] = {};
        std::memcpy(sent, &request, sizeof request);
        std::uint32_t received[detail::message_words<Reply>];
        if (Result<void> called = core_->call(sent, received, wait); !called) return std::move(called).error();
        Reply reply;
        std::memcpy(&reply, received, sizeof reply);
        return reply;
    }
    // Requests and replies one by one, for programs that keep several in flight. Not to be used between a call that
    // timed out and the next call: it would take that call's replies.
    Mailbox<Request, Reply>& mailbox() noexcept { return *mailbox_; }

    // Tells the kernel to answer the requests sent so far and to end, and waits for its end; replies not yet taken are
    // dropped. timed_out names the kernel that did not end: it was then told to end at once, and stop() may be called
    // again.
    Result<void> stop(Wait wait = {}) { return core_->stop(wait); }
    bool running() const noexcept { return core_ && core_->running(); }

private:
    Service(std::unique_ptr<Mailbox<Request, Reply>> mailbox, std::unique_ptr<detail::ServiceCore> core)
        : mailbox_(std::move(mailbox)), core_(std::move(core)) {}
    void end() noexcept {
        if (core_ && core_->running()) (void)core_->stop(Wait{});
        core_.reset();
        mailbox_.reset();
    }
    std::unique_ptr<Mailbox<Request, Reply>> mailbox_;
    std::unique_ptr<detail::ServiceCore> core_;
};

}  // namespace v0
}  // namespace isthmus
