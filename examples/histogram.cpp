// SPDX-License-Identifier: Apache-2.0
// One histogram of two halves of a picture, counted by CPU and GPU at the same time: in shared words where the machine
// lets both update them, otherwise in a sharded counter, whose sums are exact everywhere.
#include <isthmus/isthmus.hpp>

#include "shared_counts.hpp"

#include <array>
#include <cstdio>
#include <string>

namespace {

constexpr std::size_t half = 100000;
using Histogram = std::array<std::uint64_t, 256>;

std::uint8_t value_at(std::size_t index) {
    return static_cast<std::uint8_t>(index * index % 251);
}

// Both sides add to the same 256 words.
isthmus::Result<Histogram> in_shared_words(isthmus::Device& device, isthmus::Stream& stream,
                                           isthmus::Buffer<std::uint8_t>& values) {
    // Refused where the machine would lose updates: the error gives the reason and an alternative.
    auto counts_or = device.allocate_shared<std::uint32_t>(256, {.updates = isthmus::AtomicSet::add});
    if (!counts_or) return std::move(counts_or).error();
    isthmus::Buffer<std::uint32_t>& counts = *counts_or;
    for (std::uint32_t& count : counts.write_on_host().value()) count = 0;
    {
        auto shared = counts.atomics_on_host<isthmus::AtomicSet::add>();
        if (!shared) return std::move(shared).error();
        auto launched = stream.launch(count_values, half, values, counts);
        if (!launched) return std::move(launched).error();
        for (std::size_t i = half; i < 2 * half; ++i) (*shared)[value_at(i)].add_relaxed(1);  // while the kernel runs
    }
    auto read = counts.read_on_host();  // waits for the kernel
    if (!read) return std::move(read).error();
    Histogram sums{};
    for (std::size_t value = 0; value < sums.size(); ++value) sums[value] = (*read)[value];
    return sums;
}

// Each side adds in a lane of its own.
Histogram in_lanes(isthmus::Device& device, isthmus::Stream& stream, isthmus::Buffer<std::uint8_t>& values) {
    isthmus::ShardedCounter counts = isthmus::ShardedCounter::create(device, 256).value();
    stream.launch(count_values_apart, half, values, counts).value();
    for (std::size_t i = half; i < 2 * half; ++i) counts.add(value_at(i), 1);  // while the kernel runs
    Histogram sums{};
    for (std::size_t value = 0; value < sums.size(); ++value) sums[value] = counts.read(value).value();
    return sums;
}

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Stream& stream = device.stream();
    auto values = device.allocate_shared<std::uint8_t>(half, {.host = isthmus::Use::writes_once}).value();
    {
        auto bytes = values.write_on_host().value();
        for (std::size_t i = 0; i < half; ++i) bytes[i] = value_at(i);
    }

    auto together = in_shared_words(device, stream, values);
    if (!together) std::printf("not in shared words: %s\n", std::string(together.error().text()).c_str());
    const Histogram sums = together ? *together : in_lanes(device, stream, values);

    Histogram expected{};
    for (std::size_t i = 0; i < 2 * half; ++i) ++expected[value_at(i)];
    std::printf("%s: counted %zu values %s; value 0 was there %llu times\n", std::string(device.name()).c_str(),
                2 * half, together ? "in shared words" : "in a sharded counter",
                static_cast<unsigned long long>(sums[0]));
    return sums == expected ? 0 : 1;
}
