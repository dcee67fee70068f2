// SPDX-License-Identifier: Apache-2.0
// Picture encoders: write a canvas as a picture file; the file name selects the format.
#pragma once

#include "atomic_file.hpp"
#include "canvas.hpp"

#include <isthmus/result.hpp>

#include <string>
#include <string_view>

namespace isthmus::tools::camera {

struct PictureEncoder {
    // Writes the whole picture and does not finish the file. Errors: those of the file; invalid_argument (too large for
    // the format).
    Result<void> (*encode)(const Canvas& canvas, AtomicFile& file);
};

// The extension of a name, with its dot and in lower case: ".jpg". Empty where the name has no dot.
std::string extension_of(std::string_view path);

// Selects the encoder for .ppm, .pgm, .jpg, .jpeg and .png. Errors: invalid_argument (another extension), unsupported
// (this build has no encoder for it).
Result<PictureEncoder> picture_encoder(const std::string& path);

// Encoders that need a library; defined only where the build has it (picture_config.hpp).
Result<void> encode_jpeg(const Canvas& canvas, AtomicFile& file);
Result<void> encode_png(const Canvas& canvas, AtomicFile& file);

// JFIF's full-range BT.601 luma, in 65536ths, rounded to nearest.
constexpr std::uint8_t luma_of(Colour c) {
    return static_cast<std::uint8_t>((19595 * c.red + 38470 * c.green + 7471 * c.blue + 32768) >> 16);
}

}  // namespace isthmus::tools::camera
