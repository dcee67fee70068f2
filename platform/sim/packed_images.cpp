// SPDX-License-Identifier: Apache-2.0
// Unpacks the PTX of fatbins. The format has no public description: what is read here was seen in the output of nvcc
// 13.0 with each --compress-mode. A member's header has 64 bytes or more; `packed_bytes` is 0 where nothing is packed.
#include "packed_images.hpp"

#include "driver.hpp"

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include <dlfcn.h>

namespace isthmus::sim {
namespace {

using Bytes = std::span<const std::byte>;

struct Header {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;  // of what follows the header
};
static_assert(sizeof(Header) == 16);
struct Member {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;  // of what follows its header, with padding
    std::uint32_t packed_bytes, options_offset;
    std::uint16_t minor, major;
    std::uint32_t architecture;
    std::uint64_t unknown_1, flags, unknown_2;
    std::uint64_t text_bytes;  // of what was packed
};
static_assert(sizeof(Member) == 64);

constexpr std::uint32_t fatbin_magic = 0xba55ed50;
constexpr std::uint16_t kind_ptx = 1;
constexpr std::uint64_t packed_by_lz4 = 0x2000, packed_by_zstd = 0x8000;
constexpr std::uint64_t most_text_bytes = std::uint64_t{256} << 20;  // of all members of an image together
constexpr std::uint32_t most_packed_bytes = std::numeric_limits<int>::max();

enum class Method : std::uint8_t { none, lz4, zstd, unknown };
Method method_of(const Member& member) {
    if (member.packed_bytes == 0) return Method::none;
    if ((member.flags & packed_by_zstd) != 0) return Method::zstd;
    if ((member.flags & packed_by_lz4) != 0) return Method::lz4;
    return Method::unknown;
}

// The libraries are opened when there is something to unpack, so that neither building nor running needs them. Their
// functions are part of stable interfaces (zstd.h since 1.0, lz4.h since r118).
void* function_of(const char* library, const char* name) {
    void* const opened = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return opened == nullptr ? nullptr : ::dlsym(opened, name);
}
enum class Outcome : std::uint8_t { unpacked, damaged, no_library };

Outcome unpack_zstd(Bytes packed, std::span<std::byte> text) {
    using Decompress = std::size_t (*)(void* to, std::size_t to_bytes, const void* from, std::size_t from_bytes);
    static const auto decompress = reinterpret_cast<Decompress>(function_of("libzstd.so.1", "ZSTD_decompress"));
    if (decompress == nullptr) return Outcome::no_library;
    const std::size_t bytes = decompress(text.data(), text.size(), packed.data(), packed.size());
    return bytes == text.size() ? Outcome::unpacked : Outcome::damaged;  // an error is a number beyond every size
}
Outcome unpack_lz4(Bytes packed, std::span<std::byte> text) {
    using Decompress = int (*)(const char* from, char* to, int from_bytes, int to_bytes);
    static const auto decompress = reinterpret_cast<Decompress>(function_of("liblz4.so.1", "LZ4_decompress_safe"));
    if (decompress == nullptr) return Outcome::no_library;
    const int bytes = decompress(reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(text.data()),
                                 static_cast<int>(packed.size()), static_cast<int>(text.size()));
    return bytes >= 0 && static_cast<std::size_t>(bytes) == text.size() ? Outcome::unpacked : Outcome::damaged;
}

template <class T>
void put(std::vector<std::byte>& out, const T& value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    out.insert(out.end(), bytes, bytes + sizeof value);
}

// The member's text, which is taken from `budget` whether it can be unpacked or not; nullopt: it stays as it is.
std::optional<std::vector<std::byte>> text_of(const Member& member, Bytes content, std::uint64_t& budget) {
    const Method method = method_of(member);
    if (method == Method::unknown) {
        say("the PTX of a fatbin is compressed by a method that the simulator does not know");
        return std::nullopt;
    }
    if (member.packed_bytes > content.size()) {
        say("the compressed PTX of a fatbin is damaged");
        return std::nullopt;
    }
    if (member.text_bytes > budget) {
        say("the compressed PTX of a fatbin states more than 256 MiB of text");
        return std::nullopt;
    }
    budget -= member.text_bytes;
    std::vector<std::byte> text(static_cast<std::size_t>(member.text_bytes));
    const Bytes packed = content.first(member.packed_bytes);
    const Outcome outcome = method == Method::zstd ? unpack_zstd(packed, text) : unpack_lz4(packed, text);
    if (outcome == Outcome::unpacked) return text;
    if (outcome == Outcome::damaged) {
        say("the compressed PTX of a fatbin is damaged");
    } else {
        say("the PTX of a fatbin is compressed, and %s is not installed",
            method == Method::zstd ? "libzstd.so.1" : "liblz4.so.1");
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::byte> unpacked_image(Bytes image) {
    Header header;
    if (image.size() < sizeof header) return {};
    std::memcpy(&header, image.data(), sizeof header);
    if (header.magic != fatbin_magic || header.header_bytes < sizeof header || header.header_bytes > image.size()) {
        return {};
    }
    std::vector<std::byte> out(image.begin(), image.begin() + header.header_bytes);
    bool changed = false;
    std::uint64_t budget = most_text_bytes;
    for (std::size_t at = header.header_bytes; at < image.size();) {
        const Bytes rest = image.subspan(at);
        Member member;
        if (rest.size() < sizeof member) return {};
        std::memcpy(&member, rest.data(), sizeof member);
        if (member.header_bytes < sizeof member || member.header_bytes > rest.size() ||
            member.bytes > rest.size() - member.header_bytes) {
            return {};
        }
        // LZ4 counts in int, and no text within the limit takes as much. It is not copied either.
        if (member.kind == kind_ptx && member.packed_bytes > most_packed_bytes) {
            say("the compressed PTX of a fatbin is damaged");
            return {};
        }
        const Bytes content = rest.subspan(member.header_bytes, static_cast<std::size_t>(member.bytes));
        std::optional<std::vector<std::byte>> text;
        if (member.kind == kind_ptx && method_of(member) != Method::none) text = text_of(member, content, budget);
        if (text) {
            changed = true;
            const Bytes behind = rest.subspan(sizeof member, member.header_bytes - sizeof member);
            member.bytes = text->size();
            member.packed_bytes = 0;
            member.flags &= ~(packed_by_lz4 | packed_by_zstd);
            put(out, member);
            out.insert(out.end(), behind.begin(), behind.end());
            out.insert(out.end(), text->begin(), text->end());
        } else {
            const Bytes whole = rest.first(member.header_bytes + content.size());
            out.insert(out.end(), whole.begin(), whole.end());
        }
        at += member.header_bytes + content.size();
    }
    if (!changed) return {};
    header.bytes = out.size() - header.header_bytes;
    std::memcpy(out.data(), &header, sizeof header);
    return out;
}

}  // namespace isthmus::sim
