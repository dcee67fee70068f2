// SPDX-License-Identifier: Apache-2.0
// Growable buffers as arguments: parts of one that shrank, words that kernels update, and a buffer that was moved.
#include "scenario.hpp"

#include <isthmus/mapping/growable_buffer.hpp>
#include <isthmus/read_back.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace conformance {
namespace {

using Numbers = GrowableBuffer<std::int32_t>;
constexpr std::size_t granule = (std::size_t{2} << 20) / sizeof(std::int32_t);  // in elements
constexpr LaunchOptions checked{.mode = LaunchMode::checked};

template <class Body>
void on_every_growing_device(Body body) {
    on_every_device([&](Device& device) {
        if (device.is_cpu() || device.capabilities().has(Feature::virtual_memory)) body(device);
    });
}

// keeps V11, G8: what a part reaches is what the buffer has
TEST(Growable, PartsOfABufferThatShrankAreRefusedUntilItHasThemAgain) {
    on_every_growing_device([](Device& device) {
        Numbers buffer = Numbers::create(device, granule).value();
        buffer.resize(100).value();
        device.stream().fill(buffer, 1).value();
        const auto whole = buffer.part(0, 100).value();
        const auto tail = buffer.part(50, 50).value();
        const auto nothing = buffer.part(0, 0).value();
        for (const std::size_t size : {std::size_t{60}, std::size_t{0}}) {
            buffer.resize(size).value();
            for (const LaunchMode mode :
                 {LaunchMode::relaxed, LaunchMode::checked, LaunchMode::strict, LaunchMode::staged}) {
                for (const auto* const part : {&whole, &tail}) {
                    const auto given = device.stream().launch({.mode = mode}, add_one, 50, *part);
                    EXPECT_TRUE(refused_as(given, Code::invalid_argument));
                    const auto told = device.stream().explain({.mode = mode}, add_one, 50, *part);
                    ASSERT_TRUE(told.refusal.has_value());
                    EXPECT_EQ(told.refusal->code(), Code::invalid_argument);
                }
            }
            EXPECT_TRUE(refused_as(tail.read_on_host(), Code::invalid_argument));
            EXPECT_TRUE(refused_as(whole.write_on_host(), Code::invalid_argument));
            EXPECT_TRUE(refused_as(whole.concurrent_on_host(), Code::invalid_argument));
            EXPECT_TRUE(worked(nothing.read_on_host()));
        }
        buffer.resize(100).value();
        (void)device.stream().launch(checked, add_one, 50, tail).value();
        const std::vector<std::int32_t> all = isthmus::read_back(buffer).value();
        for (std::size_t at = 0; at < 100; ++at) ASSERT_EQ(all[at], at < 50 ? 1 : 2) << at;
    });
}

// keeps V11, G2
TEST(Growable, KernelsUpdateWordsInItWhereTheyMayInOtherMemoryOfThatPlace) {
    on_every_device([](Device& device) {
        for (const bool on_host : {false, true}) {
            auto made =
                GrowableBuffer<std::uint32_t>::create(device, granule, on_host ? on_the_host() : GrowableOptions{});
            if (!made) continue;  // refused, as above
            made->resize(64).value();
            device.stream().fill(*made, 0u).value();
            SharedUse use;
            use.kind = made->kind() == MemoryKind::vmm ? MemoryKind::pinned : MemoryKind::host;
            const bool own = made->kind() == MemoryKind::vmm && !on_host;
            auto like = own ? device.allocate<std::uint32_t>(64, MemoryKind::device)
                            : device.allocate_shared<std::uint32_t>(64, use);
            device.stream().fill(like.value(), 0u).value();
            const auto expected = device.stream().launch(checked, update_words, 100, *like);
            const auto given = device.stream().launch(checked, update_words, 100, *made);
            EXPECT_TRUE(!own || worked(given));
            EXPECT_TRUE(unless_fault(given.code() == expected.code()));
            const UpdatedWords words{
                reinterpret_cast<std::uint32_t*>(static_cast<std::uintptr_t>(made->device_address())), 64};
            const auto raw = device.stream().launch(checked, update_words, 100, words);
            EXPECT_TRUE(unless_fault(raw.code() == expected.code()));
            // A launch with a raw address names no buffer, so a copy on the calling thread would not wait for it.
            EXPECT_TRUE(worked(device.stream().synchronize()));
            std::array<std::uint32_t, 1> seen{};
            EXPECT_TRUE(worked(device.stream().copy_to_host(std::span(seen), *made)));
            EXPECT_EQ(seen[0], (given ? 100u : 0u) + (raw ? 100u : 0u));
        }
    });
}

struct Sixteen {
    std::uint64_t first, second;
    friend bool operator==(const Sixteen&, const Sixteen&) = default;
};

// Two handles, and a row across the border between them.
template <class T>
void fill_on_the_host(Device& device, T value, T other) {
    constexpr std::size_t half = (std::size_t{2} << 20) / sizeof(T), all = half + 100;
    auto made = GrowableBuffer<T>::create(device, 4 * half, on_the_host());
    if (!made) return;  // refused, as above
    GrowableBuffer<T>& buffer = *made;
    buffer.resize(half).value();
    buffer.resize(all).value();
    Stream& stream = device.stream();
    std::vector<T> wanted(all, value);
    EXPECT_TRUE(worked(stream.fill(buffer, value)));
    EXPECT_TRUE(worked(stream.fill_region(buffer, {half - 3, 0, 0}, {7, 1, 1}, other)));
    for (std::size_t i = half - 3; i < half + 4; ++i) wanted[i] = other;
    // Wider elements in rows with gaps are refused, as for all memory that a device fills.
    const auto boxes = stream.fill_region(buffer, {5, 10, 45}, {3, 4, 2}, other);
    EXPECT_TRUE(boxes.ok() || sizeof(T) <= sizeof(std::uint32_t) || refused_as(boxes, Code::unsupported));
    EXPECT_TRUE(sizeof(T) > sizeof(std::uint32_t) || worked(boxes));
    for (std::size_t i = 0; boxes && i < 24; ++i) wanted[5 + i / 12 * 45 + i / 3 % 4 * 10 + i % 3] = other;
    const auto view = buffer.read_on_host().value();
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), view.begin())) << sizeof(T) << " bytes";
}

// keeps V11, S3, K22
TEST(Growable, FillsOfMemoryOnTheHostAreExactForEveryWidth) {
    on_every_device([](Device& device) {
        fill_on_the_host<std::uint8_t>(device, 0x12, 0x34);
        fill_on_the_host<std::uint16_t>(device, 0x1234, 0x5678);
        fill_on_the_host<std::int32_t>(device, -2, 0x12345678);
        fill_on_the_host<double>(device, 3.14159, 2.71828);
        fill_on_the_host<Sixteen>(device, {1, 2}, {3, 4});
    });
}

// keeps V11, S3, S14: nobody waits, and a graph does it at each launch
TEST(Growable, FillsOfMemoryOnTheHostKeepTheOrderOfTheirStream) {
    on_every_device([](Device& device) {
        auto made = Numbers::create(device, 4 * granule, on_the_host());
        if (!made) return;  // refused, as above
        made->resize(granule).value();
        made->resize(granule + 100).value();
        Stream stream = device.create_stream().value();
        const std::size_t all = made->size();
        const auto expect = [&](std::int32_t value) {
            const auto view = made->read_on_host().value();
            EXPECT_EQ(std::count(view.begin(), view.end(), value), static_cast<std::ptrdiff_t>(all));
        };
        stream.fill(*made, 1).value();
        for (std::int32_t round = 1; round <= 3; ++round) {
            (void)stream.launch(checked, add_one, all, *made).value();
            stream.fill(*made, 10 * round).value();
        }
        (void)stream.launch(checked, add_one, all, *made).value();
        expect(31);
        if (made->kind() == MemoryKind::vmm) {
            const auto calls = [&](const char* name) { return driver_calls(name); };
            const long fills = calls("cuMemsetD32Async"), waits = calls("cuStreamSynchronize");
            stream.fill(*made, 0x12345678).value();  // two handles
            stream.fill_region(*made, {100, 0, 0}, {100, 1, 1}, 0x12345678).value();
            EXPECT_TRUE(unless_fault(fills < 0 || calls("cuMemsetD32Async") == fills + 3));
            EXPECT_TRUE(unless_fault(calls("cuStreamSynchronize") == waits));
            made->resize(0).value();
            made->trim().value();
            made->resize(all).value();
            const long again = calls("cuMemsetD32Async");
            stream.fill(*made, 0x12345678).value();  // one handle now
            EXPECT_TRUE(unless_fault(again < 0 || calls("cuMemsetD32Async") == again + 1));
            expect(0x12345678);
            made->resize(4 * granule).value();  // two handles again
            stream.fill(*made, 7).value();
            made->resize(all).value();
            expect(7);
        }
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(worked(stream.fill(*made, 50)));
        (void)stream.launch(checked, add_one, all, *made).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        for (int round = 0; round < 2; ++round) {
            for (std::int32_t& one : made->write_on_host().value()) one = round;
            (void)stream.launch(instance).value();
            expect(51);
        }
    });
}

// keeps V11, K22: without a context of the thread drivers refuse copies over two handles
TEST(Growable, CopiesReachOverItsHandlesInEveryDirection) {
    on_every_device([](Device& device) {
        for (const bool on_host : {false, true}) {
            auto made = Numbers::create(device, 4 * granule, on_host ? on_the_host() : GrowableOptions{});
            if (!made) continue;  // refused, as elsewhere
            made->resize(granule).value();
            made->resize(granule + 100).value();
            constexpr std::size_t first = granule - 50, count = 100;
            Stream stream = device.create_stream().value();
            Buffer<std::int32_t> from = pinned(device, count, 3), to = pinned(device, count, 0);
            auto plain = device.allocate<std::int32_t>(count).value();
            const auto round_trip = [&] {
                stream.copy(*made, first, from, 0, count).value();
                stream.copy(plain, 0, *made, first, count).value();
                stream.launch(checked, add_one, count, plain).value();
                stream.copy(*made, first, plain, 0, count).value();
                stream.copy(to, 0, *made, first, count).value();
            };
            round_trip();
            EXPECT_EQ(to.read_on_host().value()[0], 4);
            EXPECT_EQ(to.read_on_host().value()[count - 1], 4);
            Capture capture = stream.begin_capture().value();
            round_trip();
            const GraphInstance instance = capture.end().value().instantiate().value();
            for (std::int32_t& one : from.write_on_host().value()) one = 8;
            (void)stream.launch(instance).value();
            EXPECT_EQ(to.read_on_host().value()[count - 1], 9);
            std::array<std::int32_t, count> seen{};
            stream.copy_to_host(std::span(seen), *made, first).value();
            EXPECT_EQ(seen[count - 1], 9);
        }
    });
}

// keeps V11: its growing is for its own memory
TEST(Growable, MovedFromOrAssignedToItGrowsNoMoreThanItHas) {
    on_every_growing_device([](Device& device) {
        Numbers grown = Numbers::create(device, 2 * granule).value();
        grown.resize(10).value();
        Stream stream = device.create_stream().value();
        Capture capture = stream.begin_capture().value();  // the grown memory ends after it
        Numbers moved = std::move(grown);
        EXPECT_TRUE(
            refused_as(grown.resize(20), Code::invalid_handle));  // NOLINT(bugprone-use-after-move): what it says
        EXPECT_TRUE(refused_as(grown.trim(), Code::invalid_handle));
        grown = Numbers();
        EXPECT_TRUE(refused_as(grown.reserve(20), Code::invalid_handle));
        EXPECT_TRUE(worked(capture.end()));
        EXPECT_TRUE(worked(moved.resize(20)));
        EXPECT_EQ(moved.size(), 20u);
        device.stream().fill(moved, 2).value();
        EXPECT_TRUE(worked(moved.release()));
        EXPECT_TRUE(refused_as(moved.resize(20), Code::invalid_handle));
    });
}

// keeps V13: what was asked for is had, or refused
TEST(Growable, TheSystemsMemoryIsNotCompressed) {
    EXPECT_TRUE(refused_as(Numbers::create(runtime().cpu(), 1, {.compressible = true}), Code::unsupported));
}

}  // namespace
}  // namespace conformance
