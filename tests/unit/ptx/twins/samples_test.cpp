// SPDX-License-Identifier: Apache-2.0
// Kernels of each rank and form of parameters: the PTX leaves the twin's bits, and says nothing else.
#include "run_twin.hpp"
#include "sample_kernels.hpp"

#include <random>

namespace {

using namespace isthmus;

TEST(PtxTwins, SampleKernelsLeaveTheBitsOfTheirTwins) {
    std::mt19937 random(7);
    std::vector<float> a(1000), b(1000), c(1000), out(1000);
    for (std::size_t at = 0; at < a.size(); ++at) {
        a[at] = static_cast<float>(random()) * 1e-3f;
        b[at] = static_cast<float>(random()) * -1e-5f;
        c[at] = static_cast<float>(random() % 1000) * 1e-20f;
    }
    run_twin(samples::scale, 1000, {out.data(), out.size()}, {a.data(), a.size()}, 0.3f);
    EXPECT_EQ(out[999], a[999] * 0.3f);
    run_twin(samples::multiply_add, 1000, {out.data(), out.size()}, {a.data(), a.size()}, {b.data(), b.size()},
             {c.data(), c.size()});
    EXPECT_EQ(out[3], a[3] * b[3] + c[3]);
    std::vector<std::uint32_t> visits(7 * 5 * 3);
    run_twin(samples::cell, {7, 5, 3}, {visits.data(), visits.size()}, {7, 5, 3});
    std::vector<std::int32_t> in(64 * 5), sums(5);
    for (std::size_t at = 0; at < in.size(); ++at) in[at] = static_cast<std::int32_t>(random() % 2000) - 1000;
    run_twin(samples::block_sums, 5, {sums.data(), sums.size()}, {in.data(), in.size()});
    std::int32_t first = 0;
    for (std::size_t at = 0; at < 64; ++at) first += in[at];
    EXPECT_EQ(sums[0], first);
    std::vector<samples::Tint> tints(37 * 3);
    for (samples::Tint& tint : tints)
        tint = {static_cast<std::uint8_t>(random()), static_cast<std::int32_t>(random()),
                static_cast<double>(random() % 1000)};
    std::vector<std::uint64_t> mixed(37 * 3);
    run_twin(samples::mixed, {37, 3}, {mixed.data(), mixed.size()}, std::uint8_t{200}, {tints.data(), tints.size()},
             true, samples::Tint{1, -2, 3.0}, std::uint16_t{37});
}

}  // namespace
