// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes for the frame readers: they return frames or an error, and touch no other memory.
#include "camera/frame_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using namespace isthmus::tools::camera;

constexpr std::size_t max_frame_bytes = 1 << 20;
constexpr int max_frames = 8;

// The first byte chooses how the rest is read: by its own header, panned, or as raw frames of some shape.
InputOptions options_of(std::uint8_t choice) {
    InputOptions options;
    if (choice % 4 == 1) options.frames = 1 + choice / 4 % 8;
    if (choice % 4 == 2) {
        const isthmus::Result<FrameShape> shape = make_frame_shape(
            static_cast<PixelFormat>(choice / 4 % 6), 1 + choice / 24 % 3, 1 + choice / 72 % 3, choice & 0x80 ? 16 : 0);
        if (shape) options.raw = *shape;
    }
    return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    isthmus::Result<std::unique_ptr<FrameReader>> reader =
        open_frames(from_memory("input", bytes), options_of(data[0]));
    if (!reader) {
        if (reader.error().message().empty()) std::abort();  // a refusal has a message
        return 0;
    }
    const FrameShape& shape = (*reader)->shape();
    if (shape.width == 0 || shape.height == 0 || shape.pitch_bytes < shape.width ||
        shape.size_bytes < std::size_t{shape.pitch_bytes} * shape.height)
        std::abort();
    if (shape.size_bytes > max_frame_bytes) return 0;
    std::vector<std::uint8_t> frame(shape.size_bytes);
    for (int at = 0; at < max_frames; ++at) {
        isthmus::Result<Got> got = (*reader)->read(frame);
        if (!got || *got != Got::all) return 0;
    }
    return 0;
}
