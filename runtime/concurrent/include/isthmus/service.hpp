// Service: a kernel that answers requests until it is stopped, as a scope.
#pragma once

#include <isthmus/device.hpp>
#include <isthmus/export.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/mailbox.hpp>
#include <isthmus/result.hpp>
#include <isthmus/stream.hpp>
#include <isthmus/wait.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace isthmus::inline v0 {

namespace detail {
// A service without its types: its stream, its place among the device's services, and its end.
class ISTHMUS_API ServiceCore {
public:
    // Refuses where no kernel may run until it is told to stop.
    static Result<std::unique_ptr<ServiceCore>> open(Device& device, MailboxCore& mailbox, const KernelInfo& kernel);
    ServiceCore(const ServiceCore&) = delete;
    ServiceCore& operator=(const ServiceCore&) = delete;
    ~ServiceCore();  // a kernel that was not stopped is told to end at once, and given up: the log says so

    Stream& stream() noexcept { return stream_; }
    void launched(std::uint64_t position);
    // One deadline for both ways. Replies to calls that did not wait for them are dropped before.
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
    bool abandoned_ = false;        // told to end at once: nothing milder is said after that
    std::uint64_t owed_ = 0;        // replies to calls whose deadline came first
    std::uint64_t registered_ = 0;  // among the device's services; 0: not, or no more
};
}  // namespace detail

// Loads a kernel's code onto the device now, and not at its first launch: beside a service that would be refused.
// Errors: no_gpu_code, in_use (a service runs already), device_lost.
ISTHMUS_API Result<void> prepare(Device& device, const KernelInfo& kernel);
template <class Signature>
Result<void> prepare(Device& device, const Kernel<Signature>& kernel) {
    return prepare(device, kernel.info());
}

// While one runs on a device, calls that would wait for it in the driver are refused with Code::in_use, which names the
// kernel: releasing memory other than pool and host memory, Device::synchronize, loading code, switching peer access,
// and waiting for what the service uses. Buffers that go out of scope are freed when it stops. docs/sharing.md has the
// list. One thread of the host at a time; starting one waits for such calls of other threads.
template <class Request, class Reply>
class Service {
public:
    // Launches one item of the kernel, whose first parameter is a MailboxView<Request, Reply>, on a stream of its own.
    // Errors: unsupported (the CPU device; a watchdog ends long kernels there), timed_out (another thread's call that
    // would wait for it is in the driver, for longer than the runtime's wait timeout), and those of a launch.
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
    // … with a mailbox of its own.
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

    // Sends, and waits for the next reply; one deadline for both. A call that ran out leaves its request with the
    // kernel, and a later call drops that reply. Errors: timed_out, not_ready, invalid_handle (the service has ended,
    // or its kernel left nonsense in the mailbox), device_lost.
    Result<Reply> call(const Request& request, Wait wait = {}) {
        std::uint32_t sent[detail::message_words<Request>] = {};
        std::memcpy(sent, &request, sizeof request);
        std::uint32_t received[detail::message_words<Reply>];
        if (Result<void> called = core_->call(sent, received, wait); !called) return std::move(called).error();
        Reply reply;
        std::memcpy(&reply, received, sizeof reply);
        return reply;
    }
    // Requests and replies one by one, for those that keep several under way; not between a call that ran out and the
    // next one, whose replies they would take.
    Mailbox<Request, Reply>& mailbox() noexcept { return *mailbox_; }

    // Tells the kernel to answer what it was sent and to end, and waits for that; replies that nobody took are dropped.
    // timed_out names a kernel that did not end: it was told to end at once, and stop() may be tried again.
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

}  // namespace isthmus::inline v0
