// SPDX-License-Identifier: Apache-2.0
// Mailbox: its memory, and waiting for the other side.
#include <isthmus/concurrent/mailbox.hpp>

#include "buffer_state.hpp"
#include "concurrent_errors.hpp"
#include "device_state.hpp"
#include "service_rules.hpp"
#include "wait_pause.hpp"

#include <chrono>
#include <cstring>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace detail {

using protocol::RingStatus;

MailboxCore::MailboxCore(std::shared_ptr<DeviceState> device, ConcurrentScope scope, const MailboxShape& shape)
    : device_(std::move(device)), scope_(std::move(scope)), who_("a kernel") {
    client_.emplace(protocol::SystemAtomics{}, shape.place(static_cast<std::uint32_t*>(scope_.data())));
}

Result<MemoryKind> MailboxCore::kind_for(const Device& device, std::uint32_t capacity) {
    constexpr std::uint32_t most = 1u << 20;
    if (capacity == 0 || capacity > most || (capacity & (capacity - 1)) != 0) {
        return make_error<errors::mailbox_capacity>(capacity);
    }
    return rules::mailbox_memory(device.capabilities()).kind;
}

Result<MailboxCore> MailboxCore::open(Device& device, const std::shared_ptr<BufferState>& buffer,
                                      const MailboxShape& shape) {
    Result<ConcurrentScope> scope = open_concurrent(buffer, Wait{});
    if (!scope) return std::move(scope).error();
    // No kernel uses it yet: plain stores, made visible by the first launch.
    std::memset(scope->data(), 0, scope->size_bytes());
    return MailboxCore(device.state(), *std::move(scope), shape);
}

Result<bool> MailboxCore::try_send(const std::uint32_t* words) {
    const RingStatus status = client_->try_send(words);
    if (status == RingStatus::broken) return make_error<errors::mailbox_is_broken>(who_);
    return status == RingStatus::done;
}

Result<bool> MailboxCore::try_receive(std::uint32_t* words) {
    const RingStatus status = client_->try_receive(words);
    if (status == RingStatus::broken) return make_error<errors::mailbox_is_broken>(who_);
    return status == RingStatus::done;
}

void MailboxCore::drop_replies() {
    while (client_->replies().available() == RingStatus::done) client_->replies().free();
}

template <class Try>
Result<void> MailboxCore::until(Try attempt, const Wait& wait, std::string_view what) {
    using Clock = std::chrono::steady_clock;
    constexpr std::uint32_t looks_between_clocks = 64;
    constexpr std::chrono::nanoseconds between_watches = std::chrono::milliseconds(1);
    const std::chrono::nanoseconds timeout = wait.timeout.value_or(device_->config->wait_timeout);
    Clock::time_point begin{};
    std::chrono::nanoseconds next_watch = between_watches;
    for (std::uint32_t looks = 0;; ++looks) {
        Result<bool> done = attempt();
        if (!done) return std::move(done).error();
        if (*done) return {};
        if (wait.refuse) return make_error<errors::mailbox_not_ready>(what, who_);
        if (looks == 0) begin = Clock::now();
        if (looks % looks_between_clocks != looks_between_clocks - 1) continue;
        const std::chrono::nanoseconds waited = Clock::now() - begin;
        if (waited >= timeout) return make_error<errors::mailbox_timed_out>(what, who_, timeout.count() / 1000);
        if (waited >= next_watch) {
            if (device_->bars(rules::PublicCall::wait_for_mailbox))
                return device_->refusal(rules::PublicCall::wait_for_mailbox);
            Result<void> alive = watch_ != nullptr ? watch_(context_) : Result<void>();
            if (!alive) {  // messages sent before the end still count
                done = attempt();
                return done && *done ? Result<void>() : alive;
            }
            next_watch = waited + between_watches;
        }
        pause_between_queries(device_->config->wait_policy, waited, timeout - waited);
        protocol::SystemAtomics{}.pause(looks);
    }
}

Result<void> MailboxCore::send(const std::uint32_t* words, const Wait& wait) {
    return until([&] { return try_send(words); }, wait, "there was no room for a request to");
}
Result<void> MailboxCore::receive(std::uint32_t* words, const Wait& wait) {
    return until([&] { return try_receive(words); }, wait, "there was no reply from");
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
