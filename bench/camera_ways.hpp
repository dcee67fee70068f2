// SPDX-License-Identifier: Apache-2.0
// Way: one way from a frame that the CPU writes to a list of corners that the CPU reads.
#pragma once

#include <isthmus/isthmus.hpp>
#include <isthmus/kernels/camera.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace bench {

inline constexpr isthmus::kernels::CornerRule camera_rule{.threshold = 2000, .radius = 5, .border = 8};
constexpr std::uint32_t camera_capacity(const isthmus::kernels::Plane& plane) noexcept {  // corners of a frame
    const std::uint64_t share = isthmus::kernels::size_of(plane) / 128;
    return share < 1024 ? 1024 : static_cast<std::uint32_t>(share);
}
// Luma in the device, with rows that begin at multiples of 16.
constexpr isthmus::kernels::Plane luma_plane(const isthmus::kernels::Plane& plane) noexcept {
    return {plane.width, plane.height, (plane.width + 15) / 16 * 16};
}
inline constexpr std::size_t camera_lanes = 2;  // frames in flight

// A number that depends on every listed corner: reading the list is part of the work.
inline std::uint64_t digest_of(const isthmus::kernels::Corner* corners, const isthmus::kernels::CornerCount& count) {
    std::uint64_t sum = count.found;
    for (std::uint32_t n = 0; n < count.listed; ++n) {
        sum = sum * 31 + corners[n].x + (std::uint64_t{corners[n].y} << 16) +
              static_cast<std::uint32_t>(corners[n].score);
    }
    return sum;
}

class Way {
public:
    Way() = default;
    Way(const Way&) = delete;
    Way& operator=(const Way&) = delete;
    virtual ~Way() = default;
    virtual bool ready() const { return true; }
    virtual bool lists_corners() const { return true; }
    // Writes the frame as a camera would, and starts work on it.
    virtual void give(std::size_t lane, const std::uint8_t* pixels) = 0;
    // Waits for the lane's frame and reads its corners.
    virtual std::uint64_t take(std::size_t lane) = 0;
    virtual std::uint64_t bytes_copied() const { return 0; }  // beside the frame that give() writes; so far
    virtual double device_us() { return 0; }                  // of the last frame by the device's clock; 0: not known
};

// `copied`: frames and lists lie in device memory, with copies on the host.
std::unique_ptr<Way> isthmus_way(isthmus::Device& device, const isthmus::kernels::Plane& plane, bool copied);

#if defined(ISTHMUS_BENCH_OPENCV)
inline constexpr bool with_opencv = true;
#else
inline constexpr bool with_opencv = false;
#endif
std::unique_ptr<Way> opencv_way(const isthmus::kernels::Plane& plane);

#if defined(ISTHMUS_BENCH_NPP)
inline constexpr bool with_npp = true;
#else
inline constexpr bool with_npp = false;
#endif
std::unique_ptr<Way> npp_way(const isthmus::kernels::Plane& plane);

}  // namespace bench
