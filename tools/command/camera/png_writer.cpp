// SPDX-License-Identifier: Apache-2.0
// Writes PNG through libpng: RGB, 8 bits a sample.
#include "picture_encoders.hpp"
#include "png_errors.hpp"

#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::camera {
namespace {

class PngEncoder {
public:
    PngEncoder(const Canvas& canvas, AtomicFile& file) : canvas_(canvas), file_(file) {}
    PngEncoder(const PngEncoder&) = delete;
    PngEncoder& operator=(const PngEncoder&) = delete;
    ~PngEncoder() { png_destroy_write_struct(&png_, &info_); }  // does nothing where creation failed

    Result<void> encode();

private:
    void begin();
    Error failure() const;
    bool push(std::span<const std::uint8_t> bytes) noexcept;
    static void give(png_structp png, png_bytep bytes, std::size_t count);  // called by libpng

    const Canvas& canvas_;
    AtomicFile& file_;
    std::optional<Error> write_error_{};  // the reason why push() failed
    PngErrors errors_{};
    png_structp png_ = nullptr;
    png_infop info_ = nullptr;
    std::vector<std::uint8_t> row_{};
};

bool PngEncoder::push(std::span<const std::uint8_t> bytes) noexcept {
    Result<void> written = file_.write(bytes);
    if (!written) write_error_ = written.error();
    return written.ok();
}

void PngEncoder::give(png_structp png, png_bytep bytes, std::size_t count) {
    if (!static_cast<PngEncoder*>(png_get_io_ptr(png))->push({bytes, count})) png_error(png, "not written");
}

void PngEncoder::begin() {
    png_set_write_fn(png_, this, &give, [](png_structp) {});
    // Canvases are no larger than frames; the default limits of a libpng build may be smaller.
    png_set_user_limits(png_, max_png_side, max_png_side);
    png_set_compression_level(png_, 3);  // level 3 takes half the time of the default 6, for a tenth more bytes
    png_set_IHDR(png_, info_, canvas_.width(), canvas_.height(), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
}

Error PngEncoder::failure() const {
    if (write_error_) return *write_error_;
    return {Code::invalid_argument,
            std::to_string(canvas_.width()) + "x" + std::to_string(canvas_.height()) +
                " pixels cannot be written as a PNG picture: " + errors_.message(),
            "a name that ends in .ppm"};
}

Result<void> PngEncoder::encode() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors_, &PngErrors::error, &PngErrors::warning);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) return Error(Code::unsupported, "libpng could not be started (" PNG_LIBPNG_VER_STRING ")");
    if (!errors_.tried([this] { begin(); })) return failure();
    row_.resize(std::size_t{3} * canvas_.width());
    for (std::size_t y = 0; y < canvas_.height(); ++y) {
        for (std::size_t x = 0; x < canvas_.width(); ++x) {
            const Colour pixel = canvas_.pixels()[y * canvas_.width() + x];
            row_[3 * x] = pixel.red, row_[3 * x + 1] = pixel.green, row_[3 * x + 2] = pixel.blue;
        }
        if (!errors_.tried([this] { png_write_row(png_, row_.data()); })) return failure();
    }
    if (!errors_.tried([this] { png_write_end(png_, nullptr); })) return failure();
    return {};
}

}  // namespace

Result<void> encode_png(const Canvas& canvas, AtomicFile& file) {
    return PngEncoder(canvas, file).encode();
}

}  // namespace isthmus::tools::camera
