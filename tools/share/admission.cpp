// Accepts, admits, sends; whoever breaks off is one line on standard error.
#include "admission.hpp"

#include "ring_message.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

namespace isthmus::tools::share {
namespace {

// Passes only where this process or the system has room again, whoever connects.
bool is_about_this_process(Code code) {
    return code == Code::system_limit || code == Code::out_of_memory || code == Code::system_error;
}

}  // namespace

Admission::Admission(Listener listener, Ring& ring, std::mutex& ring_mutex, const camera::FrameShape& shape)
    : ring_(ring),
      ring_mutex_(ring_mutex),
      shape_(shape),
      thread_([this, own = std::move(listener)]() mutable { run(std::move(own)); }) {}

void Admission::stop() {
    stopped_.store(true, std::memory_order_release);
    if (thread_.joinable()) thread_.join();
}

void Admission::run(Listener listener) {
    std::string said;
    while (!stopped_.load(std::memory_order_acquire)) {
        Result<bool> came = listener.wait_for_connection(std::chrono::milliseconds(50));
        if (!came) {
            fmt::print(stderr, "isthmus: share: nobody is admitted any more: {}\n", came.error().message());
            ended_ = came.error();
            has_ended_.store(true, std::memory_order_release);
            return;
        }
        if (!*came) continue;
        Result<void> done = admit(listener);
        const bool own = !done && is_about_this_process(done.code());
        if (!done && !(own && said == done.error().message())) {
            fmt::print(stderr, "isthmus: share: a viewer was not admitted: {}\n", done.error().message());
        }
        said = own ? std::string(done.error().message()) : std::string();
        // Who could not be accepted stands there still.
        if (own) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
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
    if (Result<void> sent = channel->send(ring_message_kind, message, fds); !sent) return sent;
    if (Result<void> received = channel->wait_received(); !received) return received;
    admitted_.fetch_add(1, std::memory_order_release);
    return {};
}

}  // namespace isthmus::tools::share
