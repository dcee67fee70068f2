// SPDX-License-Identifier: Apache-2.0
// Counts of times in buckets of bounded relative width: a fixed size, no heap, and quantiles that are exact to the
// bucket. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus::tools::latency {

// Shares of all times, in ten thousandths.
inline constexpr std::uint32_t p50 = 5000, p99 = 9900, p99_9 = 9990, p99_99 = 9999;

// Times are nanoseconds. Below 256 each has a bucket of its own; above, 128 buckets lie between a power of two and the
// next, so that a bucket is at most a 128th of its lowest time wide. Times from 2^40 (18 minutes) on share the last
// bucket; maximum(), minimum() and sum() are exact for all.
class Histogram {
public:
    struct Bucket {
        std::uint64_t from_ns = 0;
        std::uint64_t to_ns = 0;  // the last time that belongs to the bucket
        std::uint64_t count = 0;
        friend bool operator==(const Bucket&, const Bucket&) = default;
    };

    void add(std::uint64_t time_ns) noexcept;
    std::uint64_t count() const noexcept { return count_; }
    std::uint64_t sum_ns() const noexcept { return sum_; }
    std::uint64_t minimum_ns() const noexcept { return count_ == 0 ? 0 : minimum_; }
    std::uint64_t maximum_ns() const noexcept { return maximum_; }
    // The time that this share of all times does not exceed (nearest rank): the end of its bucket, and never more than
    // the maximum. 0 without times.
    std::uint64_t quantile_ns(std::uint32_t ten_thousandths) const noexcept;
    // Those that have times, ascending.
    std::vector<Bucket> buckets() const;
    // The bucket of a time, with a count of 0.
    static Bucket bucket_of(std::uint64_t time_ns) noexcept;

private:
    static constexpr unsigned step_bits = 7;   // 2^7 buckets to a power of two
    static constexpr unsigned most_bits = 40;  // times have fewer bits, or share the last bucket
    static constexpr std::size_t bucket_count = std::size_t{most_bits - step_bits + 1} << step_bits;

    static std::size_t index_of(std::uint64_t time_ns) noexcept;
    static Bucket bounds_of(std::size_t index) noexcept;

    std::array<std::uint64_t, bucket_count> counts_{};
    std::uint64_t count_ = 0;
    std::uint64_t sum_ = 0;
    std::uint64_t minimum_ = ~std::uint64_t{0};
    std::uint64_t maximum_ = 0;
};

}  // namespace isthmus::tools::latency
