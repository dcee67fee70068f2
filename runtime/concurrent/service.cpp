// SPDX-License-Identifier: Apache-2.0
// Service: launches a resident kernel, watches it and ends it.
#include <isthmus/concurrent/service.hpp>

#include "composed.hpp"
#include "concurrent_errors.hpp"
#include "device_state.hpp"
#include "load_kernel.hpp"
#include "running_services.hpp"
#include "service_rules.hpp"
#include "short_name.hpp"
#include "stream_state.hpp"
#include "wait_pause.hpp"

#include <chrono>
#include <string>
#include <thread>

namespace isthmus {
inline namespace v0 {

Result<void> prepare(Device& device, const KernelInfo& kernel) {
    return detail::load_kernel(*device.state(), kernel);
}

namespace detail {
using protocol::ServiceCommand;
using protocol::ServiceState;

ServiceCore::ServiceCore(std::shared_ptr<DeviceState> device, const Stream& stream, MailboxCore& mailbox,
                         const KernelInfo& kernel, std::uint64_t registered)
    : device_(std::move(device)), stream_(stream), mailbox_(mailbox), kernel_(kernel), registered_(registered) {
    stream_.state()->serves.store(true, std::memory_order_release);  // before a wait for its kernel is possible
}

Result<std::unique_ptr<ServiceCore>> ServiceCore::open(Device& device, MailboxCore& mailbox, const KernelInfo& kernel) {
    if (device.state()->bars(rules::PublicCall::start_service)) {
        return device.state()->refusal(rules::PublicCall::start_service,
                                       composed("a service of kernel '{}'", kernel.name));
    }
    if (const AccessAnswer answer = rules::persistent_kernel(device.capabilities()); !answer) {
        return make_error<errors::service_not_possible>(kernel.name, device.name(), answer.reason, answer.remedy);
    }
    if (mailbox.device() != device.state()) {
        return make_error<errors::service_with_mailbox_of_another_device>(kernel.name);
    }
    if (Result<void> loaded = prepare(device, kernel); !loaded) return std::move(loaded).error();
    Result<Stream> stream = device.create_stream();
    if (!stream) return std::move(stream).error();
    // A launch mode that waits for the kernel would never return.
    const LaunchMode mode = stream->launch_mode();
    if (mode == LaunchMode::verify || mode == LaunchMode::staged) stream->set_launch_mode(LaunchMode::checked);
    mailbox.protocol().renew();
    // The last call that may wait: from here on, driver calls of other threads avoid waiting for the service.
    const RuntimeConfig& config = *device.state()->config;
    const Deadline deadline(Wait{}, config.wait_timeout);
    Result<std::uint64_t> begun = device.state()->services.begin(kernel.name, deadline, config.wait_policy);
    if (!begun) return std::move(begun).error();
    return std::unique_ptr<ServiceCore>(new ServiceCore(device.state(), *std::move(stream), mailbox, kernel, *begun));
}

void ServiceCore::launched(std::uint64_t position) {
    position_ = position;
    mailbox_.watch(&ServiceCore::watch, this, kernel_.name);
    // Holds neither the device nor the stream: those hold the device's services.
    device_->services.watch(registered_,
                            [device = device_.get(), weak = std::weak_ptr<StreamState>(stream_.state()), position] {
                                if (device->is_lost()) return true;
                                const std::shared_ptr<StreamState> stream = weak.lock();
                                if (!stream) return device->wait_for_ended_streams(Wait::never()).ok();
                                return stream->poll().ok() && stream->reached(position);
                            });
    // Makes the event that watch() asks, so that the first late reply does not. If it fails, watch() tries again.
    (void)stream_.poll();
}

Result<void> ServiceCore::call(const std::uint32_t* request, std::uint32_t* reply, const Wait& wait) {
    using Clock = std::chrono::steady_clock;
    const std::chrono::nanoseconds timeout = wait.timeout.value_or(device_->config->wait_timeout);
    const Clock::time_point begin = Clock::now();
    if (Result<void> sent = mailbox_.send(request, wait); !sent) return sent;
    // Replies come in request order: the last one owed answers this request.
    for (++owed_; owed_ > 0; --owed_) {
        const std::chrono::nanoseconds left = timeout - (Clock::now() - begin);
        if (Result<void> received = mailbox_.receive(reply, wait.refuse ? wait : Wait::at_most(left)); !received) {
            return received;
        }
    }
    return {};
}

ServiceCore::~ServiceCore() {
    mailbox_.watch(nullptr, nullptr, "a kernel");
    if (registered_ == 0 || device_->config->forked()) return;
    if (position_ == 0 || device_->is_lost()) {  // never launched, or the device is lost
        unregister();
        return;
    }
    // A destructor cannot ask for another stop(): retries transient failures here, but not a deadline.
    constexpr int tries = 3;
    for (int attempt = 0; running() && !abandoned_ && attempt < tries; ++attempt) (void)stop(Wait{});
    if (!running()) return;
    mailbox_.command(ServiceCommand::abandon);
    device_->config->say(
        Severity::error,
        composed("the kernel of service '{}' did not end and was given up: what waits for it stays until it does",
                 kernel_.name));
    registered_ = 0;  // its watch callback continues
}

// An error if the kernel has ended or failed.
Result<void> ServiceCore::watch(void* self) {
    ServiceCore& service = *static_cast<ServiceCore*>(self);
    if (service.registered_ != 0) {
        StreamState& stream = *service.stream_.state();
        if (Result<std::uint64_t> asked = stream.poll(); !asked) return std::move(asked).error();
        if (!stream.reached(service.position_)) return {};
    }
    return make_error<errors::service_has_ended>(service.kernel_.name);
}

void ServiceCore::unregister() {
    stream_.state()->serves.store(false, std::memory_order_release);
    if (registered_ != 0) device_->services.end(std::exchange(registered_, 0));
}

bool ServiceCore::answered_all() {
    const ServiceState state = mailbox_.protocol().state();
    mailbox_.drop_replies();  // a kernel that waits for room in the mailbox would never end
    return state == ServiceState::ended || state == ServiceState::broken;
}

Result<void> ServiceCore::wait_for_end(const Wait& wait) {
    using Clock = std::chrono::steady_clock;
    const std::chrono::nanoseconds timeout = wait.timeout.value_or(device_->config->wait_timeout);
    const Clock::time_point begin = Clock::now();
    StreamState& stream = *stream_.state();
    std::chrono::nanoseconds waited{};
    while (!answered_all()) {
        if (Result<std::uint64_t> asked = stream.poll(); !asked) return std::move(asked).error();
        if (stream.reached(position_)) return {};  // the kernel returned by itself
        waited = Clock::now() - begin;
        if (wait.refuse) return make_error<errors::service_still_runs>();
        if (waited >= timeout) return make_error<errors::service_not_ended_in_time>();
        pause_between_queries(device_->config->wait_policy, waited, timeout - waited);
    }
    // The last reply has arrived; only the kernel's exit remains.
    stream.serves.store(false, std::memory_order_release);
    Result<void> ended = stream.wait_until(position_, wait.refuse ? wait : Wait::at_most(timeout - waited));
    if (!ended) stream.serves.store(true, std::memory_order_release);
    return ended;
}

Result<void> ServiceCore::stop(const Wait& wait) {
    if (registered_ == 0) return {};
    if (device_->bars(rules::PublicCall::stop_service)) return device_->refusal(rules::PublicCall::stop_service);
    if (device_->is_lost()) {
        unregister();
        return device_->refusal(rules::PublicCall::stop_service);
    }
    if (!abandoned_) mailbox_.command(ServiceCommand::finish);
    Result<void> ended = wait_for_end(wait);
    if (ended || device_->is_lost()) {
        const bool broken = ended && mailbox_.protocol().state() == ServiceState::broken;
        unregister();
        if (!broken) return ended;
        return make_error<errors::service_found_mailbox_broken>(kernel_.name);
    }
    if (ended.code() != Code::timed_out) return ended;
    abandoned_ = true;
    mailbox_.command(ServiceCommand::abandon);
    return make_error<errors::service_does_not_end>(short_name(kernel_.name), message_in_words(ended.error()));
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
