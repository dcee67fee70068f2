// SPDX-License-Identifier: Apache-2.0
// Extracts the luma of a camera's frame of any format and pitch.
#include <isthmus/kernels/camera.hpp>

namespace isthmus {
inline namespace v0 {
namespace kernels {

ISTHMUS_KERNEL(to_gray, Index2 i, Out<std::uint8_t> gray, Plane plane, View<const std::uint8_t> frame,
               LumaLayout layout) {
    gray[i.y * plane.pitch + i.x] = frame[layout.offset_bytes + i.y * layout.pitch_bytes + i.x * layout.step_bytes];
}

}  // namespace kernels
}  // namespace v0
}  // namespace isthmus
