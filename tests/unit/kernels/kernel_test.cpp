// SPDX-License-Identifier: Apache-2.0
// What ISTHMUS_KERNEL makes: the description that drivers read, the argument pack, and the CPU twin.
#include "run_twin.hpp"
#include "sample_kernels.hpp"

#include <isthmus/parameter_name.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace isthmus;
template <class K>
using TraitsOf = typename std::remove_cvref_t<K>::Traits;

TEST(Kernel, DescribesItselfToDrivers) {
    const KernelInfo& info = samples::scale.info();
    EXPECT_STREQ(info.name, "scale");
    EXPECT_STREQ(info.symbol, "isthmus_scale");
    EXPECT_STREQ(info.parameters, "Index i, View<float> out, View<const float> in, float factor");
    EXPECT_EQ(info.rank, 1);
    EXPECT_EQ(info.block_threads, 0u);
    ASSERT_EQ(info.parameter_count, 3u);
    EXPECT_EQ(info.parameter[0].use, ArgumentUse::read_write);
    EXPECT_EQ(info.parameter[1].use, ArgumentUse::read);
    EXPECT_EQ(info.parameter[2].use, ArgumentUse::value);
    EXPECT_EQ(info.parameter[0].element_bytes, sizeof(float));
    EXPECT_EQ(info.parameter[2].element_bytes, 0u);
    EXPECT_EQ(samples::mixed.info().parameter[0].use, ArgumentUse::write);
    EXPECT_EQ(samples::mixed.info().rank, 2);
    EXPECT_EQ(samples::cell.info().rank, 3);
    EXPECT_EQ(samples::block_sums.info().rank, 0);
    EXPECT_EQ(samples::block_sums.info().block_threads, samples::sum_threads);
    EXPECT_EQ(samples::nothing.info().parameter_count, 0u);
}

TEST(Kernel, KnowsTheImageOfItsFile) {
    const KernelImage* image = samples::scale.info().image;
    ASSERT_NE(image, nullptr);
    EXPECT_EQ(image, samples::cell.info().image);
    EXPECT_GT(image->size_bytes, 0u);
    EXPECT_EQ(std::string(image->name), "sample_kernels.cpp");
    EXPECT_EQ(std::string(image->hash).size(), 64u);
    EXPECT_EQ(std::string(image->hash).find_first_not_of("0123456789abcdef"), std::string::npos);
    // A fatbin begins with 0xBA55ED50; a placeholder with text that says what it is.
    std::uint32_t magic = 0;
    std::memcpy(&magic, image->data, sizeof magic);
    if (image->has_gpu_code)
        EXPECT_EQ(magic, 0xBA55ED50u);
    else
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(image->data), 12), "no GPU code:");
}

// Offsets are compared with the addresses of the members of a real pack.
TEST(Kernel, OffsetsAreThoseOfThePack) {
    using Traits = TraitsOf<decltype(samples::mixed)>;
    const Traits::Pack pack{};
    const KernelInfo& info = samples::mixed.info();
    const auto offset = [&](const auto& member) {
        return static_cast<std::uint32_t>(reinterpret_cast<const char*>(&member) -
                                          reinterpret_cast<const char*>(&pack));
    };
    ASSERT_EQ(info.parameter_count, 6u);
    EXPECT_EQ(info.parameter[0].offset_bytes, offset(detail::get<0>(pack)));
    EXPECT_EQ(info.parameter[1].offset_bytes, offset(detail::get<1>(pack)));
    EXPECT_EQ(info.parameter[2].offset_bytes, offset(detail::get<2>(pack)));
    EXPECT_EQ(info.parameter[3].offset_bytes, offset(detail::get<3>(pack)));
    EXPECT_EQ(info.parameter[4].offset_bytes, offset(detail::get<4>(pack)));
    EXPECT_EQ(info.parameter[5].offset_bytes, offset(detail::get<5>(pack)));
    EXPECT_EQ(info.parameter[4].size_bytes, sizeof(samples::Tint));
    EXPECT_EQ(info.parameter[2].element_bytes, sizeof(samples::Tint));
    EXPECT_EQ(info.pack_bytes, sizeof pack);
}

TEST(Kernel, AViewLiesInThePackAsPointerAndSize) {
    float numbers[3] = {};
    const auto pack = TraitsOf<decltype(samples::scale)>::pack({numbers, 3}, {numbers, 2}, 0.5f);
    const auto* bytes = reinterpret_cast<const char*>(&pack);
    const ParameterInfo& in = samples::scale.info().parameter[1];
    float* data = nullptr;
    std::uint64_t size = 0;
    std::memcpy(&data, bytes + in.offset_bytes, sizeof data);
    std::memcpy(&size, bytes + in.offset_bytes + 8, sizeof size);
    EXPECT_EQ(data, numbers);
    EXPECT_EQ(size, 2u);
    EXPECT_EQ(in.size_bytes, 16u);
}

TEST(Kernel, TwinRunsOnlyTheItemsAskedFor) {
    std::vector<float> in{1, 2, 3, 4, 5}, out(5, -1.0f);
    const auto pack = TraitsOf<decltype(samples::scale)>::pack({out.data(), 5}, {in.data(), 5}, 2.0f);
    samples::scale.info().twin(Extent{5, 1, 1}, 1, 4, &pack);
    EXPECT_EQ(out, (std::vector<float>{-1, 4, 6, 8, -1}));
    samples::scale.info().twin(Extent{0, 1, 1}, 0, 0, &pack);
    EXPECT_EQ(out, (std::vector<float>{-1, 4, 6, 8, -1}));
}

TEST(Kernel, TwinOfRankTwoPassesValuesOfAllTypes) {
    std::vector<samples::Tint> tints{{1, -20, 0.5}, {2, 30, 1.5}, {3, 40, -2.5}};
    std::vector<std::uint64_t> out(6, 99);
    run_twin(samples::mixed, {3, 2}, {out.data(), 6}, 7, {tints.data(), 3}, true, samples::Tint{10, 1000, 0}, 3);
    std::size_t n = 0;
    for (std::uint64_t y = 0; y < 2; ++y) {
        for (const samples::Tint& own : tints) {
            const int value = 7 + own.red * 10 + own.green + 1000 + static_cast<int>(own.blue * 2);
            EXPECT_EQ(out[n++], static_cast<std::uint64_t>(-std::int64_t{value}) + y);
        }
    }
}

TEST(Kernel, TwinOfRankThreeVisitsEveryItemOnce) {
    const Extent3 size{3, 4, 5};
    std::vector<std::uint32_t> visits(60, 0);
    run_twin(samples::cell, size, {visits.data(), 60}, size);
    std::size_t n = 0;
    for (std::uint32_t z = 0; z < 5; ++z)
        for (std::uint32_t y = 0; y < 4; ++y)
            for (std::uint32_t x = 0; x < 3; ++x) EXPECT_EQ(visits[n++], 1 + x + 100 * y + 10000 * z);
}

TEST(Kernel, BlockKernelSumsWithBarriers) {
    std::mt19937 random(7);
    std::vector<std::int32_t> in(64 * 5), sums(5);
    for (auto& v : in) v = static_cast<std::int32_t>(random() % 2000) - 1000;
    run_twin(samples::block_sums, 5, {sums.data(), 5}, {in.data(), in.size()});
    for (std::size_t b = 0; b < 5; ++b) {
        std::int32_t expected = 0;
        for (std::size_t t = 0; t < 64; ++t) expected += in[b * 64 + t];
        EXPECT_EQ(sums[b], expected);
    }
}

TEST(Kernel, BlocksInThreeDimensionsAreNumberedWithXFastest) {
    std::vector<std::uint64_t> places(2 * 3 * 2 * 4, 0);
    run_twin(samples::block_places, {2, 3, 2}, {places.data(), places.size()});
    std::size_t n = 0;
    for (std::uint64_t z = 0; z < 2; ++z)
        for (std::uint64_t y = 0; y < 3; ++y)
            for (std::uint64_t x = 0; x < 2; ++x)
                for (std::uint64_t t = 0; t < 4; ++t) EXPECT_EQ(places[n++], x + 10 * y + 100 * z + 1000 * t);
}

TEST(Kernel, MayHaveNoParametersAtAll) {
    const auto pack = KernelTraits<void(Index)>::pack();
    samples::nothing.info().twin(Extent{3, 1, 1}, 0, 3, &pack);
    EXPECT_EQ(samples::nothing.info().pack_bytes, sizeof pack);
}

// Inputs where the fused and the separate result differ: (1 + 2⁻¹²)² − 1 loses its last term when rounded between.
TEST(Kernel, TwinDoesNotFuseMultiplyAndAdd) {
    const float e = 1.0f / 4096;
    std::vector<float> a{1 + e}, b{1 + e}, c{-1.0f}, out(1);
    run_twin(samples::multiply_add, 1, {out.data(), 1}, {a.data(), 1}, {b.data(), 1}, {c.data(), 1});
    EXPECT_EQ(out[0], 2 * e);
}

// keeps L9
TEST(Kernel, ArgumentsAreCheckedByTheirTypes) {
    using Scale = void(Index, View<float>, View<const float>, float);
    EXPECT_TRUE((detail::CheckArguments<Scale, View<float>&, View<float>, float>::value));
    EXPECT_TRUE((detail::CheckArguments<Scale, Out<float>, View<const float>, int>::value));
    EXPECT_TRUE((detail::value_converts<float, std::int32_t>()));
    EXPECT_TRUE((detail::value_converts<double, float>()));
    EXPECT_TRUE((detail::value_converts<std::uint8_t, int>()));
    EXPECT_FALSE((detail::value_converts<float, double>()));
    EXPECT_FALSE((detail::value_converts<int, float>()));
    EXPECT_FALSE((detail::value_converts<bool, int>()));
    EXPECT_FALSE((detail::value_converts<int, bool>()));
    EXPECT_FALSE((detail::value_converts<samples::Tint, int>()));
}

TEST(Kernel, NumbersThatDoNotFitAreFound) {
    EXPECT_TRUE(detail::value_fits<std::uint8_t>(255));
    EXPECT_FALSE(detail::value_fits<std::uint8_t>(256));
    EXPECT_FALSE(detail::value_fits<std::uint8_t>(-1));
    EXPECT_FALSE(detail::value_fits<std::uint64_t>(-1));
    EXPECT_FALSE(detail::value_fits<std::int32_t>(0xFFFFFFFFu));
    EXPECT_FALSE(detail::value_fits<std::int64_t>(0xFFFFFFFFFFFFFFFFull));
    EXPECT_TRUE(detail::value_fits<std::int8_t>(-128));
    EXPECT_TRUE(detail::value_fits<float>(1 << 24));
    EXPECT_FALSE(detail::value_fits<float>((1 << 24) + 1));
    EXPECT_FALSE(detail::value_fits<float>(-(1 << 24) - 1));
    EXPECT_TRUE(detail::value_fits<double>((1 << 24) + 1));
    EXPECT_FALSE(detail::value_fits<double>(~0ull));
}

TEST(ParameterName, IsReadFromTheText) {
    const auto name_of = [](const char* text, std::uint32_t number) {
        return std::string(parameter_name(KernelInfo{"k", "s", text, nullptr, 0, 0, 1, 0, nullptr, nullptr}, number));
    };
    EXPECT_EQ(name_of("Index i, View<float> out, View<const float> in, float factor", 0), "out");
    EXPECT_EQ(name_of("Index i, View<float> out, View<const float> in, float factor", 2), "factor");
    EXPECT_EQ(name_of("Index i, View<float> out", 1), "");
    EXPECT_EQ(name_of("Index i, View<std::pair<int, int>> pairs, Out<T> rest_2 ", 0), "pairs");
    EXPECT_EQ(name_of("Index i, View<std::pair<int, int>> pairs, Out<T> rest_2 ", 1), "rest_2");
    EXPECT_EQ(name_of("Index i, View<float>, unsigned int, std::uint8_t, float", 0), "");
    EXPECT_EQ(name_of("Index i, View<float>, unsigned int, std::uint8_t, float", 1), "");
    EXPECT_EQ(name_of("Index i, View<float>, unsigned int, std::uint8_t, float", 2), "");
    EXPECT_EQ(name_of("Index", 0), "");
    static_assert(detail::declared_name("View<float> out") == "out");
}

}  // namespace
