// SPDX-License-Identifier: Apache-2.0
// The kernels of the exploration, and the list in which they record their runs.
#pragma once

#include <isthmus/isthmus.hpp>

#include <cstdint>
#include <vector>

namespace exploration {

// One run of a kernel: its launch's mark, and what it read. Simulated kernels run in this process, one at a time in
// seeded mode, and so record their own runs and order.
struct Run {
    std::uint32_t mark;
    std::uint32_t digest;
};
std::vector<Run>& runs();
inline std::uint32_t digest_step(std::uint32_t digest, std::int32_t value) noexcept {
    return digest * 31 + static_cast<std::uint32_t>(value) + 7;
}
// Unsigned arithmetic, because it wraps.
inline std::int32_t bumped(std::int32_t data, std::int32_t value) noexcept {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(data) * 3 + static_cast<std::uint32_t>(value));
}
inline std::int32_t mixed(std::int32_t in, std::int32_t value) noexcept {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(in) * 5 + static_cast<std::uint32_t>(value));
}
inline std::int32_t joined(std::int32_t data, std::int32_t in) noexcept {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(data) * 7 + static_cast<std::uint32_t>(in));
}

ISTHMUS_DECLARE_KERNEL(bump_kernel, isthmus::Index i, isthmus::View<std::int32_t> data, std::int32_t value,
                       std::uint32_t mark);
ISTHMUS_DECLARE_KERNEL(mix_kernel, isthmus::Index i, isthmus::Out<std::int32_t> out,
                       isthmus::View<const std::int32_t> in, std::int32_t value, std::uint32_t mark);
ISTHMUS_DECLARE_KERNEL(join_kernel, isthmus::Index i, isthmus::View<std::int32_t> data,
                       isthmus::View<const std::int32_t> in, std::uint32_t mark);
ISTHMUS_DECLARE_KERNEL(look_kernel, isthmus::Index i, isthmus::View<const std::int32_t> in, std::uint32_t mark);

}  // namespace exploration
