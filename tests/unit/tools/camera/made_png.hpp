// SPDX-License-Identifier: Apache-2.0
// PNG files of every kind, made without libpng: unfiltered rows, in uncompressed blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus::tools::camera {

inline std::uint32_t png_crc(std::string_view bytes) {
    std::uint32_t value = ~0u;
    for (const char byte : bytes) {
        value ^= static_cast<std::uint8_t>(byte);
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320u : 0);
    }
    return ~value;
}

inline std::string big_endian(std::uint32_t value) {
    return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
            static_cast<char>(value)};
}

inline std::string png_chunk(std::string_view type, std::string_view content) {
    const std::string body = std::string(type) + std::string(content);
    return big_endian(static_cast<std::uint32_t>(content.size())) + body + big_endian(png_crc(body));
}

inline std::string stored_zlib(std::string_view bytes) {
    std::string out("\x78\x01", 2);
    std::uint32_t low = 1, high = 0;
    for (const char byte : bytes) {
        low = (low + static_cast<std::uint8_t>(byte)) % 65521;
        high = (high + low) % 65521;
    }
    for (bool last = false; !last;) {
        const std::string_view block = bytes.substr(0, 65535);
        bytes.remove_prefix(block.size());
        last = bytes.empty();
        const auto size = static_cast<std::uint16_t>(block.size());
        const auto inverse = static_cast<std::uint16_t>(~size);
        for (const int byte : {last ? 1 : 0, size & 0xff, size >> 8, inverse & 0xff, inverse >> 8})
            out.push_back(static_cast<char>(byte));
        out.append(block);
    }
    return out + big_endian(high << 16 | low);
}

struct PngKind {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    int depth = 8;
    int colour = 0;  // 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGB and alpha
    bool interlaced = false;
    std::string before_pixels{};  // chunks such as PLTE and tRNS
};

inline std::string png_header(const PngKind& kind) {
    const char tail[] = {static_cast<char>(kind.depth), static_cast<char>(kind.colour), 0, 0,
                         static_cast<char>(kind.interlaced ? 1 : 0)};
    return "\x89PNG\r\n\x1a\n" +
           png_chunk("IHDR", big_endian(kind.width) + big_endian(kind.height) + std::string(tail, sizeof tail)) +
           kind.before_pixels;
}

// `rows`: each a filter byte of 0 and its samples, of all passes one after the other where it is interlaced.
inline std::string png_of(const PngKind& kind, std::string_view rows) {
    return png_header(kind) + png_chunk("IDAT", stored_zlib(rows)) + png_chunk("IEND", "");
}

// Rows of a gray or RGB picture of 8 bits, interlaced (Adam7) where `kind` says so.
inline std::string png_rows(const PngKind& kind, std::string_view samples) {
    struct Pass {
        std::uint32_t x, y, step_x, step_y;
    };
    constexpr std::array<Pass, 7> adam7{
        {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}};
    constexpr std::array<Pass, 1> plain{{{0, 0, 1, 1}}};
    const std::size_t pixel = kind.colour == 2 ? 3 : 1;
    std::string rows;
    const auto add = [&](const Pass& pass) {
        for (std::uint32_t y = pass.y; y < kind.height && pass.x < kind.width; y += pass.step_y) {
            rows.push_back(0);
            for (std::uint32_t x = pass.x; x < kind.width; x += pass.step_x)
                rows.append(samples.substr((std::size_t{y} * kind.width + x) * pixel, pixel));
        }
    };
    if (kind.interlaced) {
        std::for_each(adam7.begin(), adam7.end(), add);
    } else {
        add(plain[0]);
    }
    return rows;
}

}  // namespace isthmus::tools::camera
