// Accepts, admits, sends; whoever breaks off is one line on standard error.
#include "admission.hpp"

#include "ring_message.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace isthmus::tools::share {

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
    while (!stopped_.load(std::memory_order_acquire)) {
        Result<bool> came = listener.wait_for_connection(std::chrono::milliseconds(50));
        if (came && !*came) continue;
        Result<void> done = came ? admit(listener) : Result<void>(came.error());
        if (done) continue;
        fmt::print(stderr, "isthmus: share: a viewer was not admitted: {}\n", done.error().message());
        if (!came) return;
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
