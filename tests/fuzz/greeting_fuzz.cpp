// SPDX-License-Identifier: Apache-2.0
// Bytes of a TCP connection from another machine. The first byte chooses: even, the rest is a greeting; odd, it is
// messages under a known key, in pieces of the second byte's length.
#include "greeting.hpp"
#include "require.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace {

using namespace isthmus;
using namespace isthmus::ucx_wire;

constexpr Secret key{};

// An accepted greeting is the one that this version makes, and what follows it proves nothing without the key.
void greet(std::span<const std::byte> bytes) {
    for (const bool keyed : {false, true}) {
        const Result<void> fits = judge_hello(bytes, keyed);
        if (!fits) {
            require(!fits.error().message().empty());
            continue;
        }
        HelloBytes hello{};
        std::copy_n(bytes.begin(), hello.size(), hello.begin());
        Nonce nonce{};
        std::copy_n(bytes.begin() + 16, nonce.size(), nonce.begin());
        require(make_hello(keyed, nonce) == hello);
        const std::span<const std::byte> rest = bytes.subspan(hello.size());
        Secret drawn{};
        drawn.fill(std::byte{0x5b});
        require(!proves(drawn, Side::receiver, hello, hello, rest.first(std::min(rest.size(), proof_bytes))));
    }
}

// An accepted message is the one that this version makes of it; after an error there is none.
void read(std::span<const std::byte> bytes, std::size_t piece) {
    Opener opener(key);
    Sealer sealer(key);
    std::span<const std::byte> made = bytes;
    bool broken = false;
    while (!bytes.empty()) {
        std::span<const std::byte> next = bytes.first(std::min(piece, bytes.size()));
        bytes = bytes.subspan(next.size());
        while (!next.empty()) {
            Result<std::optional<Message>> message = opener.take(next);
            require(!broken || !message);
            if (!message) {
                broken = true;
                break;
            }
            if (!*message) continue;
            require((*message)->body.size() <= max_body_bytes);
            const std::vector<std::byte> again = sealer.seal((*message)->kind, (*message)->body);
            require(again.size() <= made.size() && std::equal(again.begin(), again.end(), made.begin()));
            made = made.subspan(again.size());
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
    if (data[0] % 2 == 0) {
        greet(bytes);
    } else {
        read(bytes, std::max<std::size_t>(data[1], 1));
    }
    return 0;
}
