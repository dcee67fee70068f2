// SPDX-License-Identifier: Apache-2.0
// Frames of a shared ring to another machine, over UCX (docs/network.md). The sender reads a SharedFrameReader, as any
// reader of the ring does; the receiver fills a SharedFrameRing, which local readers open. Link libisthmus-ucx
// (isthmus-ucx.pc, isthmus::ucx).
//
// UCX parses what the other machine sends before any check of this library. So use these types in a process of their
// own, as the program isthmus-bridge does: when it ends, its remote readers end, and nothing else.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/file_descriptor.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace ucx {

// A pre-shared key of 32 bytes. Copies are wiped when they are destroyed.
class ISTHMUS_API Key {
public:
    static constexpr std::size_t size_bytes = 32;
    // Reads 64 hexadecimal digits, and at most one newline. Errors: not_permitted (the file is not regular, belongs to
    // another user than this one or root, or has a mode other than 0600 and 0400), invalid_argument (other content),
    // system_error.
    static Result<Key> load(const std::string& path);
    explicit Key(const std::array<std::byte, size_bytes>& bytes) noexcept : bytes_(bytes) {}
    Key(const Key&) noexcept = default;
    Key& operator=(const Key&) noexcept = default;
    ~Key();
    const std::array<std::byte, size_bytes>& bytes() const noexcept { return bytes_; }

private:
    std::array<std::byte, size_bytes> bytes_;
};

// HOST:PORT or [HOST]:PORT.
struct Address {
    std::string host;  // a name or a number
    std::uint16_t port = 0;
    // Errors: invalid_argument.
    ISTHMUS_API static Result<Address> parse(std::string_view text);
};

struct ConnectionOptions {
    // Both ends have the same key, or none. Without one only loopback addresses are accepted.
    std::optional<Key> key{};
    std::chrono::nanoseconds step_timeout = std::chrono::seconds(2);    // for connecting, and for the whole greeting
    std::chrono::nanoseconds setup_timeout = std::chrono::seconds(30);  // until the receiver has its ring
    // Without a word for so long the other end counts as lost. Each end says something four times as often.
    std::chrono::nanoseconds silence = std::chrono::seconds(5);
    // Of the receiving end: an offer whose frames take more, times the slots, is refused.
    std::uint64_t max_bytes = std::uint64_t{4} << 30;
    // Asked every 50 ms while a call waits for the other end; true: the call answers `ended`. Empty: nothing ends it.
    // Looking up a name is not interrupted.
    std::function<bool()> stopped{};
};

// What the sender says about its frames.
struct Offer {
    static constexpr std::size_t max_note_bytes = 256;
    std::uint64_t frame_bytes = 0;
    std::uint32_t slots = 0;
    SlowReaderPolicy policy = SlowReaderPolicy::overwrite;
    std::vector<std::byte> note{};  // the programs' own, such as the frames' shape
};

// An authenticated TCP connection. Movable; one thread at a time.
class ISTHMUS_API Connection {
public:
    // The receiving end. Errors: peer_lost (nobody listens, the name server does not answer, or the connection ended),
    // timed_out, not_permitted (no key for an address that is not loopback; another key, or a key at one end only),
    // unsupported (another version), invalid_argument (a name without an address), peer_broke_rules, ended (`stopped`),
    // system_error.
    static Result<Connection> connect(const Address& address, const ConnectionOptions& options);
    // The sending end: takes a connection that Listener::accept() returned. Waits for the other end, step_timeout at
    // most. Errors: as connect().
    static Result<Connection> greet(FileDescriptor accepted, const ConnectionOptions& options);
    Connection(Connection&&) noexcept;
    Connection& operator=(Connection&&) noexcept;
    ~Connection();

private:
    friend class FrameSender;
    friend class FrameReceiver;
    struct [[gnu::visibility("hidden")]] Line;
    explicit Connection(std::unique_ptr<Line> line) noexcept;
    std::unique_ptr<Line> line_;
};

// Listens for receivers. It reads and sends nothing: Connection::greet() does.
class ISTHMUS_API Listener {
public:
    // Port 0: one that is free. Errors: not_permitted (no key, and not a loopback address), invalid_argument,
    // system_error.
    static Result<Listener> create(const Address& address, const ConnectionOptions& options);
    std::uint16_t port() const noexcept { return port_; }
    int descriptor() const noexcept { return socket_.get(); }  // readable: accept() does not wait
    // Errors: not_ready (no connection is pending), system_limit, system_error.
    Result<FileDescriptor> accept();

private:
    Listener(FileDescriptor socket, std::uint16_t port) noexcept : socket_(std::move(socket)), port_(port) {}
    FileDescriptor socket_;
    std::uint16_t port_;
};

struct SentCounts {
    std::uint64_t frames = 0;     // that the receiver got whole
    std::uint64_t overtaken = 0;  // overwritten while they were sent; the receiver discarded them
    std::uint64_t missed = 0;     // overwritten before they were sent
};

// Sends the frames of a ring to one receiver, each from where it lies. Movable; one thread at a time.
class ISTHMUS_API FrameSender {
public:
    // Takes both. Waits until the receiver has a ring for the frames, setup_timeout at most. Errors: peer_lost,
    // timed_out, peer_broke_rules, invalid_argument (a note that is too long), unsupported (UCX has no transport),
    // out_of_memory.
    static Result<FrameSender> create(Connection connection, SharedFrameReader<std::uint8_t> reader,
                                      std::vector<std::byte> note);
    FrameSender(FrameSender&&) noexcept;
    FrameSender& operator=(FrameSender&&) noexcept;
    ~FrameSender();
    // Sends what is there, and waits for more, `at_most` so long. Repeat it: it also says that this end lives. Errors
    // end the sender: ended (the ring is closed, and the receiver has all frames), peer_lost (the receiver, or the
    // ring's producer), peer_broke_rules (either), and those of SharedFrameReader::next_frame().
    Result<void> step(std::chrono::nanoseconds at_most);
    SentCounts counts() const noexcept;

private:
    struct [[gnu::visibility("hidden")]] Parts;
    explicit FrameSender(std::unique_ptr<Parts> parts) noexcept;
    std::unique_ptr<Parts> parts_;
};

// How frames come into buffers of the program.
enum class ReceivePath : std::uint8_t {
    in_place,    // UCX writes into the buffer, which the CPU sees
    ucx_cuda,    // UCX, built with CUDA, writes into device memory
    pinned_copy  // UCX writes into pinned host memory, and the device copies from there
};
// "copied through pinned host memory"; "unknown" for a value outside the enumeration.
ISTHMUS_API std::string_view name(ReceivePath path) noexcept;
struct ReceiveFacts {
    MemoryKind kind = MemoryKind::unknown;        // of the buffers
    Translation translation = Translation::none;  // Capabilities::translation of the device
    bool cpu_sees = false;                        // a host view of the buffers can be opened
    bool own = true;                              // Device::owns(), for all buffers
    bool ucx_has_cuda = false;                    // ISTHMUS_UCX_CUDA=1, and ucp_mem_map() took them as CUDA memory
    bool by_rendezvous = false;  // larger than 16 KiB; smaller frames lie in UCX's host memory when they arrive
};
// Managed memory is written where it lies only if the GPU uses the CPU's page tables. Elsewhere its pages would move to
// the host for each frame, registered pages of a network card must not move, and where attribute 89 is 0 the CPU may
// not touch it while a kernel runs. UCX with CUDA writes memory of the current context's GPU alone.
constexpr ReceivePath receive_path(const ReceiveFacts& facts) noexcept {
    const bool is_managed = facts.kind == MemoryKind::managed || facts.kind == MemoryKind::managed_pool;
    const bool moves = is_managed && facts.translation != Translation::host_page_tables;
    if (facts.cpu_sees && !moves) return ReceivePath::in_place;
    const bool by_cuda = !moves && facts.own && facts.ucx_has_cuda && facts.by_rendezvous;
    return by_cuda ? ReceivePath::ucx_cuda : ReceivePath::pinned_copy;
}

// A whole frame in one of the buffers. Destroying it gives the buffer back to the receiver, on any thread. May outlive
// the receiver.
class ISTHMUS_API [[nodiscard]] ReceivedFrame {
public:
    struct [[gnu::visibility("hidden")]] Slots;
    ReceivedFrame(std::shared_ptr<Slots> slots, std::size_t slot, std::uint64_t number, std::uint64_t missed) noexcept;
    ReceivedFrame(ReceivedFrame&&) noexcept;
    ReceivedFrame& operator=(ReceivedFrame&&) noexcept;
    ~ReceivedFrame();
    // Another machine wrote its bytes: validate them. A copy into it may still run on the receiver's stream: host views
    // wait for it, and work of that stream comes behind it.
    Buffer<std::uint8_t>& buffer() const noexcept;
    std::uint64_t number() const noexcept { return number_; }  // of this receiver, from 0
    std::uint64_t missed() const noexcept { return missed_; }  // at the sender or on the way, since the last frame

private:
    void give_back() noexcept;
    std::shared_ptr<Slots> slots_;
    std::size_t slot_;
    std::uint64_t number_, missed_;
};

struct ReceivedCounts {
    std::uint64_t frames = 0;     // published
    std::uint64_t discarded = 0;  // overwritten at the sender while they were sent
    std::uint64_t missed = 0;     // that the sender did not send
};

// Receives frames into the slots of a ring. Movable; one thread at a time.
class ISTHMUS_API FrameReceiver {
public:
    // Waits for the sender's offer, setup_timeout at most. Errors: peer_lost, timed_out, peer_broke_rules,
    // out_of_memory (more than max_bytes).
    static Result<FrameReceiver> create(Connection connection);
    FrameReceiver(FrameReceiver&&) noexcept;
    FrameReceiver& operator=(FrameReceiver&&) noexcept;
    ~FrameReceiver();
    const Offer& offer() const noexcept;
    // Begins to receive; once. The ring and `guard` must stay until this object ends, and nothing else may fill the
    // ring. `guard` is held around each use of the ring, also when this object ends, so that another thread can admit
    // readers; nullptr: no other thread uses it. Errors: invalid_argument (the ring's frames have another size),
    // peer_lost, unsupported (UCX has no transport), out_of_memory.
    Result<void> begin(SharedFrameRing<std::uint8_t>& ring, std::mutex* guard = nullptr);
    // The same into buffers of the program, instead of a ring: of any kind of memory that the device has, all of one
    // kind. next_frame() gives them out. path() says how frames come into them; UCX's abilities are asked at run time.
    // Device memory is filled in the order of `stream`, of this device: work on a frame belongs to that stream, or is
    // ordered with it by events, until the frame is destroyed. A sender waits for buffers as for a ring: it drops
    // frames, or waits, by its policy. Do not capture the stream meanwhile: a frame that would be copied then ends the
    // receiver (capture_error). Errors, of which the arguments' change nothing: invalid_argument (no buffers, one
    // twice, other sizes or kinds, memory to copy into that the device cannot access), peer_lost, unsupported,
    // out_of_memory, and those of TypedBuffer::write_on_host().
    Result<void> begin(Device& device, const Stream& stream, std::vector<Buffer<std::uint8_t>> buffers);
    ReceivePath path() const noexcept;  // in_place for a ring, and before begin()
    // The next whole frame in a buffer: step() until there is one, `at_most` so long. Errors: timed_out (repeat it),
    // invalid_argument (frames go into a ring), and those of step(), behind the last frame.
    Result<ReceivedFrame> next_frame(std::chrono::nanoseconds at_most);
    // Receives what is there, publishes whole frames, and waits for more, `at_most` so long. Repeat it: it also says
    // that this end lives, also before begin(), and while the program holds all buffers. Errors end the receiver: ended
    // (the sender's ring is closed, and all frames are here), peer_lost (the connection, or the sender's producer:
    // producer_is_gone()), peer_broke_rules, and those of the ring.
    Result<void> step(std::chrono::nanoseconds at_most);
    // The sender said that its ring ended without being closed: another connection would find no frames.
    bool producer_is_gone() const noexcept;
    ReceivedCounts counts() const noexcept;

private:
    struct [[gnu::visibility("hidden")]] Parts;
    explicit FrameReceiver(std::unique_ptr<Parts> parts) noexcept;
    std::unique_ptr<Parts> parts_;
};

}  // namespace ucx
}  // namespace v0
}  // namespace isthmus
