// SPDX-License-Identifier: Apache-2.0
// Reads PNG through libpng, which unpacks samples to 8 bits. Luma and transparency are computed here, in integers.
#include "frame_reader.hpp"
#include "panning.hpp"
#include "png_errors.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::camera {
namespace {

using Pixels = std::vector<std::uint8_t>;

class PngDecoder {
public:
    explicit PngDecoder(ByteSource& source) : source_(source) {}
    PngDecoder(const PngDecoder&) = delete;
    PngDecoder& operator=(const PngDecoder&) = delete;
    ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }  // does nothing where creation failed

    Result<PictureFacts> begin();
    Result<Pixels> pixels();

private:
    void unpack();
    Result<void> read_rows(std::uint32_t rows, std::uint32_t columns, Pixels& into);
    Pixels woven(const std::array<Pixels, PNG_INTERLACE_ADAM7_PASSES>& passes) const;
    std::uint8_t gray_of(const std::uint8_t* sample) const noexcept;
    Error failure() const;
    Error bad(const std::string& what, std::string remedy = {}) const {
        return Error(Code::invalid_argument, source_.name() + " " + what, std::move(remedy));
    }
    static void take(png_structp png, png_bytep to, std::size_t count);  // called by libpng
    bool pull(std::span<std::uint8_t> into) noexcept;

    ByteSource& source_;
    std::optional<Error> read_error_{};  // the reason why pull() returned nothing
    PngErrors errors_{};
    png_structp png_ = nullptr;
    png_infop info_ = nullptr;
    std::uint32_t width_ = 0;
    std::uint32_t height_ = 0;
    std::size_t channels_ = 0;  // of unpacked rows: gray, gray and alpha, RGB, or RGB and alpha
    Pixels row_{};
};

bool PngDecoder::pull(std::span<std::uint8_t> into) noexcept {
    Result<Got> got = source_.read(into);
    if (!got) {
        read_error_ = got.error();
    } else if (*got == Got::stopped) {
        read_error_ = stopped_by_signal(source_);
    } else if (*got == Got::nothing) {
        read_error_ = bad("is truncated: it ends at byte " + std::to_string(source_.position()) +
                          ", before the PNG picture does");
    } else {
        return true;
    }
    return false;
}

void PngDecoder::take(png_structp png, png_bytep to, std::size_t count) {
    auto& self = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (!self.pull({to, count})) png_error(png, "no more input");
}

Error PngDecoder::failure() const {
    if (read_error_) return *read_error_;
    return bad(std::string("is no PNG picture that can be read: ") + errors_.message());
}

// Unpacks to 8 bits a sample: palettes to RGB, fewer bits spread over the whole range, 16 bits rounded, and a
// transparent colour to alpha. No gamma correction: the file's gamma chunk is not read.
void PngDecoder::unpack() {
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_read_update_info(png_, info_);
    channels_ = png_get_channels(png_, info_);
}

Result<PictureFacts> PngDecoder::begin() {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, &PngErrors::error, &PngErrors::warning);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) return Error(Code::unsupported, "libpng could not be started (" PNG_LIBPNG_VER_STRING ")");
    const bool read = errors_.tried([this] {
        png_set_read_fn(png_, this, &take);
        // Skips chunks without pixels: the picture's size does not bound their unpacked size.
        png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
        // the size is checked below, with a message of this project
        png_set_user_limits(png_, max_png_side, max_png_side);
        png_read_info(png_, info_);
        width_ = png_get_image_width(png_, info_);
        height_ = png_get_image_height(png_, info_);
    });
    if (!read) return failure();
    Result<FrameShape> shape = make_frame_shape(PixelFormat::gray, width_, height_);
    if (!shape)
        return bad("cannot be read: " + std::string(shape.error().message()), std::string(shape.error().remedy()));
    const bool colour = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0;
    if (!errors_.tried([this] { unpack(); })) return failure();
    return PictureFacts{"PNG", colour, width_, height_};
}

// Transparent pixels are blended with white.
std::uint8_t PngDecoder::gray_of(const std::uint8_t* sample) const noexcept {
    const std::uint32_t gray = channels_ < 3 ? sample[0] : luma_of_rgb(sample[0], sample[1], sample[2]);
    if (channels_ % 2 != 0) return static_cast<std::uint8_t>(gray);
    const std::uint32_t alpha = sample[channels_ - 1];
    return static_cast<std::uint8_t>((gray * alpha + 255 * (255 - alpha) + 127) / 255);
}

// The vector grows with the rows that really arrive, as for other pictures.
Result<void> PngDecoder::read_rows(std::uint32_t rows, std::uint32_t columns, Pixels& into) {
    for (std::uint32_t y = 0; y < rows; ++y) {
        if (!errors_.tried([this] { png_read_row(png_, row_.data(), nullptr); })) return failure();
        for (std::size_t x = 0; x < columns; ++x) row_[x] = gray_of(row_.data() + channels_ * x);
        into.insert(into.end(), row_.begin(), row_.begin() + std::ptrdiff_t{columns});
    }
    return {};
}

// An interlaced picture arrives as seven smaller ones; this joins them.
Pixels PngDecoder::woven(const std::array<Pixels, PNG_INTERLACE_ADAM7_PASSES>& passes) const {
    Pixels picture(std::size_t{width_} * height_);
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass) {
        const std::uint32_t columns = PNG_PASS_COLS(width_, pass), rows = PNG_PASS_ROWS(height_, pass);
        std::size_t at = 0;
        for (std::uint32_t y = 0; columns > 0 && y < rows; ++y) {
            for (std::uint32_t x = 0; x < columns; ++x) {
                const std::size_t row = PNG_ROW_FROM_PASS_ROW(y, pass), column = PNG_COL_FROM_PASS_COL(x, pass);
                picture[row * width_ + column] = passes[static_cast<std::size_t>(pass)][at++];
            }
        }
    }
    return picture;
}

Result<Pixels> PngDecoder::pixels() {
    row_.resize(png_get_rowbytes(png_, info_));
    Pixels picture;
    if (png_get_interlace_type(png_, info_) == PNG_INTERLACE_NONE) {
        if (Result<void> read = read_rows(height_, width_, picture); !read) return std::move(read).error();
    } else {
        std::array<Pixels, PNG_INTERLACE_ADAM7_PASSES> passes;
        for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass) {
            const std::uint32_t columns = PNG_PASS_COLS(width_, pass);
            if (columns == 0) continue;
            Result<void> read =
                read_rows(PNG_PASS_ROWS(height_, pass), columns, passes[static_cast<std::size_t>(pass)]);
            if (!read) return std::move(read).error();
        }
        picture = woven(passes);
    }
    if (!errors_.tried([this] { png_read_end(png_, nullptr); })) return failure();
    return picture;
}

}  // namespace

Result<std::unique_ptr<FrameReader>> open_png(std::unique_ptr<ByteSource> source, std::uint64_t frames) {
    PngDecoder decoder(*source);
    Result<PictureFacts> facts = decoder.begin();
    if (!facts) return std::move(facts).error();
    Result<Pixels> picture = decoder.pixels();
    if (!picture) return std::move(picture).error();
    return open_picture(*facts, std::move(picture).value(), frames);
}

}  // namespace isthmus::tools::camera
