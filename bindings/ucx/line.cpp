// SPDX-License-Identifier: Apache-2.0
// Sockets: addresses, the greeting under one deadline, and messages that never block.
#include "line.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace ucx {
namespace {

using namespace ucx_wire;
using Clock = std::chrono::steady_clock;

constexpr std::size_t max_unsent_bytes = 4 * max_body_bytes;
constexpr std::size_t max_arrived = 16;  // messages that are not taken yet

Error system_failure(const char* call, int number, const std::string& what) {
    const Code code = number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM
                          ? Code::system_limit
                          : Code::system_error;
    return Error(code, what + ": " + std::strerror(number)).from_call(call, number);
}
Error lost(const std::string& why) {
    return Error(Code::peer_lost, "the connection to the other machine ended: " + why, "connect again");
}

Result<void> have_sodium() {
    if (sodium_init() >= 0) return {};
    return Error(Code::system_error, "libsodium could not be initialised", "look for /dev/urandom");
}

bool is_loopback(const sockaddr* address) {
    if (address->sa_family == AF_INET) {
        return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family != AF_INET6) return false;
    const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
Result<Addresses> look_up(const Address& address, bool to_listen) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
    addrinfo* found = nullptr;
    const int answer = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
    if (answer == EAI_AGAIN)
        return Error(Code::peer_lost, "'" + address.host + "' could not be looked up now", "try again");
    if (answer != 0 || found == nullptr) {
        return Error(Code::invalid_argument,
                     "'" + address.host + "' has no address: " + (answer != 0 ? gai_strerror(answer) : "none found"),
                     "a number such as 192.0.2.7, or a name that resolves");
    }
    return Addresses(found, &freeaddrinfo);
}

// N4: who has no key speaks to its own machine alone.
Result<void> allowed(const sockaddr* address, const ConnectionOptions& options) {
    if (options.key || is_loopback(address)) return {};
    return Error(Code::not_permitted, "an address other than loopback needs a key", "a key file at both ends");
}

std::chrono::nanoseconds left_until(Clock::time_point until) {
    return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(until - Clock::now()));
}

// Waits for `events`; false: the time has passed.
bool ready(int socket, short events, std::chrono::nanoseconds at_most) {
    pollfd wait{socket, events, 0};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
    const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((at_most - seconds).count())};
    return ppoll(&wait, 1, &time, nullptr) > 0;
}

constexpr std::chrono::milliseconds between_questions{50};

Result<void> not_stopped(const ConnectionOptions& options) {
    if (!options.stopped || !options.stopped()) return {};
    return Error(Code::ended, "this end was told to stop");
}

// Sends or receives all of the bytes before the deadline, which holds for an end that drips, too. Sockets do not block.
Result<void> exactly(int socket, std::byte* bytes, std::size_t count, bool sends, Clock::time_point until,
                     const ConnectionOptions& options) {
    while (count > 0) {
        if (Result<void> goes_on = not_stopped(options); !goes_on) return goes_on;
        if (Clock::now() >= until) {
            return Error(Code::timed_out, "the other machine did not greet in time", "ask what it waits for");
        }
        const ssize_t done = sends ? ::send(socket, bytes, count, MSG_NOSIGNAL) : ::recv(socket, bytes, count, 0);
        if (done > 0) {
            bytes += done;
            count -= static_cast<std::size_t>(done);
            continue;
        }
        if (done == 0) return lost("it was closed during the greeting");
        if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) return lost(std::strerror(errno));
        ready(socket, sends ? POLLOUT : POLLIN,
              std::min<std::chrono::nanoseconds>(left_until(until), between_questions));
    }
    return {};
}
template <std::size_t count>
Result<void> send_all(int socket, std::array<std::byte, count> bytes, Clock::time_point until,
                      const ConnectionOptions& options) {
    return exactly(socket, bytes.data(), count, true, until, options);
}

void set_up(int socket) {
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Secret secret_of(const ConnectionOptions& options) {
    // Without a key the code of a message detects errors, and proves nothing.
    return options.key ? options.key->bytes() : Secret{};
}
Nonce drawn_nonce() {
    Nonce nonce{};
    randombytes_buf(nonce.data(), nonce.size());
    return nonce;
}

Result<FileDescriptor> connected_to(const addrinfo& address, const ConnectionOptions& options,
                                    Clock::time_point until) {
    if (Result<void> may = allowed(address.ai_addr, options); !may) return std::move(may).error();
    FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return system_failure("socket", errno, "no connection could be made");
    set_up(socket.get());
    if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return socket;
    if (errno != EINPROGRESS) return lost(std::strerror(errno));
    while (!ready(socket.get(), POLLOUT, std::min<std::chrono::nanoseconds>(left_until(until), between_questions))) {
        if (Result<void> goes_on = not_stopped(options); !goes_on) return std::move(goes_on).error();
        if (Clock::now() < until) continue;
        return Error(Code::timed_out, "the other machine did not answer in time", "check address and firewall");
    }
    int failure = 0;
    socklen_t bytes = sizeof failure;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &bytes);
    if (failure != 0) return lost(std::strerror(failure));
    return socket;
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
    const Error wrong(Code::invalid_argument, "'" + std::string(text) + "' is no address",
                      "HOST:PORT, such as 192.0.2.7:7000 or [2001:db8::7]:7000");
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return wrong;
    std::string_view host = text.substr(0, colon);
    const std::string_view digits = text.substr(colon + 1);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    if (host.empty() || (!bracketed && host.find(':') != std::string_view::npos)) return wrong;
    if (host.find_first_of("[]") != std::string_view::npos || host.find('\0') != std::string_view::npos) return wrong;
    std::uint32_t port = 0;
    for (const char digit : digits) {
        if (digit < '0' || digit > '9') return wrong;
        port = port * 10 + static_cast<std::uint32_t>(digit - '0');
        if (port > 65535) return wrong;
    }
    if (digits.empty()) return wrong;
    return Address{std::string(host), static_cast<std::uint16_t>(port)};
}

Result<Listener> Listener::create(const Address& address, const ConnectionOptions& options) {
    Result<Addresses> found = look_up(address, true);
    if (!found) return std::move(found).error();
    const addrinfo& first = **found;
    if (Result<void> may = allowed(first.ai_addr, options); !may) return std::move(may).error();
    FileDescriptor socket(::socket(first.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return system_failure("socket", errno, "nothing can be listened on");
    const int on = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket.get(), first.ai_addr, first.ai_addrlen) != 0) {
        return system_failure("bind", errno,
                              "no one can listen on " + address.host + ", port " + std::to_string(address.port));
    }
    if (::listen(socket.get(), 64) != 0) return system_failure("listen", errno, "nothing can be listened on");
    sockaddr_storage bound{};
    socklen_t bytes = sizeof bound;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) {
        return system_failure("getsockname", errno, "nothing can be listened on");
    }
    const in_port_t port = bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                                       : reinterpret_cast<sockaddr_in&>(bound).sin_port;
    return Listener(std::move(socket), ntohs(port));
}

Result<FileDescriptor> Listener::accept() {
    const int connected = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connected >= 0) return FileDescriptor(connected);
    const bool none = errno == EAGAIN || errno == EWOULDBLOCK || errno == ECONNABORTED || errno == EINTR;
    if (none) return Error(Code::not_ready, "no connection is pending");
    return system_failure("accept4", errno, "a connection could not be accepted");
}

Connection::Connection(std::unique_ptr<Line> line) noexcept : line_(std::move(line)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

Result<Connection> Connection::connect(const Address& address, const ConnectionOptions& options) {
    if (Result<void> sodium = have_sodium(); !sodium) return std::move(sodium).error();
    Result<Addresses> found = look_up(address, false);
    if (!found) return std::move(found).error();
    const Clock::time_point until = deadline(options.step_timeout);
    Result<FileDescriptor> connected = lost("no address was tried");
    for (const addrinfo* each = found->get(); each != nullptr && !connected; each = each->ai_next) {
        connected = connected_to(*each, options, until);
    }
    if (!connected) return std::move(connected).error();
    sockaddr_storage peer{};
    socklen_t bytes = sizeof peer;
    if (::getpeername(connected->get(), reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) {
        return lost(std::strerror(errno));
    }
    const Secret key = secret_of(options);
    const HelloBytes hello = make_hello(options.key.has_value(), drawn_nonce());
    if (Result<void> sent = send_all(connected->get(), hello, until, options); !sent) return std::move(sent).error();
    HelloBytes welcome{};
    Proof proof{};
    if (Result<void> got = exactly(connected->get(), welcome.data(), welcome.size(), false, until, options); !got) {
        return std::move(got).error();
    }
    if (Result<void> fits = judge_hello(welcome, options.key.has_value()); !fits) return std::move(fits).error();
    if (Result<void> got = exactly(connected->get(), proof.data(), proof.size(), false, until, options); !got) {
        return std::move(got).error();
    }
    if (!proves(key, Side::sender, hello, welcome, proof)) {
        return Error(Code::not_permitted, "the other machine has another key", "the same key file at both ends");
    }
    if (Result<void> sent = send_all(connected->get(), make_proof(key, Side::receiver, hello, welcome), until, options);
        !sent) {
        return std::move(sent).error();
    }
    return Connection(std::make_unique<Line>(
        std::move(connected).value(), options, is_loopback(reinterpret_cast<sockaddr*>(&peer)),
        session_key(key, Side::receiver, hello, welcome), session_key(key, Side::sender, hello, welcome)));
}

Result<Connection> Connection::greet(FileDescriptor accepted, const ConnectionOptions& options) {
    if (Result<void> sodium = have_sodium(); !sodium) return std::move(sodium).error();
    const Clock::time_point until = deadline(options.step_timeout);
    sockaddr_storage peer{};
    socklen_t bytes = sizeof peer;
    if (::getpeername(accepted.get(), reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) {
        return lost(std::strerror(errno));
    }
    const auto* const peer_address = reinterpret_cast<const sockaddr*>(&peer);
    if (Result<void> may = allowed(peer_address, options); !may) return std::move(may).error();
    set_up(accepted.get());
    HelloBytes hello{};
    if (Result<void> got = exactly(accepted.get(), hello.data(), hello.size(), false, until, options); !got) {
        return std::move(got).error();
    }
    const Secret key = secret_of(options);
    const HelloBytes welcome = make_hello(options.key.has_value(), drawn_nonce());
    const Result<void> fits = judge_hello(hello, options.key.has_value());
    // Where versions or keys differ, the other end learns it from this half; it gets no proof.
    const bool says_why = !fits && fits.code() != Code::peer_broke_rules;
    if (fits || says_why) {
        if (Result<void> sent = send_all(accepted.get(), welcome, until, options); !sent)
            return std::move(sent).error();
    }
    if (!fits) return fits.error();
    if (Result<void> sent = send_all(accepted.get(), make_proof(key, Side::sender, hello, welcome), until, options);
        !sent) {
        return std::move(sent).error();
    }
    Proof proof{};
    if (Result<void> got = exactly(accepted.get(), proof.data(), proof.size(), false, until, options); !got) {
        return std::move(got).error();
    }
    if (!proves(key, Side::receiver, hello, welcome, proof)) {
        return Error(Code::not_permitted, "the other machine has another key", "the same key file at both ends");
    }
    return Connection(std::make_unique<Line>(std::move(accepted), options, is_loopback(peer_address),
                                             session_key(key, Side::sender, hello, welcome),
                                             session_key(key, Side::receiver, hello, welcome)));
}

Result<void> Connection::Line::write_on() {
    while (!unsent_.empty()) {
        const ssize_t sent = ::send(socket.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
        if (sent > 0) {
            unsent_.erase(unsent_.begin(), unsent_.begin() + sent);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return {};
        } else if (errno != EINTR) {
            // What the other end sent before it closed may say why.
            ended_ = true;
            return {};
        }
    }
    return {};
}

Result<void> Connection::Line::send(Kind kind, std::span<const std::byte> body) {
    const std::vector<std::byte> bytes = sealer.seal(kind, body);
    if (unsent_.size() + bytes.size() > max_unsent_bytes) return lost("it takes no more messages");
    unsent_.insert(unsent_.end(), bytes.begin(), bytes.end());
    said_ = Clock::now();
    return write_on();
}

Result<void> Connection::Line::read_on() {
    std::array<std::byte, 4096> buffer{};
    // One buffer a call: who floods takes its turn like everything else.
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) ended_ = true;
    std::span<const std::byte> bytes(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!bytes.empty()) {
        Result<std::optional<Message>> message = opener.take(bytes);
        if (!message) return std::move(message).error();
        if (!*message) continue;
        heard_ = Clock::now();
        if ((*message)->kind == Kind::alive) continue;
        if (arrived_.size() == max_arrived) {
            return Error(Code::peer_broke_rules, "the other end of the connection sends too many messages");
        }
        arrived_.push_back(std::move(**message));
    }
    return {};
}

Result<void> Connection::Line::pump() {
    if (Result<void> read = read_on(); !read) return read;
    if (Result<void> written = write_on(); !written) return written;
    const Clock::time_point now = Clock::now();
    if (ended_ && arrived_.empty()) return lost("it was closed");
    if (now - heard_ > options.silence) return lost("it was silent for too long");
    if (!ended_ && now - said_ > options.silence / 4) return send(Kind::alive, {});
    return {};
}

std::optional<Message> Connection::Line::next() {
    if (arrived_.empty()) return std::nullopt;
    Message first = std::move(arrived_.front());
    arrived_.pop_front();
    return first;
}

Result<Message> Connection::Line::wait(std::chrono::nanoseconds at_most) {
    const Clock::time_point until = deadline(at_most);
    for (;;) {
        if (Result<void> pumped = pump(); !pumped) return std::move(pumped).error();
        if (std::optional<Message> message = next()) return std::move(*message);
        if (Result<void> goes_on = not_stopped(options); !goes_on) return std::move(goes_on).error();
        if (Clock::now() >= until) {
            return Error(Code::timed_out, "the other machine was not ready in time", "ask what it waits for");
        }
        ready(socket.get(), static_cast<short>(behind() ? POLLIN | POLLOUT : POLLIN),
              std::min({left_until(until), options.silence / 4, std::chrono::nanoseconds(between_questions)}));
    }
}

}  // namespace ucx
}  // namespace v0
}  // namespace isthmus
