// SPDX-License-Identifier: Apache-2.0
// The bytes of a connection before and beside UCX: who may connect, and messages with a checksum under a session key.
// Without sockets, for tests and fuzzing.
//
//   hello    receiver -> sender   magic, version, whether it has a key, nonce                      48 bytes
//   welcome  sender -> receiver   the same, and a proof over hello and welcome                     80 bytes
//   proof    receiver -> sender   a proof over hello and welcome                                   32 bytes
//   messages both ways            kind, length, body, code over direction's count and all of it    40 bytes and more
//
// Proofs and codes are crypto_auth() of libsodium (HMAC-SHA-512-256) and compared in constant time. Numbers are
// little-endian.
#pragma once

#include <isthmus/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace isthmus::ucx_wire {

inline constexpr std::uint32_t version = 3;
inline constexpr std::size_t hello_bytes = 48;
inline constexpr std::size_t proof_bytes = 32;
inline constexpr std::size_t welcome_bytes = hello_bytes + proof_bytes;
inline constexpr std::size_t max_body_bytes = 16384;

using Secret = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 32>;
using HelloBytes = std::array<std::byte, hello_bytes>;
using Proof = std::array<std::byte, proof_bytes>;
enum class Side : std::uint8_t { sender, receiver };

HelloBytes make_hello(bool keyed, const Nonce& nonce, std::uint32_t spoken = version);
// Whether the other end's hello, or the first part of its welcome, fits this end. Errors: peer_broke_rules (other
// bytes), unsupported (another version), not_permitted (a key at one end only).
Result<void> judge_hello(std::span<const std::byte> bytes, bool keyed);

// What `side` proves with the key. A reflected proof is the other side's, and wrong.
Proof make_proof(const Secret& key, Side side, const HelloBytes& hello, const HelloBytes& welcome);
bool proves(const Secret& key, Side side, const HelloBytes& hello, const HelloBytes& welcome,
            std::span<const std::byte> proof);
// The key of the messages that `from` sends.
Secret session_key(const Secret& key, Side from, const HelloBytes& hello, const HelloBytes& welcome);

enum class Kind : std::uint32_t { offer = 1, answer = 2, alive = 3, goodbye = 4 };
struct Message {
    Kind kind{};
    std::vector<std::byte> body{};
};

// Makes the messages of one direction.
class Sealer {
public:
    explicit Sealer(const Secret& key) noexcept : key_(key) {}
    ~Sealer();  // wipes the key
    Sealer(const Sealer&) = delete;
    Sealer& operator=(const Sealer&) = delete;
    std::vector<std::byte> seal(Kind kind, std::span<const std::byte> body);

private:
    Secret key_;
    std::uint64_t count_ = 0;
};

// Reads the messages of one direction from bytes as they come. Keeps one message at most.
class Opener {
public:
    explicit Opener(const Secret& key) noexcept : key_(key) {}
    ~Opener();  // wipes the key
    Opener(const Opener&) = delete;
    Opener& operator=(const Opener&) = delete;
    // Takes bytes from the front of `bytes`, up to the end of one message. None: more are needed. Error, for good:
    // peer_broke_rules.
    Result<std::optional<Message>> take(std::span<const std::byte>& bytes);

private:
    Secret key_;
    std::uint64_t count_ = 0;
    std::vector<std::byte> kept_{};
    bool broken_ = false;
};

// Marks the active messages to one end as those of this connection's other end: UCX authenticates nobody. Each end
// draws one and says it in its offer or answer.
using Token = std::array<std::byte, 16>;
Token drawn_token();
// In constant time.
bool same(const Token& one, const Token& other) noexcept;
void put(std::vector<std::byte>& body, const Token& token);
// Reads a token from the front, or none where fewer bytes are left.
std::optional<Token> take_token(std::span<const std::byte>& body);

// Numbers in bodies.
void put(std::vector<std::byte>& body, std::uint64_t value);
// Reads 8 bytes from the front, or none where fewer are left.
std::optional<std::uint64_t> take_number(std::span<const std::byte>& body);

}  // namespace isthmus::ucx_wire
