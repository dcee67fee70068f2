// SPDX-License-Identifier: Apache-2.0
// Each thread keeps four words in flight, so that the link's latency is hidden.
#include "sharing_kernels.hpp"

namespace bench {

using namespace isthmus;

ISTHMUS_KERNEL(keep_sums, Index i, Out<std::uint64_t> sums, View<const std::uint64_t> words, std::int32_t salt) {
    std::uint64_t sum = static_cast<std::uint64_t>(salt);
    std::uint64_t at = i;
    for (; at + 3 * threads < words.size(); at += 4 * threads) {
        const std::uint64_t a = words[at], b = words[at + threads];
        const std::uint64_t c = words[at + 2 * threads], d = words[at + 3 * threads];
        sum += a + b + c + d;
    }
    for (; at < words.size(); at += threads) sum += words[at];
    if (i < sums.size()) sums[i] = sum;
}
ISTHMUS_KERNEL(write_words, Index i, Out<std::uint64_t> words, std::int32_t salt) {
    for (std::uint64_t at = i; at < words.size(); at += threads) words[at] = at + static_cast<std::uint64_t>(salt);
}

}  // namespace bench
