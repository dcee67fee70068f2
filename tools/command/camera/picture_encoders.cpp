// SPDX-License-Identifier: Apache-2.0
// Encodes PPM and PGM, and selects the encoder by the file name.
#include "picture_encoders.hpp"

#include "camera/picture_config.hpp"

#include <vector>

namespace isthmus::tools::camera {
namespace {

std::string pnm_header(const char* magic, const Canvas& canvas) {
    return std::string(magic) + "\n" + std::to_string(canvas.width()) + " " + std::to_string(canvas.height()) +
           "\n255\n";
}

Result<void> encode_ppm(const Canvas& canvas, AtomicFile& file) {
    if (Result<void> written = file.write(pnm_header("P6", canvas)); !written) return written;
    std::vector<std::uint8_t> bytes;
    bytes.reserve(3 * canvas.pixels().size());
    for (const Colour& pixel : canvas.pixels()) bytes.insert(bytes.end(), {pixel.red, pixel.green, pixel.blue});
    return file.write(bytes);
}

Result<void> encode_pgm(const Canvas& canvas, AtomicFile& file) {
    if (Result<void> written = file.write(pnm_header("P5", canvas)); !written) return written;
    std::vector<std::uint8_t> bytes;
    bytes.reserve(canvas.pixels().size());
    for (const Colour& pixel : canvas.pixels()) bytes.push_back(luma_of(pixel));
    return file.write(bytes);
}

Error not_built(const std::string& path, const char* format, const char* library) {
    return Error(Code::unsupported,
                 "cannot write " + path + ": this isthmus was built without " + library + ", and so without " + format,
                 "a name that ends in .ppm or .pgm");
}

}  // namespace

std::string extension_of(std::string_view path) {
    const std::size_t dot = path.rfind('.');
    std::string extension(dot == std::string_view::npos ? std::string_view() : path.substr(dot));
    for (char& character : extension) {
        if (character >= 'A' && character <= 'Z') character = static_cast<char>(character - 'A' + 'a');
    }
    return extension;
}

Result<PictureEncoder> picture_encoder(const std::string& path) {
    const std::string extension = extension_of(path);
    if (extension == ".ppm") return PictureEncoder{&encode_ppm};
    if (extension == ".pgm") return PictureEncoder{&encode_pgm};
    if (extension == ".jpg" || extension == ".jpeg") {
        if constexpr (with_jpeg) return PictureEncoder{&encode_jpeg};
        return not_built(path, "JPEG", "libjpeg");
    }
    if (extension == ".png") {
        if constexpr (with_png) return PictureEncoder{&encode_png};
        return not_built(path, "PNG", "libpng");
    }
    return Error(Code::invalid_argument, "cannot tell from its name what " + path + " shall be",
                 "a name that ends in .y4m (a video), .jpg, .png, .ppm or .pgm (pictures)");
}

}  // namespace isthmus::tools::camera
