// SPDX-License-Identifier: Apache-2.0
// Uuid: its text, in the format of nvidia-smi.
#include <isthmus/uuid.hpp>

#include "vocabulary_errors.hpp"

#include <cstddef>

namespace isthmus {
inline namespace v0 {
namespace {

constexpr std::string_view digits = "0123456789abcdef";
constexpr std::size_t text_length = 36;

bool dash_at(std::size_t place) {
    return place == 8 || place == 13 || place == 18 || place == 23;
}

// 16: not a digit.
unsigned digit_of(char c) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    const std::size_t found = digits.find(c);
    return found == std::string_view::npos ? 16 : static_cast<unsigned>(found);
}

}  // namespace

std::string Uuid::text() const {
    std::string text = mig ? "MIG-" : "GPU-";
    const std::size_t prefix = text.size();
    for (const std::uint8_t byte : bytes) {
        if (dash_at(text.size() - prefix)) text += '-';
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

Result<Uuid> Uuid::parse(std::string_view text) {
    std::string_view rest = text;
    Uuid uuid;
    uuid.mig = rest.substr(0, 4) == "MIG-";
    if (uuid.mig || rest.substr(0, 4) == "GPU-") rest.remove_prefix(4);
    if (rest.size() != text_length) return make_error<errors::no_uuid>(text);
    std::size_t nibbles = 0;
    for (std::size_t at = 0; at < text_length; ++at) {
        if (dash_at(at)) {
            if (rest[at] != '-') return make_error<errors::no_uuid>(text);
            continue;
        }
        const unsigned digit = digit_of(rest[at]);
        if (digit > 15) return make_error<errors::no_uuid>(text);
        std::uint8_t& byte = uuid.bytes[nibbles++ / 2];
        byte = static_cast<std::uint8_t>(byte << 4 | digit);
    }
    return uuid;
}

}  // namespace v0
}  // namespace isthmus
