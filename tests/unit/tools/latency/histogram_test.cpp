// SPDX-License-Identifier: Apache-2.0
// Buckets, and quantiles against a sorted list. keeps T4
#include "latency/histogram.hpp"
#include "latency/tally.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace isthmus::tools::latency {
namespace {

Histogram histogram_of(const std::vector<std::uint64_t>& times) {
    Histogram histogram;
    for (const std::uint64_t time : times) histogram.add(time);
    return histogram;
}

TEST(Histogram, EveryTimeIsInItsBucketAndNoBucketIsWiderThanA128th) {
    std::vector<std::uint64_t> times = {0, 1, 127, 128, 255, 256, 257, 511, 512, 1'000'000, (1ull << 40) - 1};
    for (int power = 8; power < 40; ++power) {
        for (const std::uint64_t beside : {-1, 0, 1}) times.push_back((1ull << power) + beside);
    }
    for (const std::uint64_t time : times) {
        const Histogram::Bucket bucket = Histogram::bucket_of(time);
        EXPECT_LE(bucket.from_ns, time);
        EXPECT_GE(bucket.to_ns, time);
        if (time >= (1ull << 40) - (1ull << 32)) continue;  // the last bucket has no end
        EXPECT_LE((bucket.to_ns - bucket.from_ns) * 128, bucket.from_ns) << time;
        EXPECT_EQ(Histogram::bucket_of(bucket.to_ns + 1).from_ns, bucket.to_ns + 1) << "no gap behind " << time;
        if (time < 256) {
            EXPECT_EQ(bucket.to_ns, bucket.from_ns);
        }
    }
}

TEST(Histogram, QuantilesAreThoseOfTheSortedTimesToTheBucket) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 40; ++round) {
        std::vector<std::uint64_t> times;
        const std::size_t count = 1 + random() % 30'000;
        const unsigned bits = 1 + static_cast<unsigned>(random() % 39);
        for (std::size_t at = 0; at < count; ++at) {
            // Mostly near one another, with a long tail.
            const std::uint64_t near = random() % (1ull << bits);
            times.push_back(random() % 1000 == 0 ? near * (1 + random() % 100) : near);
        }
        const Histogram histogram = histogram_of(times);
        std::sort(times.begin(), times.end());
        for (const std::uint32_t share : {1u, 100u, p50, 9000u, p99, p99_9, p99_99, 10'000u}) {
            const std::size_t rank = std::max<std::size_t>(1, (count * share + 9999) / 10'000);
            const std::uint64_t exact = times[rank - 1];
            EXPECT_EQ(histogram.quantile_ns(share), std::min(Histogram::bucket_of(exact).to_ns, times.back()))
                << share << " of " << count;
        }
        EXPECT_EQ(histogram.maximum_ns(), times.back());
        EXPECT_EQ(histogram.minimum_ns(), times.front());
        EXPECT_EQ(histogram.count(), count);
        EXPECT_EQ(histogram.sum_ns(), std::accumulate(times.begin(), times.end(), std::uint64_t{0}));
    }
}

TEST(Histogram, TheBucketsHoldEveryTimeOnceAndAscend) {
    std::mt19937_64 random(11);
    std::vector<std::uint64_t> times;
    for (int at = 0; at < 5000; ++at) times.push_back(random() % 3'000'000);
    const std::vector<Histogram::Bucket> buckets = histogram_of(times).buckets();
    std::uint64_t counted = 0, before = 0;
    for (const Histogram::Bucket& bucket : buckets) {
        const auto inside = static_cast<std::uint64_t>(std::count_if(
            times.begin(), times.end(), [&](auto time) { return time >= bucket.from_ns && time <= bucket.to_ns; }));
        EXPECT_EQ(bucket.count, inside);
        EXPECT_GT(bucket.count, 0u);
        EXPECT_TRUE(counted == 0 || bucket.from_ns > before);
        before = bucket.to_ns;
        counted += bucket.count;
    }
    EXPECT_EQ(counted, times.size());
}

TEST(Histogram, OneThatIsEmptyAnswersZeroAndTimesBeyondTheRangeKeepTheirMaximum) {
    Histogram histogram;
    EXPECT_EQ(histogram.quantile_ns(p99_99), 0u);
    EXPECT_EQ(histogram.minimum_ns(), 0u);
    EXPECT_TRUE(histogram.buckets().empty());
    histogram.add(1ull << 50);
    histogram.add(3);
    EXPECT_EQ(histogram.maximum_ns(), 1ull << 50);
    EXPECT_EQ(histogram.quantile_ns(10'000), 1ull << 50);
    EXPECT_EQ(histogram.quantile_ns(p50), 3u);
}

TEST(Tally, CountsLateTurnsByTheirLongestPartAndKeepsTheWorst) {
    Tally tally(100);
    tally.add(0, {10, 20, 30, 40});  // the deadline itself is kept
    tally.add(1, {10, 20, 70, 1});   // late by the device
    tally.add(2, {500, 20, 70, 1});  // late by the wake-up
    tally.add(3, {101, 0, 0, 0});
    EXPECT_EQ(tally.turns(), 4u);
    EXPECT_EQ(tally.late(), 3u);
    EXPECT_EQ(tally.late_by(Part::wake_up), 2u);
    EXPECT_EQ(tally.late_by(Part::device), 1u);
    EXPECT_EQ(tally.late_by(Part::submit) + tally.late_by(Part::view), 0u);
    EXPECT_EQ(tally.worst_turn(), 2u);
    EXPECT_EQ(total_ns(tally.worst()), 591u);
    EXPECT_EQ(tally.total().maximum_ns(), 591u);
    EXPECT_EQ(tally.part(Part::view).sum_ns(), 42u);
    double shares = 0;
    for (const Part part : all_parts) shares += tally.share(part);
    EXPECT_NEAR(shares, 1.0, 1e-12);
    EXPECT_DOUBLE_EQ(tally.share(Part::wake_up), 621.0 / static_cast<double>(tally.total().sum_ns()));
    EXPECT_EQ(Tally(1).share(Part::view), 0.0);
}

}  // namespace
}  // namespace isthmus::tools::latency
