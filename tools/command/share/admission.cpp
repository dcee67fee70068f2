// SPDX-License-Identifier: Apache-2.0
// Accepts, admits and sends. A failed connection is one line.
#include "admission.hpp"

#include "ring_message.hpp"

#include <array>
#include <exception>
#include <string>
#include <utility>

namespace isthmus::tools::share {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds receipt_time{30};  // a viewer that is not counted has the ring all the same
constexpr std::chrono::milliseconds idle{50};
constexpr std::chrono::milliseconds while_receipts_are_due{5};

// Whether the error ends only when this process or the system has resources again, whatever process connects.
bool is_about_this_process(Code code) {
    return code == Code::system_limit || code == Code::out_of_memory || code == Code::system_error;
}

}  // namespace

Admission::Admission(Listener listener, Ring& ring, std::mutex& ring_mutex, const camera::FrameShape& shape,
                     Notices::Say say)
    : ring_(ring),
      ring_mutex_(ring_mutex),
      shape_(shape),
      notices_(std::move(say)),
      thread_([this, own = std::move(listener)]() mutable { run(std::move(own)); }) {}

void Admission::stop() {
    stopped_.store(true, std::memory_order_release);
    if (thread_.joinable()) thread_.join();
}

void Admission::run(Listener listener) noexcept {
    while (!stopped_.load(std::memory_order_acquire)) {
        try {
            if (Result<void> served = serve(listener); !served) {
                notices_.say("share: no process is admitted any more: " + std::string(served.error().message()));
                ended_ = served.error();
                has_ended_.store(true, std::memory_order_release);
                break;
            }
        } catch (const std::exception& error) {  // out of memory: one connection is lost, and no frame
            notices_.say(error.what());
            std::this_thread::sleep_for(idle);
        }
    }
    receipts_.clear();
    notices_.say_left_out();
}

// An error means that the listener has ended.
Result<void> Admission::serve(Listener& listener) {
    Result<bool> came = listener.wait_for_connection(receipts_.empty() ? idle : while_receipts_are_due);
    if (!came) return std::move(came).error();
    if (*came) {
        if (Result<void> admitted = admit(listener); !admitted) report(admitted.error());
    }
    collect_receipts();
    return {};
}

Result<void> Admission::admit(Listener& listener) {
    Result<Channel> channel = listener.accept();
    if (!channel) return std::move(channel).error();
    const auto admitted = [&] {
        const std::lock_guard lock(ring_mutex_);
        return ring_.admit();
    };
    Result<SharedRingDescriptor> descriptor = admitted();
    if (!descriptor) return std::move(descriptor).error();
    const RingMessage message = ring_message(*descriptor, shape_);
    const std::array<int, SharedRingDescriptor::fd_count> fds = descriptor->fds();
    // The first message on a channel has room in the socket's buffer, so that send() does not wait.
    if (Result<void> sent = channel->send(ring_message_kind, message, fds); !sent) return sent;
    receipts_.push_back({std::move(channel).value(), Clock::now() + receipt_time});
    said_.clear();
    return {};
}

void Admission::collect_receipts() {
    for (std::size_t at = 0; at < receipts_.size();) {
        Receipt& receipt = receipts_[at];
        Result<bool> received = receipt.channel.wait_received(std::chrono::nanoseconds(0));
        if (received && !*received && Clock::now() < receipt.deadline) {
            ++at;
            continue;
        }
        if (!received) {
            report(received.error());
        } else if (*received) {
            admitted_.fetch_add(1, std::memory_order_release);
        } else {
            report(Error(
                Code::timed_out,
                "pid " + std::to_string(receipt.channel.peer().pid) + " did not say in time that it received the ring",
                "ask that process what it waits for"));
        }
        receipts_.erase(receipts_.begin() + static_cast<std::ptrdiff_t>(at));
    }
}

void Admission::report(const Error& error) {
    const bool own = is_about_this_process(error.code());
    const std::string line(error.message());
    if (!own || said_ != line) notices_.say("share: a viewer was not admitted: " + line);
    said_ = own ? line : std::string();
    // The connection that could not be accepted is still pending.
    if (own) std::this_thread::sleep_for(idle);
}

}  // namespace isthmus::tools::share
