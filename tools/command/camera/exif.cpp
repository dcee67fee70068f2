// SPDX-License-Identifier: Apache-2.0
// Reads the orientation tag from a TIFF header and its first directory.
#include "exif.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace isthmus::tools::camera {
namespace {

// Reads numbers of either byte order; returns 0 beyond the end.
class TiffBytes {
public:
    TiffBytes(std::span<const std::uint8_t> bytes, bool little) : bytes_(bytes), little_(little) {}
    std::uint32_t number(std::size_t at, std::size_t width) const noexcept {
        if (at > bytes_.size() || bytes_.size() - at < width) return 0;
        std::uint32_t value = 0;
        for (std::size_t byte = 0; byte < width; ++byte) {
            const std::size_t place = little_ ? width - 1 - byte : byte;
            value = value << 8 | bytes_[at + place];
        }
        return value;
    }

private:
    std::span<const std::uint8_t> bytes_;
    bool little_;
};

}  // namespace

Orientation exif_orientation(std::span<const std::uint8_t> segment) noexcept {
    constexpr std::string_view magic("Exif\0\0", 6);
    constexpr std::uint32_t orientation_tag = 0x0112, short_type = 3, entry_bytes = 12;
    const std::string_view text(reinterpret_cast<const char*>(segment.data()), segment.size());
    if (!text.starts_with(magic)) return Orientation::upright;
    const std::string_view tiff = text.substr(magic.size());
    const bool little = tiff.starts_with(std::string_view("II*\0", 4));
    if (!little && !tiff.starts_with(std::string_view("MM\0*", 4))) return Orientation::upright;
    const TiffBytes bytes(segment.subspan(magic.size()), little);
    const std::size_t directory = bytes.number(4, 4);
    const std::uint32_t entries = bytes.number(directory, 2);
    for (std::uint32_t entry = 0; entry < entries; ++entry) {
        const std::size_t at = directory + 2 + std::size_t{entry} * entry_bytes;
        if (bytes.number(at, 2) != orientation_tag) continue;
        const std::uint32_t value = bytes.number(at + 8, 2);
        const bool known = bytes.number(at + 2, 2) == short_type && value >= 1 && value <= 8;
        return known ? static_cast<Orientation>(value) : Orientation::upright;
    }
    return Orientation::upright;
}

std::vector<std::uint8_t> made_upright(PictureFacts& facts, std::vector<std::uint8_t> picture,
                                       Orientation orientation) {
    if (orientation == Orientation::upright) return picture;
    const auto number = static_cast<unsigned>(orientation);
    const bool swap = number >= 5;
    const bool from_right = number == 2 || number == 3 || number == 7 || number == 8;
    const bool from_below = number == 3 || number == 4 || number == 6 || number == 7;
    const std::size_t stored_width = facts.width, stored_height = facts.height;
    if (swap) std::swap(facts.width, facts.height);
    std::vector<std::uint8_t> turned;
    turned.reserve(picture.size());
    for (std::size_t y = 0; y < facts.height; ++y) {
        for (std::size_t x = 0; x < facts.width; ++x) {
            const std::size_t across = swap ? y : x, down = swap ? x : y;  // column and row in the stored picture
            const std::size_t column = from_right ? stored_width - 1 - across : across;
            const std::size_t row = from_below ? stored_height - 1 - down : down;
            turned.push_back(picture[row * stored_width + column]);
        }
    }
    return turned;
}

}  // namespace isthmus::tools::camera
