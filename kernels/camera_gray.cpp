// SPDX-License-Identifier: Apache-2.0
// Extracts the luma of a camera's frame of any format and pitch.
#include "neighbours.hpp"

namespace isthmus {
inline namespace v0 {
namespace kernels {

ISTHMUS_KERNEL(to_gray, Index2 i, Out<std::uint8_t> gray, Plane plane, View<const std::uint8_t> frame,
               LumaLayout layout) {
    gray[i.y * plane.pitch + i.x] = frame[layout.offset_bytes + i.y * layout.pitch_bytes + i.x * layout.step_bytes];
}

// Sixteen pixels that a GPU loads or stores at once.
struct alignas(16) Run {
    std::uint32_t four[4];
};
constexpr std::uint32_t run_length = 16;

template <class T>
ISTHMUS_KERNEL_FUNCTION bool holds_runs(const T* data) noexcept {
    return (reinterpret_cast<std::uintptr_t>(data) & (alignof(Run) - 1)) == 0;
}

// Every second byte of two words, from byte `first` on.
ISTHMUS_KERNEL_FUNCTION std::uint32_t every_second(std::uint32_t low, std::uint32_t high,
                                                   std::uint32_t first) noexcept {
    const std::uint32_t a = low >> (8 * first), b = high >> (8 * first);
    return (a & 0xFF) | (a >> 8 & 0xFF00) | (b & 0xFF) << 16 | (b << 8 & 0xFF000000u);
}

// Whole runs of aligned frames; false: take them byte by byte.
ISTHMUS_KERNEL_FUNCTION bool copy_run(std::uint8_t* gray, const std::uint8_t* frame, std::uint32_t step) noexcept {
    if (!holds_runs(gray)) return false;
    Run taken;
    if (step == 1 && holds_runs(frame)) {
        taken = *reinterpret_cast<const Run*>(frame);
    } else if (step == 2 && holds_runs(frame - (reinterpret_cast<std::uintptr_t>(frame) & 1))) {
        const std::uint32_t first = reinterpret_cast<std::uintptr_t>(frame) & 1;
        const auto* const two = reinterpret_cast<const Run*>(frame - first);
        const Run low = two[0], high = two[1];
        ISTHMUS_UNROLL
        for (std::uint32_t n = 0; n < 2; ++n) {
            taken.four[n] = every_second(low.four[2 * n], low.four[2 * n + 1], first);
            taken.four[n + 2] = every_second(high.four[2 * n], high.four[2 * n + 1], first);
        }
    } else {
        return false;
    }
    *reinterpret_cast<Run*>(gray) = taken;
    return true;
}

ISTHMUS_KERNEL(copy_luma, Index2 i, Out<std::uint8_t> gray, Plane plane, View<const std::uint8_t> frame,
               LumaLayout layout) {
    const std::uint64_t x = i.x * run_length, to = i.y * plane.pitch + x;
    const std::uint64_t from = layout.offset_bytes + i.y * layout.pitch_bytes + x * layout.step_bytes;
    const std::uint64_t count = plane.width - x < run_length ? plane.width - x : run_length;
    if constexpr (on_gpu) {
        // The last run of YUYV ends with a byte of chroma, which a frame without its last byte would lack.
        const bool whole = count == run_length && from + std::uint64_t{run_length} * layout.step_bytes <= frame.size();
        if (whole && copy_run(&gray[to], &frame[from], layout.step_bytes)) return;
    }
    for (std::uint64_t n = 0; n < count; ++n) gray[to + n] = frame[from + n * layout.step_bytes];
}

}  // namespace kernels
}  // namespace v0
}  // namespace isthmus
