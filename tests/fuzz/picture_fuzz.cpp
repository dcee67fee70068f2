// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes for the readers of JPEG and PNG: they return a picture or an error, and touch no other memory. The
// first byte chooses: bit 0, whether the checksums of a PNG's chunks are corrected, without which libpng reads little
// of a changed file; bits 1 and 2, how many frames the picture is panned into.
#include "camera/frame_reader.hpp"
#include "require.hpp"
#include "made_png.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace isthmus::tools::camera;

constexpr std::size_t max_frame_bytes = 1 << 20;

// As long as the lengths of chunks lie within the file.
void put_checksums_right(std::string& file) {
    const auto number = [&](std::size_t at) {
        std::uint32_t value = 0;
        for (std::size_t byte = at; byte < at + 4; ++byte) value = value << 8 | static_cast<std::uint8_t>(file[byte]);
        return value;
    };
    for (std::size_t at = 8; at + 12 <= file.size();) {
        const std::size_t length = number(at);
        if (length > file.size() - at - 12) return;
        file.replace(at + 8 + length, 4, big_endian(png_crc(std::string_view(file).substr(at + 4, length + 4))));
        at += 12 + length;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
    if ((data[0] & 1) != 0) put_checksums_right(file);
    InputOptions options;
    options.frames = data[0] >> 1 & 3;
    const std::vector<char> exact(file.begin(), file.end());  // so that a sanitizer detects a read beyond its end
    isthmus::Result<std::unique_ptr<FrameReader>> reader =
        open_frames(from_memory("input", {exact.data(), exact.size()}), options);
    if (!reader) {
        require(!reader.error().message().empty());
        return 0;
    }
    const FrameShape& shape = (*reader)->shape();
    require(shape.width > 0 && shape.height > 0 && shape.size_bytes >= std::size_t{shape.width} * shape.height);
    if (const std::optional<PictureFacts>& picture = (*reader)->picture())
        require(shape.width <= picture->width && shape.height <= picture->height);
    if (shape.size_bytes > max_frame_bytes) return 0;
    std::vector<std::uint8_t> frame(shape.size_bytes);
    for (int at = 0; at < 4; ++at) {
        isthmus::Result<Got> got = (*reader)->read(frame);
        if (!got || *got != Got::all) return 0;
    }
    return 0;
}
