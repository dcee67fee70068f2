// SPDX-License-Identifier: Apache-2.0
// OverlayWriter: writes canvases as a YUV4MPEG2 video or as pictures (PPM, PGM, JPEG, PNG); the file name decides.
#pragma once

#include "atomic_file.hpp"
#include "canvas.hpp"
#include "frame_reader.hpp"

#include <memory>
#include <string>
#include <vector>

namespace isthmus::tools::camera {

class OverlayWriter {
public:
    virtual ~OverlayWriter() = default;
    virtual Result<void> write(const Canvas& canvas) = 0;
    // Ends writing, adds the files to those that the run commits, and returns their names. Returns none where no
    // picture was written.
    virtual Result<std::vector<std::string>> finish(OutputFiles& files) = 0;
};

// Checks that open_overlay accepts the name, before any input is read. Errors: invalid_argument (no such extension),
// unsupported (this build has no encoder for it).
Result<void> check_overlay_name(const std::string& path);

// .y4m: one video (full-range 4:4:4, so that thin coloured lines stay thin). .ppm, .pgm, .jpg, .jpeg, .png: one picture
// of that name, or, for several frames, NAME-0000.ppm and so on. Files are begun here, so that an unwritable directory
// is found before the first frame.
Result<std::unique_ptr<OverlayWriter>> open_overlay(const std::string& path, std::uint32_t width, std::uint32_t height,
                                                    FrameRate rate);

}  // namespace isthmus::tools::camera
