// SPDX-License-Identifier: Apache-2.0
// Reads JPEG through libjpeg: the luma as stored, so that the same file gives the same bits on every machine.
#include "exif.hpp"
#include "frame_reader.hpp"
#include "jpeg_errors.hpp"
#include "panning.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::camera {
namespace {

// Usual progressive files have about ten scans. A hostile file repeats a scan of a few bytes that covers all pixels.
constexpr int max_scans = 100;
// Limit for libjpeg's memory: all coefficients of the largest progressive picture.
constexpr long max_decoder_bytes = 1L << 30;

class JpegDecoder {
public:
    explicit JpegDecoder(ByteSource& source) : source_(source) {}
    JpegDecoder(const JpegDecoder&) = delete;
    JpegDecoder& operator=(const JpegDecoder&) = delete;
    ~JpegDecoder() { jpeg_destroy_decompress(&info_); }  // does nothing where creation failed

    Result<PictureFacts> begin();
    Result<std::vector<std::uint8_t>> pixels();
    Orientation orientation() const noexcept { return orientation_; }

private:
    void create();
    Result<void> choose_output();
    Error failure() const;
    Error bad(const std::string& what, std::string remedy = {}) const {
        return Error(Code::invalid_argument, source_.name() + " " + what, std::move(remedy));
    }

    // Callbacks for libjpeg.
    static JpegDecoder& of(j_decompress_ptr info) noexcept { return *static_cast<JpegDecoder*>(info->client_data); }
    static boolean fill(j_decompress_ptr info);
    static void skip(j_decompress_ptr info, long count);
    static boolean read_app1(j_decompress_ptr info);
    static void count_scans(j_common_ptr info);
    bool pull() noexcept;

    ByteSource& source_;
    std::optional<Error> read_error_{};  // the reason why pull() returned nothing
    JpegErrors errors_{};
    jpeg_source_mgr input_{};
    jpeg_progress_mgr progress_{};
    jpeg_decompress_struct info_{};
    Orientation orientation_ = Orientation::upright;
    std::array<std::uint8_t, 4096> buffer_{};
    std::array<std::uint8_t, 65536> segment_{};  // contents of APP1
    std::vector<std::uint8_t> row_{};
};

bool JpegDecoder::pull() noexcept {
    Result<std::ptrdiff_t> got = source_.read_up_to(buffer_);
    if (!got) {
        read_error_ = got.error();
    } else if (*got < 0) {
        read_error_ = stopped_by_signal(source_);
    } else if (*got == 0) {
        read_error_ = bad("is truncated: it ends at byte " + std::to_string(source_.position()) +
                          ", before the JPEG picture does");
    } else {
        input_.next_input_byte = buffer_.data();
        input_.bytes_in_buffer = static_cast<std::size_t>(*got);
        return true;
    }
    return false;
}

boolean JpegDecoder::fill(j_decompress_ptr info) {
    if (!of(info).pull()) JpegErrors::give_up(reinterpret_cast<j_common_ptr>(info), "no more input");
    return TRUE;
}

void JpegDecoder::skip(j_decompress_ptr info, long count) {
    if (count <= 0) return;
    auto left = static_cast<std::size_t>(count);
    while (left > info->src->bytes_in_buffer) {
        left -= info->src->bytes_in_buffer;
        fill(info);
    }
    info->src->next_input_byte += left;
    info->src->bytes_in_buffer -= left;
}

// Replaces libjpeg's own function, which would keep every such segment of the file.
boolean JpegDecoder::read_app1(j_decompress_ptr info) {
    const auto next = [info]() -> std::size_t {
        if (info->src->bytes_in_buffer == 0) fill(info);
        --info->src->bytes_in_buffer;
        return *info->src->next_input_byte++;
    };
    JpegDecoder& self = of(info);
    const std::size_t high = next();
    const std::size_t length = high << 8 | next();
    if (length < 2) JpegErrors::give_up(reinterpret_cast<j_common_ptr>(info), "a segment has a length below 2");
    for (std::size_t at = 0; at < length - 2; ++at) self.segment_[at] = static_cast<std::uint8_t>(next());
    if (self.orientation_ == Orientation::upright) {
        self.orientation_ = exif_orientation(std::span<const std::uint8_t>(self.segment_).first(length - 2));
    }
    return TRUE;
}

void JpegDecoder::count_scans(j_common_ptr info) {
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > max_scans) {
        JpegErrors::give_up(info, "more than 100 scans");
    }
}

void JpegDecoder::create() {
    jpeg_create_decompress(&info_);
    input_.init_source = [](j_decompress_ptr) {};
    input_.fill_input_buffer = &fill;
    input_.skip_input_data = &skip;
    input_.resync_to_restart = &jpeg_resync_to_restart;
    input_.term_source = [](j_decompress_ptr) {};
    info_.src = &input_;
    progress_.progress_monitor = &count_scans;
    info_.progress = &progress_;
    info_.mem->max_memory_to_use = max_decoder_bytes;
    jpeg_set_marker_processor(&info_, JPEG_APP0 + 1, &read_app1);
}

Error JpegDecoder::failure() const {
    if (read_error_) return *read_error_;
    return bad(std::string("is no JPEG picture that can be read: ") + errors_.message());
}

// The luma is a separate component and is taken as stored. Upsampling, conversion of colours, and the smoothing of
// coarse progressive pictures differ between libraries and are switched off.
Result<void> JpegDecoder::choose_output() {
    if (info_.data_precision != 8) {
        return bad("has " + std::to_string(info_.data_precision) + " bits for a sample; JPEG pictures of 8 can be read",
                   "a picture of 8 bits: convert FILE -depth 8 FILE.png");
    }
    switch (info_.jpeg_color_space) {
        case JCS_GRAYSCALE:
        case JCS_YCbCr: info_.out_color_space = JCS_GRAYSCALE; break;
        case JCS_RGB: info_.out_color_space = JCS_RGB; break;
        case JCS_CMYK:
        case JCS_YCCK:
            return bad("is a JPEG picture for print (CMYK), which cannot be read",
                       "a picture in RGB or gray: convert FILE -colorspace sRGB FILE.png");
        default:
            return bad(
                "is a JPEG picture of " + std::to_string(info_.num_components) + " components without a known meaning",
                "a picture in RGB or gray");
    }
    info_.dct_method = JDCT_ISLOW;
    info_.do_fancy_upsampling = FALSE;
    info_.do_block_smoothing = FALSE;
    return {};
}

Result<PictureFacts> JpegDecoder::begin() {
    info_.err = errors_.manager();
    info_.client_data = this;
    if (!errors_.tried([this] { create(); })) return failure();
    if (!errors_.tried([this] { jpeg_read_header(&info_, TRUE); })) return failure();
    Result<FrameShape> shape = make_frame_shape(PixelFormat::gray, info_.image_width, info_.image_height);
    if (!shape)
        return bad("cannot be read: " + std::string(shape.error().message()), std::string(shape.error().remedy()));
    if (Result<void> chosen = choose_output(); !chosen) return std::move(chosen).error();
    return PictureFacts{"JPEG", info_.num_components > 1, info_.image_width, info_.image_height};
}

Result<std::vector<std::uint8_t>> JpegDecoder::pixels() {
    if (!errors_.tried([this] { jpeg_start_decompress(&info_); })) return failure();
    row_.resize(std::size_t{info_.output_width} * static_cast<std::size_t>(info_.output_components));
    // The vector grows with the rows that really arrive, as for other pictures.
    std::vector<std::uint8_t> picture;
    while (info_.output_scanline < info_.output_height) {
        const bool read = errors_.tried([this] {
            JSAMPROW row = row_.data();
            jpeg_read_scanlines(&info_, &row, 1);
        });
        if (!read) return failure();
        if (info_.output_components == 3) {
            for (std::size_t x = 0; x < info_.output_width; ++x)
                row_[x] = luma_of_rgb(row_[3 * x], row_[3 * x + 1], row_[3 * x + 2]);
        }
        picture.insert(picture.end(), row_.begin(), row_.begin() + static_cast<std::ptrdiff_t>(info_.output_width));
    }
    if (!errors_.tried([this] { jpeg_finish_decompress(&info_); })) return failure();  // reads up to the end marker
    return picture;
}

}  // namespace

Result<std::unique_ptr<FrameReader>> open_jpeg(std::unique_ptr<ByteSource> source, std::uint64_t frames) {
    const auto decoder = std::make_unique<JpegDecoder>(*source);
    Result<PictureFacts> facts = decoder->begin();
    if (!facts) return std::move(facts).error();
    Result<std::vector<std::uint8_t>> picture = decoder->pixels();
    if (!picture) return std::move(picture).error();
    std::vector<std::uint8_t> upright = made_upright(*facts, std::move(picture).value(), decoder->orientation());
    return open_picture(*facts, std::move(upright), frames);
}

}  // namespace isthmus::tools::camera
