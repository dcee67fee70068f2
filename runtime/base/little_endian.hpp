// SPDX-License-Identifier: Apache-2.0
// Numbers as bytes, the least significant byte first: the format of every descriptor that leaves the process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace isthmus::rules {

// Writer and reader check no bounds; the caller's layout guarantees the space.
class LittleEndianWriter {
public:
    explicit LittleEndianWriter(std::byte* at) : at_(at) {}
    void number(std::uint64_t value, std::size_t bytes) {
        for (std::size_t byte = 0; byte < bytes; ++byte) *at_++ = static_cast<std::byte>(value >> (8 * byte));
    }
    template <class Bytes>
    void bytes(const Bytes& from) {
        at_ = std::copy(from.begin(), from.end(), at_);
    }

private:
    std::byte* at_;
};
class LittleEndianReader {
public:
    explicit LittleEndianReader(const std::byte* at) : at_(at) {}
    std::uint64_t number(std::size_t bytes) {
        std::uint64_t value = 0;
        for (std::size_t byte = 0; byte < bytes; ++byte) value |= std::to_integer<std::uint64_t>(*at_++) << (8 * byte);
        return value;
    }
    template <class Bytes>
    void bytes(Bytes& into) {
        std::copy_n(at_, into.size(), into.begin());
        at_ += into.size();
    }

private:
    const std::byte* at_;
};

}  // namespace isthmus::rules
