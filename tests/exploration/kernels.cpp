// SPDX-License-Identifier: Apache-2.0
// The kernels of the exploration. They run on simulated GPUs only, as functions of this process.
#include "kernels.hpp"

namespace exploration {

using namespace isthmus;

std::vector<Run>& runs() {
    static std::vector<Run> all;
    return all;
}

namespace {

void note(std::uint64_t element, std::uint32_t mark, std::int32_t read) {
    if (element == 0) runs().push_back({mark, 0});
    runs().back().digest = digest_step(runs().back().digest, read);
}

}  // namespace

ISTHMUS_KERNEL(bump_kernel, Index i, View<std::int32_t> data, std::int32_t value, std::uint32_t mark) {
    note(i, mark, data[i]);
    data[i] = bumped(data[i], value);
}

ISTHMUS_KERNEL(mix_kernel, Index i, Out<std::int32_t> out, View<const std::int32_t> in, std::int32_t value,
               std::uint32_t mark) {
    note(i, mark, in[i]);
    out[i] = mixed(in[i], value);
}

ISTHMUS_KERNEL(join_kernel, Index i, View<std::int32_t> data, View<const std::int32_t> in, std::uint32_t mark) {
    note(i, mark, joined(data[i], in[i]));
    data[i] = joined(data[i], in[i]);
}

ISTHMUS_KERNEL(look_kernel, Index i, View<const std::int32_t> in, std::uint32_t mark) {
    note(i, mark, in[i]);
}

}  // namespace exploration
