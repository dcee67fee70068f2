// SPDX-License-Identifier: Apache-2.0
// A second, plain implementation of what the camera kernels promise: the oracle of whole runs.
#pragma once

#include "read_frames.hpp"

#include <isthmus/kernels/camera.hpp>

#include <cstdint>
#include <vector>

namespace isthmus::tools::camera {

// One value per pixel; outside the picture, the nearest pixel's.
struct Picture {
    int width = 0;
    int height = 0;
    std::vector<std::int64_t> values{};

    Picture(int w, int h) : width(w), height(h), values(static_cast<std::size_t>(w) * static_cast<std::size_t>(h)) {}
    std::int64_t& at(int x, int y) {
        return values[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)];
    }
    std::int64_t near(int x, int y) const;
};

Picture gray_of(const FrameShape& shape, const Frame& frame);
std::vector<kernels::Corner> reference_corners(const Picture& gray, const kernels::CornerRule& rule);

}  // namespace isthmus::tools::camera
