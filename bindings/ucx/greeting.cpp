// SPDX-License-Identifier: Apache-2.0
// Encodes, proves and checks with libsodium.
#include "greeting.hpp"

#include <sodium.h>

#include <algorithm>
#include <string>

namespace isthmus::ucx_wire {
namespace {

static_assert(crypto_auth_BYTES == proof_bytes && crypto_auth_KEYBYTES == sizeof(Secret));

constexpr std::array<char, 8> magic{'i', 's', 't', 'h', 'm', 'u', 'c', 'x'};
constexpr std::size_t head_bytes = 8;  // kind and length
constexpr std::size_t no_body_bytes = head_bytes + proof_bytes;

const unsigned char* raw(const std::byte* bytes) {
    return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* raw(std::byte* bytes) {
    return reinterpret_cast<unsigned char*>(bytes);
}

void put_word(std::byte* at, std::uint32_t value) {
    for (int byte = 0; byte < 4; ++byte) at[byte] = static_cast<std::byte>(value >> (8 * byte));
}
std::uint32_t word_at(const std::byte* at) {
    std::uint32_t value = 0;
    for (int byte = 0; byte < 4; ++byte) value |= std::to_integer<std::uint32_t>(at[byte]) << (8 * byte);
    return value;
}

// What a proof or a session key is made over: a label that no other use has, then both hellos.
std::vector<std::byte> labelled(char use, Side side, const HelloBytes& hello, const HelloBytes& welcome) {
    std::vector<std::byte> text{static_cast<std::byte>(use), static_cast<std::byte>(side)};
    text.insert(text.end(), hello.begin(), hello.end());
    text.insert(text.end(), welcome.begin(), welcome.end());
    return text;
}

Proof code_of(const Secret& key, std::span<const std::byte> text) {
    Proof code{};
    crypto_auth(raw(code.data()), raw(text.data()), text.size(), raw(key.data()));
    return code;
}

// The text under a message's code: the message's number in its direction, then its bytes.
std::vector<std::byte> numbered(std::uint64_t count, std::span<const std::byte> bytes) {
    std::vector<std::byte> text;
    put(text, count);
    text.insert(text.end(), bytes.begin(), bytes.end());
    return text;
}

Error refused(const char* what) {
    return Error(Code::peer_broke_rules, what, "isthmus of the same version and key at both ends");
}

}  // namespace

HelloBytes make_hello(bool keyed, const Nonce& nonce, std::uint32_t spoken) {
    HelloBytes bytes{};
    std::transform(magic.begin(), magic.end(), bytes.begin(), [](char each) { return static_cast<std::byte>(each); });
    put_word(bytes.data() + 8, spoken);
    put_word(bytes.data() + 12, keyed ? 1 : 0);
    std::copy(nonce.begin(), nonce.end(), bytes.begin() + 16);
    return bytes;
}

Result<void> judge_hello(std::span<const std::byte> bytes, bool keyed) {
    const auto same = [](std::byte byte, char wanted) { return byte == static_cast<std::byte>(wanted); };
    if (bytes.size() < hello_bytes || !std::equal(magic.begin(), magic.end(), bytes.begin(),
                                                  [same](char wanted, std::byte byte) { return same(byte, wanted); })) {
        return refused("the other end of the connection does not speak isthmus");
    }
    const std::uint32_t spoken = word_at(bytes.data() + 8);
    if (spoken != version) {
        return Error(Code::unsupported,
                     "the other end speaks version " + std::to_string(spoken) + ", and this end version " +
                         std::to_string(version),
                     "isthmus of the same version at both ends");
    }
    const std::uint32_t theirs = word_at(bytes.data() + 12);
    if (theirs > 1) return refused("the other end of the connection does not speak isthmus");
    if ((theirs == 1) != keyed) {
        return Error(Code::not_permitted,
                     keyed ? "the other end has no key, and this end has one" : "the other end asks for a key",
                     "the same key file at both ends");
    }
    return {};
}

Proof make_proof(const Secret& key, Side side, const HelloBytes& hello, const HelloBytes& welcome) {
    return code_of(key, labelled('p', side, hello, welcome));
}

bool proves(const Secret& key, Side side, const HelloBytes& hello, const HelloBytes& welcome,
            std::span<const std::byte> proof) {
    const std::vector<std::byte> text = labelled('p', side, hello, welcome);
    return proof.size() == proof_bytes &&
           crypto_auth_verify(raw(proof.data()), raw(text.data()), text.size(), raw(key.data())) == 0;
}

Secret session_key(const Secret& key, Side from, const HelloBytes& hello, const HelloBytes& welcome) {
    return code_of(key, labelled('s', from, hello, welcome));
}

Sealer::~Sealer() {
    sodium_memzero(key_.data(), key_.size());
}
Opener::~Opener() {
    sodium_memzero(key_.data(), key_.size());
}

std::vector<std::byte> Sealer::seal(Kind kind, std::span<const std::byte> body) {
    std::vector<std::byte> bytes(head_bytes);
    put_word(bytes.data(), static_cast<std::uint32_t>(kind));
    put_word(bytes.data() + 4, static_cast<std::uint32_t>(body.size()));
    bytes.insert(bytes.end(), body.begin(), body.end());
    const Proof code = code_of(key_, numbered(count_++, bytes));
    bytes.insert(bytes.end(), code.begin(), code.end());
    return bytes;
}

Result<std::optional<Message>> Opener::take(std::span<const std::byte>& bytes) {
    const auto fill = [&](std::size_t wanted) {
        const std::size_t more = std::min(bytes.size(), wanted - std::min(wanted, kept_.size()));
        kept_.insert(kept_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(more));
        bytes = bytes.subspan(more);
        return kept_.size() >= wanted;
    };
    const auto broke = [this](const char* what) {
        broken_ = true;
        return refused(what);
    };
    if (broken_) return refused("the other end of the connection broke the rules before");
    if (!fill(head_bytes)) return std::optional<Message>();
    const std::uint32_t kind = word_at(kept_.data());
    const std::size_t length = word_at(kept_.data() + 4);
    if (kind < 1 || kind > static_cast<std::uint32_t>(Kind::goodbye) || length > max_body_bytes) {
        return broke("the other end of the connection sent a message that there is not");
    }
    if (!fill(no_body_bytes + length)) return std::optional<Message>();
    const std::span<const std::byte> whole(kept_);
    const std::vector<std::byte> text = numbered(count_++, whole.first(head_bytes + length));
    if (crypto_auth_verify(raw(whole.data() + head_bytes + length), raw(text.data()), text.size(), raw(key_.data())) !=
        0) {
        return broke("a message on the connection is not the other end's");
    }
    Message message{static_cast<Kind>(kind), {kept_.begin() + head_bytes, kept_.end() - proof_bytes}};
    kept_.clear();
    return std::optional<Message>(std::move(message));
}

Token drawn_token() {
    Token token{};
    randombytes_buf(token.data(), token.size());
    return token;
}
bool same(const Token& one, const Token& other) noexcept {
    return sodium_memcmp(one.data(), other.data(), one.size()) == 0;
}
void put(std::vector<std::byte>& body, const Token& token) {
    body.insert(body.end(), token.begin(), token.end());
}
std::optional<Token> take_token(std::span<const std::byte>& body) {
    Token token{};
    if (body.size() < token.size()) return std::nullopt;
    std::copy_n(body.begin(), token.size(), token.begin());
    body = body.subspan(token.size());
    return token;
}

void put(std::vector<std::byte>& body, std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) body.push_back(static_cast<std::byte>(value >> (8 * byte)));
}

std::optional<std::uint64_t> take_number(std::span<const std::byte>& body) {
    if (body.size() < 8) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t byte = 0; byte < 8; ++byte) value |= std::to_integer<std::uint64_t>(body[byte]) << (8 * byte);
    body = body.subspan(8);
    return value;
}

}  // namespace isthmus::ucx_wire
