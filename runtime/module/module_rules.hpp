// SPDX-License-Identifier: Apache-2.0
// Decisions about ready-made modules: whether declared parameters are those of an entry, and whether a launch's shape
// is within the limits. Pure.
#pragma once

#include <isthmus/detail/module_traits.hpp>
#include <isthmus/module_launch.hpp>

#include <platform/modules.hpp>

#include "module_image.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {

// How the entry's parameters differ from the declared ones; empty: they do not.
std::string difference_between(std::span<const BlockParameter> declared, std::span<const images::ImageParameter> entry);
// The same for a stand-in, which knows sizes only.
std::string difference_between(std::span<const BlockParameter> declared, std::span<const std::uint32_t> sizes);

// What forbids a shape. `text` has static storage.
struct ShapeVerdict {
    enum class Part : std::uint8_t { none, block, grid, shared, cluster, no_clusters };
    Part part = Part::none;
    std::string_view text;
};
// A grid of no blocks is lawful: nothing runs. A limit of 0 is not known.
ShapeVerdict check_shape(const LaunchShape& shape, const platform::FunctionLimits& limits);

// The limits of every GPU since compute capability 3.0, for the CPU device.
platform::FunctionLimits common_limits() noexcept;

// Who runs an entry without a stand-in: a GPU runs the image's code, the simulator its PTX, the CPU device nothing. Of
// compressed members only the simulator knows whether they are PTX, and says so at the launch.
bool runs_without_stand_in(bool cpu_device, bool simulated, const images::ImageContents& image) noexcept;

// "it has machine code for compute capability 9.0, and PTX 8.4 for 7.5; this device has 8.7"
std::string requirements_text(const images::ImageContents& image, std::uint32_t capability);
// "'scale' and 'copy'", at most eight; "none that can be read".
template <class Named>
std::string names_of(const std::vector<Named>& all, bool readable);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
