// SPDX-License-Identifier: Apache-2.0
// What a V4L2 driver fills in: a format in either form, a filled buffer, frame rates and the formats that it offers.
// The first byte chooses the form; the bytes behind it are the structures.
#include "camera/video_format.hpp"
#include "require.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::tools::camera;

using Bytes = std::span<const std::uint8_t>;

// What is missing is zero.
template <class T>
T taken(Bytes& bytes) {
    T value{};
    const std::size_t count = std::min(sizeof(T), bytes.size());
    std::memcpy(&value, bytes.data(), count);
    bytes = bytes.subspan(count);
    return value;
}

// Frames that are accepted lie within their buffers, and their luma within them.
void judge_frames(const v4l2_format& format) {
    const Result<VideoFrames> frames = frames_of(format);
    if (!frames) {
        require(!frames.error().message().empty());
        return;
    }
    const FrameShape& shape = frames->shape;
    require(shape.size_bytes > 0 && shape.size_bytes <= frames->memory_bytes);
    require(frames->memory_bytes <= 8 * max_pixels);
    require(shape.width > 0 && shape.height > 0 && shape.width <= max_pixels_a_side);
    const kernels::LumaLayout layout = kernels::luma_layout(shape.format, shape.pitch_bytes);
    const std::size_t last = layout.offset_bytes + std::size_t{shape.height - 1} * layout.pitch_bytes +
                             std::size_t{shape.width - 1} * layout.step_bytes;
    require(last < shape.size_bytes);
}

void judge_buffer(Bytes bytes) {
    const auto buffer = taken<v4l2_buffer>(bytes);
    const auto used = taken<std::uint32_t>(bytes);
    bool queued[32] = {};
    const std::size_t count = bytes.empty() ? 0 : bytes[0] % 33;
    for (std::size_t at = 0; at < count; ++at) queued[at] = at + 1 < bytes.size() && bytes[at + 1] % 2 != 0;
    const Result<FilledBuffer> filled = filled_buffer(buffer, used, {queued, count}, 1000);
    if (!filled) return;
    require(filled->index < count && queued[filled->index]);
    if (filled->whole) require(used >= 1000);
}

void judge_offer(Bytes bytes) {
    std::vector<std::uint32_t> offered;
    while (bytes.size() >= 4) offered.push_back(taken<std::uint32_t>(bytes));
    const Result<std::uint32_t> chosen = choose_fourcc(offered, std::nullopt, "camera");
    if (chosen) {
        require(std::find(offered.begin(), offered.end(), *chosen) != offered.end());
        require(pixel_format_of(*chosen).has_value());
    } else {
        for (const char letter : chosen.error().message()) require(letter >= 0x20 && letter <= 0x7e);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    Bytes bytes(data + 1, size - 1);
    switch (data[0] % 4) {
        case 0: judge_frames(taken<v4l2_format>(bytes)); break;
        case 1: judge_buffer(bytes); break;
        case 2: judge_offer(bytes); break;
        default: {
            const FrameRate rate = frame_rate_of(taken<v4l2_streamparm>(bytes));
            require(rate.numerator != 0 && rate.denominator != 0);
        }
    }
    return 0;
}
