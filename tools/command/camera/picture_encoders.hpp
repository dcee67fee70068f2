// SPDX-License-Identifier: Apache-2.0
// Picture encoders: how a canvas becomes a picture file, chosen by the file's name.
#pragma once

#include "atomic_file.hpp"
#include "canvas.hpp"

#include <isthmus/result.hpp>

#include <string>
#include <string_view>

namespace isthmus::tools::camera {

struct PictureEncoder {
    // Writes the whole picture, and does not finish the file. Errors: the file's; invalid_argument (too large for the
    // format).
    Result<void> (*encode)(const Canvas& canvas, AtomicFile& file);
};

// What stands behind the name's last dot, dot included and in lower case: ".jpg". Empty where there is no dot.
std::string extension_of(std::string_view path);

// For .ppm, .pgm, .jpg, .jpeg and .png. Errors: invalid_argument (another extension), unsupported (this build has no
// encoder for it).
Result<PictureEncoder> picture_encoder(const std::string& path);

// Of the formats that need a library; only there where the build has it (picture_config.hpp).
Result<void> encode_jpeg(const Canvas& canvas, AtomicFile& file);
Result<void> encode_png(const Canvas& canvas, AtomicFile& file);

// JFIF's full-range BT.601, in 65536ths, rounded to nearest.
constexpr std::uint8_t luma_of(Colour c) {
    return static_cast<std::uint8_t>((19595 * c.red + 38470 * c.green + 7471 * c.blue + 32768) >> 16);
}

}  // namespace isthmus::tools::camera
