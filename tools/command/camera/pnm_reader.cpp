// SPDX-License-Identifier: Apache-2.0
// Reads binary PGM and PPM (P5, P6; 8 bits), colour as luma. Several pictures of one size in a row are a stream; a
// single picture can be panned into a stream.
#include "frame_reader.hpp"
#include "panning.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace isthmus::tools::camera {
namespace {

constexpr std::uint64_t max_number = 1'000'000'000;

struct PnmHeader {
    bool colour = false;
    std::uint32_t max_value = 255;
    FrameShape shape{};
};

Error bad(const ByteSource& source, const std::string& what, std::string remedy = {}) {
    return Error(Code::invalid_argument, source.name() + ": " + what, std::move(remedy));
}

// Returns the next byte. The end and a signal are errors, because a header or a picture was begun.
Result<char> next(ByteSource& source) {
    std::uint8_t byte = 0;
    Result<Got> got = source.read({&byte, 1});
    if (!got) return std::move(got).error();
    if (*got == Got::stopped) return stopped_by_signal(source);
    if (*got == Got::nothing)
        return bad(source, "is truncated: it ends in a header at byte " + std::to_string(source.position()));
    return static_cast<char>(byte);
}

constexpr bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Reads a number after white space and comments, and consumes the one character after it, which must be white space.
Result<std::uint64_t> next_number(ByteSource& source) {
    Result<char> c = next(source);
    while (c && (is_space(*c) || *c == '#')) {
        if (*c == '#')
            while (c && *c != '\n') c = next(source);
        if (c) c = next(source);
    }
    std::uint64_t number = 0;
    bool any = false;
    for (; c && *c >= '0' && *c <= '9'; c = next(source)) {
        any = true;
        number = number * 10 + static_cast<std::uint64_t>(*c - '0');
        if (number > max_number) return bad(source, "a number in the header is absurdly large");
    }
    if (!c) return std::move(c).error();
    if (!any || !is_space(*c)) return bad(source, "the header has something else where a number is due");
    return number;
}

Result<PnmHeader> read_header(ByteSource& source) {
    Result<char> c = next(source);
    if (!c) return std::move(c).error();
    Result<char> kind = next(source);
    if (!kind) return std::move(kind).error();
    if (*c != 'P' || (*kind != '5' && *kind != '6')) {
        return bad(source, "is no binary PGM or PPM picture (P5 or P6)",
                   "pnmtopnm writes text pictures (P2, P3) as binary ones");
    }
    std::uint64_t numbers[3] = {};
    for (std::uint64_t& number : numbers) {
        Result<std::uint64_t> read = next_number(source);
        if (!read) return std::move(read).error();
        number = *read;
    }
    if (numbers[2] == 0 || numbers[2] > 255) {
        return bad(source, "has a greatest value of " + std::to_string(numbers[2]) + "; 1 to 255 can be read",
                   "pamdepth 255 makes 8-bit pictures");
    }
    Result<FrameShape> shape = make_frame_shape(PixelFormat::gray, numbers[0], numbers[1]);
    if (!shape) return bad(source, std::string(shape.error().message()), std::string(shape.error().remedy()));
    return PnmHeader{*kind == '6', static_cast<std::uint32_t>(numbers[2]), *shape};
}

// Clamps values above the maximum.
std::uint8_t gray_of(const std::uint8_t* sample, const PnmHeader& header) {
    const std::uint32_t most = header.max_value;
    const auto full = [most](std::uint32_t value) {
        return most == 255 ? value : (std::min(value, most) * 255 + most / 2) / most;
    };
    if (!header.colour) return static_cast<std::uint8_t>(full(sample[0]));
    return luma_of_rgb(full(sample[0]), full(sample[1]), full(sample[2]));
}

// Calls take(y, row) for every row, converted to gray.
template <class F>
Result<Got> read_picture(ByteSource& source, const PnmHeader& header, F take) {
    const std::size_t samples = header.colour ? 3 : 1;
    std::vector<std::uint8_t> row(samples * header.shape.width);
    for (std::uint32_t y = 0; y < header.shape.height; ++y) {
        Result<Got> got = source.read(row);
        if (!got || *got == Got::stopped) return got;
        if (*got == Got::nothing) {
            return bad(source, "is truncated: it ends at byte " + std::to_string(source.position()) + ", after " +
                                   std::to_string(y) + " of " + std::to_string(header.shape.height) + " rows");
        }
        for (std::uint32_t x = 0; x < header.shape.width; ++x) row[x] = gray_of(row.data() + samples * x, header);
        take(y, std::span<const std::uint8_t>(row).first(header.shape.width));
    }
    return Got::all;
}

PictureFacts facts_of(const PnmHeader& header) {
    return {header.colour ? "PPM" : "PGM", header.colour, header.shape.width, header.shape.height};
}

class PnmReader final : public FrameReader {
public:
    PnmReader(std::unique_ptr<ByteSource> source, const PnmHeader& header, std::vector<std::uint8_t> first)
        : source_(std::move(source)), first_(std::move(first)) {
        shape_ = header.shape;
        picture_ = facts_of(header);
    }
    Result<Got> read(std::span<std::uint8_t> frame) override {
        if (!first_.empty()) {
            std::copy(first_.begin(), first_.end(), frame.begin());
            first_ = {};
            return Got::all;
        }
        Result<int> byte = source_->peek();
        if (!byte) return std::move(byte).error();
        if (*byte < 0) return *byte == -1 ? Got::nothing : Got::stopped;
        Result<PnmHeader> header = read_header(*source_);
        if (!header) return header.code() == Code::not_ready ? Result<Got>(Got::stopped) : std::move(header).error();
        if (header->shape.width != shape_.width || header->shape.height != shape_.height)
            return bad(*source_, "the pictures of a stream have different sizes");
        return read_picture(*source_, *header, [&](std::uint32_t y, std::span<const std::uint8_t> row) {
            std::copy(row.begin(), row.end(), frame.begin() + std::ptrdiff_t{y} * shape_.pitch_bytes);
        });
    }

private:
    std::unique_ptr<ByteSource> source_;
    std::vector<std::uint8_t> first_;  // read when opening, to find whether others follow
};

}  // namespace

Result<std::unique_ptr<FrameReader>> open_pnm(std::unique_ptr<ByteSource> source, std::uint64_t frames) {
    Result<PnmHeader> header = read_header(*source);
    if (!header) return std::move(header).error();
    // The vector grows with the rows that really arrive: a header alone gets no memory for the size that it claims.
    std::vector<std::uint8_t> picture;
    Result<Got> got = read_picture(*source, *header, [&](std::uint32_t, std::span<const std::uint8_t> row) {
        picture.insert(picture.end(), row.begin(), row.end());
    });
    if (!got) return std::move(got).error();
    if (*got == Got::stopped) return stopped_by_signal(*source);
    Result<int> after = source->peek();
    if (!after) return std::move(after).error();
    if (*after == -1 && frames > 1) return open_picture(facts_of(*header), std::move(picture), frames);
    return std::unique_ptr<FrameReader>(std::make_unique<PnmReader>(std::move(source), *header, std::move(picture)));
}

}  // namespace isthmus::tools::camera
