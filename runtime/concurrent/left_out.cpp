// SPDX-License-Identifier: Apache-2.0
// Public calls of this room in a build without it: each refuses before any other check.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunused-private-field"  // the functions that use them are left out
#endif

#include <isthmus/concurrent/atomic_wait.hpp>
#include <isthmus/concurrent/frame_ring.hpp>
#include <isthmus/concurrent/mailbox.hpp>
#include <isthmus/concurrent/service.hpp>

#include "left_out.hpp"

namespace isthmus {
inline namespace v0 {
namespace {

Error refused() {
    return detail::left_out("concurrent");
}

}  // namespace

namespace detail {

Result<void> wait_until_changed(bool (* /*changed*/)(const void*), const void* /*state*/, Wait /*wait*/) {
    return refused();
}

// FrameRing::create() calls check_ring() before it makes a ring.
struct RingCore::Parts {};
std::chrono::nanoseconds wait_timeout_of(const Device& /*device*/) noexcept {
    return {};
}
Result<void> check_ring(const std::size_t* /*bytes*/, std::size_t /*count*/) noexcept {
    return refused();
}
RingCore::RingCore(std::size_t /*slots*/, WhenFull /*when_full*/, std::chrono::nanoseconds /*wait_timeout*/) {}
RingCore::~RingCore() = default;
void RingCore::be_observed(const Device& /*device*/) {}
Result<RingCore::Taken> RingCore::begin(Wait /*wait*/) {
    return refused();
}
void RingCore::publish(const Taken& /*taken*/) noexcept {}
void RingCore::abandon(std::size_t /*slot*/) noexcept {}
std::uint64_t RingCore::next_frame() const noexcept {
    return 0;
}
Result<RingCore::Taken> RingCore::take(Wait /*wait*/) {
    return refused();
}
void RingCore::give_back(const Taken& /*taken*/) noexcept {}
void RingCore::close() noexcept {}
bool RingCore::ended() const noexcept {
    return true;
}
RingCounts RingCore::counts() const noexcept {
    return {};
}

// Mailbox::create() calls kind_for() before it allocates.
MailboxCore::MailboxCore(std::shared_ptr<DeviceState> device, ConcurrentScope scope, const MailboxShape&)
    : device_(std::move(device)), scope_(std::move(scope)) {}
Result<MemoryKind> MailboxCore::kind_for(const Device& /*device*/, std::uint32_t /*capacity*/) {
    return refused();
}
Result<MailboxCore> MailboxCore::open(Device& /*device*/, const std::shared_ptr<BufferState>& /*buffer*/,
                                      const MailboxShape& /*shape*/) {
    return refused();
}
Result<bool> MailboxCore::try_send(const std::uint32_t* /*words*/) {
    return refused();
}
Result<bool> MailboxCore::try_receive(std::uint32_t* /*words*/) {
    return refused();
}
Result<void> MailboxCore::send(const std::uint32_t* /*words*/, const Wait& /*wait*/) {
    return refused();
}
Result<void> MailboxCore::receive(std::uint32_t* /*words*/, const Wait& /*wait*/) {
    return refused();
}
void MailboxCore::drop_replies() {}

// Service::start() needs a mailbox, and none can exist.
ServiceCore::ServiceCore(std::shared_ptr<DeviceState> device, const Stream& stream, MailboxCore& mailbox,
                         const KernelInfo& kernel, std::uint64_t registered)
    : device_(std::move(device)), stream_(stream), mailbox_(mailbox), kernel_(kernel), registered_(registered) {}
ServiceCore::~ServiceCore() = default;
Result<std::unique_ptr<ServiceCore>> ServiceCore::open(Device& /*device*/, MailboxCore& /*mailbox*/,
                                                       const KernelInfo& /*kernel*/) {
    return refused();
}
void ServiceCore::launched(std::uint64_t /*position*/) {}
Result<void> ServiceCore::call(const std::uint32_t* /*request*/, std::uint32_t* /*reply*/, const Wait& /*wait*/) {
    return refused();
}
Result<void> ServiceCore::stop(const Wait& /*wait*/) {
    return refused();
}
Result<void> ServiceCore::watch(void* /*self*/) {
    return refused();
}
bool ServiceCore::answered_all() {
    return true;
}
Result<void> ServiceCore::wait_for_end(const Wait& /*wait*/) {
    return refused();
}
void ServiceCore::unregister() {}

}  // namespace detail

Result<void> prepare(Device& /*device*/, const KernelInfo& /*kernel*/) {
    return refused();
}

}  // namespace v0
}  // namespace isthmus
