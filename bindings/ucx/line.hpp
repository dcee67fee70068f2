// SPDX-License-Identifier: Apache-2.0
// The authenticated TCP connection beside UCX: greets, carries messages, and knows whether the other end lives.
#pragma once

#include "greeting.hpp"

#include <isthmus/ucx.hpp>

#include <algorithm>
#include <chrono>
#include <deque>

namespace isthmus {
inline namespace v0 {
namespace ucx {

// The time `at_most` from now; the last one of the clock, where that lies beyond it.
inline std::chrono::steady_clock::time_point deadline(std::chrono::nanoseconds at_most) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point now = Clock::now();
    return at_most < Clock::time_point::max() - now ? now + std::max(at_most, std::chrono::nanoseconds(0))
                                                    : Clock::time_point::max();
}

struct Connection::Line {
    using Clock = std::chrono::steady_clock;
    Line(FileDescriptor connected, const ConnectionOptions& chosen, bool near, const ucx_wire::Secret& sends,
         const ucx_wire::Secret& receives)
        : socket(std::move(connected)), options(chosen), loopback(near), sealer(sends), opener(receives) {
        options.key.reset();
    }
    FileDescriptor socket;
    ConnectionOptions options;
    bool loopback;

    // Both return without waiting for the other end; what does not fit into the socket's buffer is kept, up to a limit
    // (peer_lost). pump() reads and writes what is possible, says that this end lives where that is due, and answers
    // peer_lost after silence.
    Result<void> send(ucx_wire::Kind kind, std::span<const std::byte> body);
    Result<void> pump();
    // The next message other than `alive`, if one has arrived.
    std::optional<ucx_wire::Message> next();
    // Waits for such a message; pumps meanwhile. Errors: timed_out, and those of pump().
    Result<ucx_wire::Message> wait(std::chrono::nanoseconds at_most);
    // Whether bytes wait to be written.
    bool behind() const noexcept { return !unsent_.empty(); }

private:
    Result<void> write_on();
    Result<void> read_on();
    ucx_wire::Sealer sealer;
    ucx_wire::Opener opener;
    std::vector<std::byte> unsent_{};
    std::deque<ucx_wire::Message> arrived_{};
    bool ended_ = false;  // by the other end; what arrived before counts
    Clock::time_point heard_ = Clock::now();
    Clock::time_point said_ = Clock::now();
};

}  // namespace ucx
}  // namespace v0
}  // namespace isthmus
