// SPDX-License-Identifier: Apache-2.0
// Reads YUV4MPEG2: a header line, then for each frame a line and its planes. 8-bit mono and 4:2:0.
#include "frame_reader.hpp"
#include "numbers.hpp"

#include <string>
#include <string_view>

namespace isthmus::tools::camera {
namespace {

constexpr std::string_view magic = "YUV4MPEG2";
constexpr std::size_t max_line_bytes = 1024;

class Y4mReader final : public FrameReader {
public:
    Y4mReader(std::unique_ptr<ByteSource> source, const FrameShape& shape, FrameRate rate)
        : source_(std::move(source)) {
        shape_ = shape;
        rate_ = rate;
    }
    Result<Got> read(std::span<std::uint8_t> frame) override {
        std::string line;
        Result<Got> got = source_->read_line(line, max_line_bytes);
        if (!got || *got != Got::all) return got;
        if (line != "FRAME" && !line.starts_with("FRAME ")) {
            return Error(Code::invalid_argument, source_->name() + " has no FRAME line before byte " +
                                                     std::to_string(source_->position()) + ", where one was due");
        }
        got = source_->read(frame);
        if (got && *got == Got::nothing) {
            return Error(Code::invalid_argument, source_->name() + " is truncated: it ends at byte " +
                                                     std::to_string(source_->position()) +
                                                     ", after a FRAME line that no picture follows");
        }
        return got;
    }

private:
    std::unique_ptr<ByteSource> source_;
};

struct Header {
    std::uint64_t width = 0;
    std::uint64_t height = 0;
    FrameRate rate{};
    PixelFormat format = PixelFormat::i420;  // the format of a header without C
};

Error bad(const ByteSource& source, const std::string& what, std::string remedy = {}) {
    return Error(Code::invalid_argument, source.name() + ": " + what, std::move(remedy));
}

// 0:0 means "unknown" and keeps the default.
bool parse_rate(std::string_view text, FrameRate& rate) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return false;
    const auto numerator = parse_number<std::uint32_t>(text.substr(0, colon));
    const auto denominator = parse_number<std::uint32_t>(text.substr(colon + 1));
    if (!numerator || !denominator) return false;
    if (*numerator != 0 && *denominator != 0) rate = {*numerator, *denominator};
    return true;
}

Result<void> parse_field(const ByteSource& source, std::string_view field, Header& header) {
    const std::string_view value = field.substr(1);
    const auto refuse = [&](const char* what) {
        return bad(source, std::string(what) + " '" + std::string(value) + "'");
    };
    if (field[0] == 'W' || field[0] == 'H') {
        const auto size = parse_number<std::uint64_t>(value);
        if (!size) return refuse(field[0] == 'W' ? "the header has a width of" : "the header has a height of");
        (field[0] == 'W' ? header.width : header.height) = *size;
    } else if (field[0] == 'F') {
        if (!parse_rate(value, header.rate)) return refuse("the header has a frame rate of");
    } else if (field[0] == 'C') {
        if (value == "mono") {
            header.format = PixelFormat::gray;
        } else if (value == "420" || value == "420jpeg" || value == "420mpeg2" || value == "420paldv") {
            header.format = PixelFormat::i420;
        } else {
            return bad(source, "frames of colour format '" + std::string(value) + "' cannot be read",
                       "8-bit mono and 4:2:0 can: ffmpeg -pix_fmt gray or yuv420p");
        }
    }
    return {};  // other tags (interlacing, aspect, comments) do not affect corners
}

Result<Header> parse_header(const ByteSource& source, std::string_view line) {
    if (line != magic && !line.starts_with("YUV4MPEG2 ")) {
        return bad(source, "begins with Y, but not with YUV4MPEG2");
    }
    Header header;
    line.remove_prefix(magic.size());
    while (!line.empty()) {
        line.remove_prefix(1);
        const std::string_view field = line.substr(0, line.find(' '));
        line.remove_prefix(field.size());
        if (field.empty()) continue;
        if (Result<void> parsed = parse_field(source, field, header); !parsed) return std::move(parsed).error();
    }
    return header;
}

}  // namespace

Result<std::unique_ptr<FrameReader>> open_y4m(std::unique_ptr<ByteSource> source) {
    std::string line;
    Result<Got> got = source->read_line(line, max_line_bytes);
    if (!got) return std::move(got).error();
    if (*got == Got::stopped) return stopped_by_signal(*source);
    Result<Header> header = parse_header(*source, line);
    if (!header) return std::move(header).error();
    Result<FrameShape> shape = make_frame_shape(header->format, header->width, header->height);
    if (!shape) return bad(*source, std::string(shape.error().message()), std::string(shape.error().remedy()));
    return std::unique_ptr<FrameReader>(std::make_unique<Y4mReader>(std::move(source), *shape, header->rate));
}

}  // namespace isthmus::tools::camera
