// SPDX-License-Identifier: Apache-2.0
// A synthetic clip: gray frames with moving corners, computed from the frame number.
#pragma once

#include "camera/frame_reader.hpp"

#include <cstdint>
#include <memory>

namespace isthmus::tools::share {

// frames = 0: endless.
Result<std::unique_ptr<camera::FrameReader>> open_synthetic(std::uint64_t width, std::uint64_t height,
                                                            std::uint64_t frames);

}  // namespace isthmus::tools::share
