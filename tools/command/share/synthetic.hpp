// SPDX-License-Identifier: Apache-2.0
// A clip without a camera: gray frames that a number decides, with corners that move.
#pragma once

#include "camera/frame_reader.hpp"

#include <cstdint>
#include <memory>

namespace isthmus::tools::share {

// frames = 0: without end.
Result<std::unique_ptr<camera::FrameReader>> open_synthetic(std::uint64_t width, std::uint64_t height,
                                                            std::uint64_t frames);

}  // namespace isthmus::tools::share
