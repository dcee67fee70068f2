// SPDX-License-Identifier: Apache-2.0
// A bucket's index is the time's exponent and its seven bits behind the leading one.
#include "histogram.hpp"

#include <algorithm>
#include <bit>

namespace isthmus::tools::latency {

std::size_t Histogram::index_of(std::uint64_t time_ns) noexcept {
    const std::uint64_t time = std::min(time_ns, (std::uint64_t{1} << most_bits) - 1);
    const auto bits = static_cast<unsigned>(std::bit_width(time));
    const unsigned shift = bits > step_bits + 1 ? bits - step_bits - 1 : 0;
    return (std::size_t{shift} << step_bits) + static_cast<std::size_t>(time >> shift);
}

Histogram::Bucket Histogram::bounds_of(std::size_t index) noexcept {
    constexpr std::size_t steps = std::size_t{1} << step_bits;
    const std::size_t shift = index < 2 * steps ? 0 : (index >> step_bits) - 1;
    const std::uint64_t from = std::uint64_t{index - (shift << step_bits)} << shift;
    const std::uint64_t to = index + 1 == bucket_count ? ~std::uint64_t{0} : from + (std::uint64_t{1} << shift) - 1;
    return {from, to, 0};
}

Histogram::Bucket Histogram::bucket_of(std::uint64_t time_ns) noexcept {
    return bounds_of(index_of(time_ns));
}

void Histogram::add(std::uint64_t time_ns) noexcept {
    ++counts_[index_of(time_ns)];
    ++count_;
    sum_ += time_ns;
    minimum_ = std::min(minimum_, time_ns);
    maximum_ = std::max(maximum_, time_ns);
}

std::uint64_t Histogram::quantile_ns(std::uint32_t ten_thousandths) const noexcept {
    if (count_ == 0) return 0;
    // Rounded up, and without overflow: counts stay below 2^50.
    const std::uint64_t rank = std::clamp<std::uint64_t>((count_ * ten_thousandths + 9999) / 10000, 1, count_);
    std::uint64_t below = 0;
    for (std::size_t index = 0; index < bucket_count; ++index) {
        below += counts_[index];
        if (below >= rank) return std::min(bounds_of(index).to_ns, maximum_);
    }
    return maximum_;
}

std::vector<Histogram::Bucket> Histogram::buckets() const {
    std::vector<Bucket> found;
    for (std::size_t index = 0; index < bucket_count; ++index) {
        if (counts_[index] == 0) continue;
        found.push_back(bounds_of(index));
        found.back().count = counts_[index];
    }
    return found;
}

}  // namespace isthmus::tools::latency
