// SPDX-License-Identifier: Apache-2.0
// The plain reference: filters row by row and column by column, and compares every neighbour.
#include "reference.hpp"

#include <algorithm>

namespace isthmus::tools::camera {
namespace {

// Rows first, then columns: the kernels take all 25 at once.
Picture filtered(const Picture& from, std::initializer_list<int> across, std::initializer_list<int> down) {
    Picture half(from.width, from.height), whole(from.width, from.height);
    const int reach_x = static_cast<int>(across.size()) / 2, reach_y = static_cast<int>(down.size()) / 2;
    for (int y = 0; y < from.height; ++y) {
        for (int x = 0; x < from.width; ++x)
            for (int at = -reach_x; at <= reach_x; ++at)
                half.at(x, y) += across.begin()[at + reach_x] * from.near(x + at, y);
    }
    for (int y = 0; y < from.height; ++y) {
        for (int x = 0; x < from.width; ++x)
            for (int at = -reach_y; at <= reach_y; ++at)
                whole.at(x, y) += down.begin()[at + reach_y] * half.near(x, y + at);
    }
    return whole;
}

Picture product(const Picture& a, const Picture& b) {
    Picture result(a.width, a.height);
    for (std::size_t at = 0; at < result.values.size(); ++at) result.values[at] = a.values[at] * b.values[at];
    return result;
}

std::int64_t floor_divided(std::int64_t value, std::int64_t by) {
    const std::int64_t quotient = value / by;
    return value % by < 0 ? quotient - 1 : quotient;
}

Picture harris(const Picture& gray) {
    Picture smooth = filtered(gray, {1, 4, 6, 4, 1}, {1, 4, 6, 4, 1});
    for (std::int64_t& value : smooth.values) value = (value + 128) / 256;
    const Picture dx = filtered(smooth, {-1, 0, 1}, {1, 2, 1}), dy = filtered(smooth, {1, 2, 1}, {-1, 0, 1});
    const auto box = [](const Picture& picture) { return filtered(picture, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}); };
    const Picture xx = box(product(dx, dx)), yy = box(product(dy, dy)), xy = box(product(dx, dy));
    Picture response(gray.width, gray.height);
    for (std::size_t at = 0; at < response.values.size(); ++at) {
        const std::int64_t det = xx.values[at] * yy.values[at] - xy.values[at] * xy.values[at];
        const std::int64_t trace = xx.values[at] + yy.values[at];
        response.values[at] = floor_divided(25 * det - trace * trace, std::int64_t{1} << 23);
    }
    return response;
}

bool is_greatest(const Picture& response, int x, int y, int radius) {
    const std::int64_t own = response.near(x, y);
    for (int v = std::max(0, y - radius); v <= std::min(response.height - 1, y + radius); ++v) {
        for (int u = std::max(0, x - radius); u <= std::min(response.width - 1, x + radius); ++u) {
            const std::int64_t other = response.near(u, v);
            if (other > own) return false;
            if (other == own && (v < y || (v == y && u < x))) return false;
        }
    }
    return true;
}

}  // namespace

std::int64_t Picture::near(int x, int y) const {
    const auto u = static_cast<std::size_t>(std::clamp(x, 0, width - 1));
    const auto v = static_cast<std::size_t>(std::clamp(y, 0, height - 1));
    return values[v * static_cast<std::size_t>(width) + u];
}

Picture gray_of(const FrameShape& shape, const Frame& frame) {
    Picture gray(static_cast<int>(shape.width), static_cast<int>(shape.height));
    const bool packed = shape.format == PixelFormat::yuyv || shape.format == PixelFormat::uyvy;
    const std::size_t first = shape.format == PixelFormat::uyvy ? 1 : 0;
    for (int y = 0; y < gray.height; ++y) {
        for (int x = 0; x < gray.width; ++x)
            gray.at(x, y) = frame[static_cast<std::size_t>(y) * shape.pitch_bytes +
                                  static_cast<std::size_t>(x) * (packed ? 2 : 1) + first];
    }
    return gray;
}

std::vector<kernels::Corner> reference_corners(const Picture& gray, const kernels::CornerRule& rule) {
    const Picture response = harris(gray);
    const int border = static_cast<int>(rule.border);
    std::vector<kernels::Corner> corners;
    for (int y = border; y < gray.height - border; ++y) {
        for (int x = border; x < gray.width - border; ++x) {
            const std::int64_t own = response.near(x, y);
            if (own > rule.threshold && is_greatest(response, x, y, static_cast<int>(rule.radius)))
                corners.push_back(
                    {static_cast<std::uint16_t>(x), static_cast<std::uint16_t>(y), static_cast<std::int32_t>(own)});
        }
    }
    return corners;
}

}  // namespace isthmus::tools::camera
