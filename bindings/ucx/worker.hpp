// SPDX-License-Identifier: Apache-2.0
// One UCX worker with one endpoint, and the active messages that both ends use.
#pragma once

#include "greeting.hpp"

#include <isthmus/result.hpp>

#include <ucp/api/ucp.h>

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace isthmus::ucx_wire {

// Whether a call that answered this is made again.
constexpr bool again(Code code) noexcept {
    return code == Code::timed_out || code == Code::not_ready;
}

// How both ends wait.
inline constexpr std::chrono::microseconds spin{50};
inline constexpr int most_turns = 64;  // of UCX, until the connection and the ring are looked at
inline constexpr std::chrono::milliseconds longest_sleep{20};
inline constexpr std::chrono::milliseconds time_to_part{1000};
inline constexpr std::chrono::milliseconds between_pumps{1};  // of the TCP connection: a system call

// Active messages, by their number. Those without the token of the end that they reach are dropped: anybody who reaches
// UCX's port can send some.
enum class Am : unsigned { frame = 1, verdict = 2, receipt = 3 };
// Of `frame`. Its data is the frame: eager where it is small, otherwise by rendezvous, into the receiver's slot.
struct FrameHeader {
    Token token{};               // the receiver's
    std::uint64_t sequence = 0;  // from 0 on each connection, without gaps
    std::uint64_t missed = 0;    // frames that the sender did not send, since the last one
    std::uint64_t whole = 0;     // 1: no verdict follows
};
// Of `verdict`, which the sender sends when the data has left: whether the slot was overwritten meanwhile.
struct VerdictHeader {
    Token token{};  // the receiver's
    std::uint64_t sequence = 0;
    std::uint64_t whole = 0;
};
// Of `receipt`, which the receiver sends when it has published or discarded the frame, and all before it. It repeats
// the last one while it has no room or a frame comes in, so that the sender knows that it lives. Before the first
// frame: no_frame.
struct ReceiptHeader {
    Token token{};  // the sender's
    std::uint64_t sequence = 0;
};
inline constexpr std::uint64_t no_frame = UINT64_MAX;  // one more is 0: as many frames are done
// The header of an active message, if it has the token.
template <class Header>
std::optional<Header> header_in(const void* bytes, std::size_t count, const Token& own) {
    Header header;
    if (count != sizeof header) return std::nullopt;
    std::memcpy(&header, bytes, sizeof header);
    if (!same(header.token, own)) return std::nullopt;
    return header;
}
static_assert(std::endian::native == std::endian::little, "headers of active messages are little-endian");

// Up to this size a frame is copied into its message, and checked before it leaves.
inline constexpr std::size_t most_eager_bytes = 16384;
// Frames on their way at once. Small ones have left their slots, and the receiver keeps them until it has room.
inline constexpr std::size_t most_sent = 4;
inline constexpr std::size_t most_small_sent = 16;
constexpr std::size_t most_on_their_way(std::uint64_t frame_bytes) noexcept {
    return frame_bytes <= most_eager_bytes ? most_small_sent : most_sent;
}

class Worker {
public:
    // Where the other end is on this machine, UCX's network transports listen on loopback alone, unless UCX_NET_DEVICES
    // is set. Where it is not, transports over shared memory are off, unless UCX_TLS is set: an address of the other
    // end could name memory of this machine. `for_device`: memory of CUDA will be received into, and its context is
    // current. Errors: unsupported, out_of_memory.
    static Result<std::unique_ptr<Worker>> create(bool loopback, bool for_device = false);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // For the other end.
    Result<std::vector<std::byte>> address() const;
    // The other end, by its worker's address, which UCX parses and trusts. Errors: peer_lost.
    Result<void> connect(std::span<const std::byte> address);
    // Called from progress().
    void on(Am message, ucp_am_recv_callback_t called, void* with);
    // Registers memory once, so that no transport does it for each frame. Failures are none: UCX then registers it
    // itself.
    void map(void* memory, std::size_t bytes);
    // The same for device memory, whose context must be current. The answer is for receive(): UCX looks itself for the
    // kind of memory, whatever the caller says (UCX 1.22, ucp_datatype_iter_detect_mem_info), unless the request names
    // memory that was registered as device memory. nullptr: UCX cannot, or is older than 1.13.
    void* map_device(void* memory, std::size_t bytes);

    // Sends. `header` and data must stay until the request is complete; nullptr: it is already, and both may go.
    // Errors: peer_lost.
    Result<void*> send(Am message, const void* header, std::size_t header_bytes, std::span<const std::uint8_t> data,
                       bool eager);
    // Receives the data of a message that `on` announced by rendezvous. As send(). `device`: of map_device(), or
    // nullptr for memory that the CPU sees.
    Result<void*> receive(void* descriptor, std::span<std::uint8_t> data, void* device);
    // Whether UCX was built with CUDA, and its transports may use it.
    bool has_cuda() const;
    // Whether a request is complete; frees it if so. Errors: peer_lost.
    Result<bool> complete(void* request);
    // Sends a message without data, whose header UCX copies or this object keeps.
    template <class Header>
    Result<void> tell(Am message, const Header& header) {
        return tell(message, &header, sizeof header);
    }

    // Whether anything happened.
    bool progress() { return ucp_worker_progress(worker_) != 0; }
    // Sleeps until UCX has something to do, `socket` is readable, or the time has passed.
    void sleep(int socket, std::chrono::nanoseconds at_most);
    // The error of the endpoint, if any: peer_lost.
    Result<void> state() const;

    ucp_worker_h handle() const noexcept { return worker_; }

private:
    Worker() = default;
    Result<void> tell(Am message, const void* header, std::size_t bytes);
    struct Told {
        void* request = nullptr;
        std::vector<std::byte> header{};
    };
    static void lost(void* self, ucp_ep_h, ucs_status_t status);
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_ep_h endpoint_ = nullptr;
    int event_ = -1;
    ucs_status_t failed_ = UCS_OK;
    std::vector<ucp_mem_h> mapped_{};
    std::vector<Told> told_{};
};

}  // namespace isthmus::ucx_wire
