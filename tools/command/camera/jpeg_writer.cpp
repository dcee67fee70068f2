// SPDX-License-Identifier: Apache-2.0
// Writes JPEG through libjpeg, without subsampling, so that thin coloured lines stay thin.
#include "jpeg_errors.hpp"
#include "picture_encoders.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::camera {
namespace {

constexpr int quality = 92;

class JpegEncoder {
public:
    JpegEncoder(const Canvas& canvas, AtomicFile& file) : canvas_(canvas), file_(file) {}
    JpegEncoder(const JpegEncoder&) = delete;
    JpegEncoder& operator=(const JpegEncoder&) = delete;
    ~JpegEncoder() { jpeg_destroy_compress(&info_); }  // does nothing where creation failed

    Result<void> encode();

private:
    void begin();
    Error failure() const;
    static JpegEncoder& of(j_compress_ptr info) noexcept { return *static_cast<JpegEncoder*>(info->client_data); }
    bool push(std::size_t count) noexcept;
    void empty_buffer() noexcept;

    const Canvas& canvas_;
    AtomicFile& file_;
    std::optional<Error> write_error_{};  // the reason why push() failed
    JpegErrors errors_{};
    jpeg_destination_mgr output_{};
    jpeg_compress_struct info_{};
    std::array<std::uint8_t, 16384> buffer_{};
    std::vector<std::uint8_t> row_{};
};

bool JpegEncoder::push(std::size_t count) noexcept {
    Result<void> written = file_.write(std::span<const std::uint8_t>(buffer_).first(count));
    if (!written) write_error_ = written.error();
    return written.ok();
}

void JpegEncoder::empty_buffer() noexcept {
    output_.next_output_byte = buffer_.data();
    output_.free_in_buffer = buffer_.size();
}

void JpegEncoder::begin() {
    jpeg_create_compress(&info_);
    output_.init_destination = [](j_compress_ptr info) { of(info).empty_buffer(); };
    output_.empty_output_buffer = [](j_compress_ptr info) -> boolean {
        JpegEncoder& self = of(info);
        if (!self.push(self.buffer_.size())) JpegErrors::give_up(reinterpret_cast<j_common_ptr>(info), "not written");
        self.empty_buffer();
        return TRUE;
    };
    output_.term_destination = [](j_compress_ptr info) {
        JpegEncoder& self = of(info);
        if (!self.push(self.buffer_.size() - self.output_.free_in_buffer))
            JpegErrors::give_up(reinterpret_cast<j_common_ptr>(info), "not written");
    };
    info_.dest = &output_;
    info_.image_width = canvas_.width();
    info_.image_height = canvas_.height();
    info_.input_components = 3;
    info_.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, quality, TRUE);
    info_.dct_method = JDCT_ISLOW;
    info_.comp_info[0].h_samp_factor = info_.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&info_, TRUE);
}

Error JpegEncoder::failure() const {
    if (write_error_) return *write_error_;
    return {Code::invalid_argument,
            std::to_string(canvas_.width()) + "x" + std::to_string(canvas_.height()) +
                " pixels cannot be written as a JPEG picture: " + errors_.message(),
            "a name that ends in .png or .ppm"};
}

Result<void> JpegEncoder::encode() {
    info_.err = errors_.manager();
    info_.client_data = this;
    if (!errors_.tried([this] { begin(); })) return failure();
    row_.resize(std::size_t{3} * canvas_.width());
    for (std::size_t y = 0; y < canvas_.height(); ++y) {
        for (std::size_t x = 0; x < canvas_.width(); ++x) {
            const Colour pixel = canvas_.pixels()[y * canvas_.width() + x];
            row_[3 * x] = pixel.red, row_[3 * x + 1] = pixel.green, row_[3 * x + 2] = pixel.blue;
        }
        const bool written = errors_.tried([this] {
            JSAMPROW row = row_.data();
            jpeg_write_scanlines(&info_, &row, 1);
        });
        if (!written) return failure();
    }
    if (!errors_.tried([this] { jpeg_finish_compress(&info_); })) return failure();
    return {};
}

}  // namespace

Result<void> encode_jpeg(const Canvas& canvas, AtomicFile& file) {
    return JpegEncoder(canvas, file).encode();
}

}  // namespace isthmus::tools::camera
