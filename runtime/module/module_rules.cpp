// SPDX-License-Identifier: Apache-2.0
// Compares parameter blocks and launch shapes, and puts images into words.
#include "module_rules.hpp"

#include "composed.hpp"

#include <algorithm>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using Part = ShapeVerdict::Part;

std::string version_text(std::uint32_t tenfold) {
    return composed("{}.{}", tenfold / 10, tenfold % 10);
}

std::string versions_text(std::vector<std::uint32_t> tenfold) {
    std::sort(tenfold.begin(), tenfold.end());
    tenfold.erase(std::unique(tenfold.begin(), tenfold.end()), tenfold.end());
    std::string text;
    for (const std::uint32_t one : tenfold) text += (text.empty() ? "" : ", ") + version_text(one);
    return text;
}

bool beyond(std::uint64_t value, std::uint64_t limit) {
    return limit != 0 && value > limit;
}

// The product, or more than any limit where it does not fit.
std::uint64_t product(const Extent& extent) {
    constexpr std::uint64_t large = std::uint64_t{1} << 40;
    if (extent.x >= large || extent.y >= large || extent.z >= large) return large;
    return extent.x * extent.y >= large ? large : std::min(large, extent.x * extent.y * extent.z);
}

}  // namespace

std::string difference_between(std::span<const BlockParameter> declared,
                               std::span<const images::ImageParameter> entry) {
    if (declared.size() != entry.size()) {
        return composed("{} parameters instead of {}", entry.size(), declared.size());
    }
    for (std::size_t at = 0; at < declared.size(); ++at) {
        const BlockParameter& ours = declared[at];
        const images::ImageParameter& its = entry[at];
        if (ours.size_bytes != its.size_bytes) {
            return composed("parameter {} has {} bytes instead of {}", at, its.size_bytes, ours.size_bytes);
        }
        if (ours.offset_bytes != its.offset_bytes) {
            return composed("parameter {} lies at byte {} instead of {}", at, its.offset_bytes, ours.offset_bytes);
        }
    }
    return {};
}

std::string difference_between(std::span<const BlockParameter> declared, std::span<const std::uint32_t> sizes) {
    if (declared.size() != sizes.size()) return composed("{} instead of {}", sizes.size(), declared.size());
    for (std::size_t at = 0; at < declared.size(); ++at) {
        if (declared[at].size_bytes == sizes[at]) continue;
        return composed("parameter {} has {} bytes instead of {}", at, sizes[at], declared[at].size_bytes);
    }
    return {};
}

ShapeVerdict check_shape(const LaunchShape& shape, const platform::FunctionLimits& limits) {
    const std::uint64_t block[3] = {shape.block.x, shape.block.y, shape.block.z};
    const std::uint64_t grid[3] = {shape.grid.x, shape.grid.y, shape.grid.z};
    const std::uint64_t cluster[3] = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
    for (int at = 0; at < 3; ++at) {
        if (block[at] == 0) return {Part::block, "it has no threads"};
        if (beyond(block[at], limits.block[at])) return {Part::block, "it is longer than the device allows"};
    }
    if (beyond(product(shape.block), limits.threads)) {
        return {Part::block, "it has more threads than this kernel may have"};
    }
    for (int at = 0; at < 3; ++at) {
        if (beyond(grid[at], limits.grid[at])) return {Part::grid, "it is longer than the device allows"};
    }
    if (limits.most_shared != 0 &&
        shape.shared_bytes > limits.most_shared - std::min(limits.static_shared, limits.most_shared)) {
        return {Part::shared, {}};
    }
    if (cluster[0] == 0 && cluster[1] == 0 && cluster[2] == 0) return {};
    if (!limits.clusters) return {Part::no_clusters, {}};
    constexpr std::uint64_t portable = 8;  // blocks of a cluster on every device that has clusters
    for (int at = 0; at < 3; ++at) {
        if (cluster[at] == 0) return {Part::cluster, "it has no blocks"};
        if (grid[at] % cluster[at] != 0) return {Part::cluster, "the grid is no multiple of it"};
    }
    if (product(shape.cluster) > portable) return {Part::cluster, "it has more than 8 blocks"};
    return {};
}

platform::FunctionLimits common_limits() noexcept {
    platform::FunctionLimits limits;
    limits.threads = 1024;
    limits.block[0] = limits.block[1] = 1024;
    limits.block[2] = 64;
    limits.grid[0] = 2147483647;
    limits.grid[1] = limits.grid[2] = 65535;
    limits.clusters = true;  // a stand-in sees the whole grid
    return limits;
}

bool runs_without_stand_in(bool cpu_device, bool simulated, const images::ImageContents& image) noexcept {
    if (cpu_device) return false;
    return !simulated || !image.ptx_targets.empty() || !image.readable;
}

std::string requirements_text(const images::ImageContents& image, std::uint32_t capability) {
    std::string text;
    if (!image.binaries.empty()) {
        text = composed("machine code for compute capability {}", versions_text(image.binaries));
    }
    if (!image.ptx_targets.empty()) {
        if (!text.empty()) text += " and ";
        text += image.ptx_version == 0 ? std::string("PTX") : composed("PTX {}", version_text(image.ptx_version));
        text += composed(" for {} and later", versions_text(image.ptx_targets));
    }
    return composed("It has {}; this device has compute capability {}", text.empty() ? "no code" : text,
                    version_text(capability));
}

template <class Named>
std::string names_of(const std::vector<Named>& all, bool readable) {
    constexpr std::size_t most = 8;
    std::string text;
    for (std::size_t at = 0; at < all.size() && at < most; ++at) {
        text += composed(at == 0 ? "'{}'" : ", '{}'", all[at].name);
    }
    if (all.size() > most) text += composed(" and {} more", all.size() - most);
    if (!readable) return text.empty() ? "names that are compressed" : text + " and names that are compressed";
    return text.empty() ? "none" : text;
}
template std::string names_of(const std::vector<images::ImageEntry>& all, bool readable);
template std::string names_of(const std::vector<images::ImageGlobal>& all, bool readable);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
