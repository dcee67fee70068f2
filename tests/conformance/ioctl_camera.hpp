// SPDX-License-Identifier: Apache-2.0
// The system calls of a V4L2 camera for a loop whose system calls are watched: of a camera of this machine, or of a
// made-up one whose ioctls enter the kernel before it answers them.
#pragma once

#include "camera/video_device.hpp"

#include <string>

namespace conformance {

// The camera that ISTHMUS_TEST_CAMERA names ("/dev/video0"); empty: none, and the made-up one is used.
std::string camera_of_this_machine();

// For one camera of a process. Frame n holds the byte n in each pixel; every eighth is late, and poll() waits for it.
const isthmus::tools::camera::VideoCalls& calls_of(const std::string& camera);

// Whether the frame is the made-up camera's number n, where that is the camera.
bool is_frame(const std::string& camera, unsigned char pixel, unsigned number);

}  // namespace conformance
