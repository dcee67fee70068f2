// SPDX-License-Identifier: Apache-2.0
// Every kernel gives the same bits on the CPU device and on every GPU of the machine, real or simulated. Launches use
// the public API, so that layouts, symbols, launch shapes and GPU code are all checked together.
#include "sample_kernels.hpp"

#include <isthmus/isthmus.hpp>
#include <isthmus/kernels/camera.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::kernels;

Runtime& runtime() {
    static Runtime opened = Runtime::open().value();
    return opened;
}

// One device, and memory on it that a test fills and reads. A failure throws, and GoogleTest reports the exception with
// the error's text.
class Agent {
public:
    explicit Agent(Device& device) : device_(device) {}

    template <class T>
    Buffer<T> hold(const std::vector<T>& content) {
        Buffer<T> buffer = device_.allocate_shared<T>(content.size()).value();
        HostView<T> view = buffer.write_on_host().value();
        std::copy(content.begin(), content.end(), view.begin());
        return buffer;
    }
    // Every byte begins as `first`, so that both devices start alike where a kernel leaves something unwritten.
    template <class T>
    Buffer<T> room(std::size_t count, int first = 0x5A) {
        std::vector<T> content(count);
        std::memset(static_cast<void*>(content.data()), first, count * sizeof(T));
        return hold(content);
    }
    template <class T>
    static std::vector<T> read(const Buffer<T>& buffer) {
        const HostView<const T> view = buffer.read_on_host().value();
        return std::vector<T>(view.begin(), view.end());
    }
    template <class K, class E, class... A>
    void launch(const K& kernel, E extent, A&&... arguments) {
        device_.stream().launch(kernel, extent, std::forward<A>(arguments)...).value();
    }

private:
    Device& device_;
};

// The results of a run, as named bytes.
class Record {
public:
    template <class T>
    void keep(std::string name, const std::vector<T>& values) {
        // Bytes can be compared: the elements have no padding, or were written whole.
        entries_.push_back(
            {std::move(name), std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))});
    }
    // Only the picture itself: beyond its width an Out is undefined.
    template <class T>
    void keep(std::string name, const std::vector<T>& values, const Plane& plane) {
        std::vector<T> inside;
        for (std::uint32_t y = 0; y < plane.height; ++y)
            for (std::uint32_t x = 0; x < plane.width; ++x) inside.push_back(values[y * plane.pitch + x]);
        keep(std::move(name), inside);
    }
    void expect_same(const Record& other) const {
        ASSERT_EQ(entries_.size(), other.entries_.size());
        for (std::size_t n = 0; n < entries_.size(); ++n) {
            const std::string &a = entries_[n].bytes, &b = other.entries_[n].bytes;
            ASSERT_EQ(a.size(), b.size()) << entries_[n].name;
            const std::size_t at =
                static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
            EXPECT_EQ(at, a.size()) << entries_[n].name << " differs first at byte " << at;
        }
    }

private:
    struct Entry {
        std::string name;
        std::string bytes;
    };
    std::vector<Entry> entries_;
};

// The CPU device with worker threads, which take blocks of a launch in any order.
Runtime& with_workers() {
    static Runtime opened = [] {
        RuntimeOptions options;
        options.use_cuda = false;
        options.cpu_threads = 3;
        return Runtime::open(options).value();
    }();
    return opened;
}

// Runs the scenario on the CPU, on the CPU by three threads and on every GPU, and compares. keeps L16
template <class Scenario>
void expect_agreement(Scenario scenario) {
    Agent cpu(runtime().cpu());
    Record expected;
    scenario(cpu, expected);
    {
        SCOPED_TRACE("three threads");
        Agent threads(with_workers().cpu());
        Record found;
        scenario(threads, found);
        found.expect_same(expected);
    }
    for (std::size_t index = 0; index < runtime().device_count(); ++index) {
        Device& device = *runtime().device(index).value();
        if (device.is_cpu()) continue;
        SCOPED_TRACE(std::string(device.name()));
        Agent gpu(device);
        Record found;
        scenario(gpu, found);
        found.expect_same(expected);
    }
}

std::mt19937 random_from(unsigned seed) {
    return std::mt19937(seed);
}

std::vector<float> random_floats(std::size_t count, unsigned seed) {
    auto random = random_from(seed);
    std::uniform_real_distribution<float> range(-1000.0f, 1000.0f);
    std::vector<float> values(count);
    for (auto& v : values) v = range(random);
    return values;
}

TEST(Agreement, FloatsAreScaledAndFusedNowhere) {
    expect_agreement([](Agent& on, Record& record) {
        constexpr std::size_t count = 100003;
        auto a = on.hold(random_floats(count, 1)), b = on.hold(random_floats(count, 2)),
             c = on.hold(random_floats(count, 3));
        auto scaled = on.room<float>(count), sums = on.room<float>(count);
        on.launch(samples::scale, count, scaled, a, 0.3f);
        on.launch(samples::multiply_add, count, sums, a, b, c);
        record.keep("scale", Agent::read(scaled));
        record.keep("multiply_add", Agent::read(sums));
    });
}

TEST(Agreement, ArgumentsOfAllTypesArrive) {
    expect_agreement([](Agent& on, Record& record) {
        auto random = random_from(4);
        constexpr std::uint16_t width = 37;
        std::vector<samples::Tint> tints(width);
        for (auto& t : tints)
            t = {static_cast<std::uint8_t>(random()), static_cast<std::int32_t>(random() % 100000) - 50000,
                 static_cast<double>(random() % 1000) / 2};
        auto held = on.hold(tints);
        auto out = on.room<std::uint64_t>(std::size_t{width} * 21);
        on.launch(samples::mixed, Extent2{width, 21}, out, std::uint8_t{200}, held, true, samples::Tint{255, -7, 0.25},
                  width);
        record.keep("mixed", Agent::read(out));
    });
}

TEST(Agreement, EveryItemOfThreeDimensionsIsVisitedOnce) {
    expect_agreement([](Agent& on, Record& record) {
        for (const Extent3 size : {Extent3{1, 1, 1}, Extent3{9, 17, 5}, Extent3{8, 8, 4}, Extent3{70, 3, 33}}) {
            auto visits = on.room<std::uint32_t>(size.width * size.height * size.depth, 0);
            on.launch(samples::cell, size, visits, size);
            record.keep("cell", Agent::read(visits));
        }
    });
}

TEST(Agreement, BlocksShareMemoryAndMeetAtBarriers) {
    expect_agreement([](Agent& on, Record& record) {
        auto random = random_from(5);
        std::vector<std::int32_t> numbers(samples::sum_threads * 301);
        for (auto& n : numbers) n = static_cast<std::int32_t>(random() % 20001) - 10000;
        auto in = on.hold(numbers);
        auto sums = on.room<std::int32_t>(301);
        auto places = on.room<std::uint64_t>(3 * 5 * 2 * 4);
        on.launch(samples::block_sums, Blocks{301}, sums, in);
        on.launch(samples::block_places, Blocks{3, 5, 2}, places);
        record.keep("block_sums", Agent::read(sums));
        record.keep("block_places", Agent::read(places));
    });
}

TEST(Agreement, NothingRunsAnywhere) {
    expect_agreement([](Agent& on, Record& record) {
        on.launch(samples::nothing, 1000);
        record.keep("nothing", std::vector<int>{});
    });
}

// The whole camera pipeline; keeps every step.
void find_corners(Agent& on, Record& record, const Plane& plane, PixelFormat format,
                  const std::vector<std::uint8_t>& frame, std::uint32_t pitch_bytes, CornerRule rule,
                  std::uint32_t capacity) {
    const Extent2 extent{plane.width, plane.height};
    const std::size_t size = size_of(plane);
    auto held = on.hold(frame);
    auto gray = on.room<std::uint8_t>(size), smoothed = on.room<std::uint8_t>(size), mark = on.room<std::uint8_t>(size);
    auto gradient = on.room<Gradient>(size);
    auto response = on.room<std::int32_t>(size);
    auto rows = on.room<std::uint32_t>(plane.height);
    auto count = on.room<CornerCount>(1);
    auto corners = on.room<Corner>(capacity);
    on.launch(to_gray, extent, gray, plane, held, luma_layout(format, pitch_bytes));
    on.launch(smooth, extent, smoothed, gray, plane);
    on.launch(gradients, extent, gradient, smoothed, plane);
    on.launch(corner_response, extent, response, gradient, plane);
    on.launch(mark_corners, extent, mark, response, plane, rule);
    on.launch(count_corners, Blocks{plane.height}, rows, mark, plane);
    on.launch(place_corners, Blocks{1}, rows, count, capacity);
    on.launch(list_corners, Blocks{plane.height}, corners, rows, mark, response, plane);
    record.keep("gray", Agent::read(gray), plane);
    record.keep("smoothed", Agent::read(smoothed), plane);
    record.keep("gradient", Agent::read(gradient), plane);
    record.keep("response", Agent::read(response), plane);
    record.keep("mark", Agent::read(mark), plane);
    record.keep("rows", Agent::read(rows));
    record.keep("count", Agent::read(count));
    std::vector<Corner> listed = Agent::read(corners);
    listed.resize(Agent::read(count)[0].listed);
    record.keep("corners", listed);

    // The same in three launches, which agree with the eight, too.
    auto at_once = on.room<std::int32_t>(size);
    auto columns = on.room<std::uint16_t>(size);
    auto joined = on.room<Corner>(capacity);
    auto joined_count = on.room<CornerCount>(1);
    on.launch(frame_response, response_tiles(plane), at_once, plane, held, luma_layout(format, pitch_bytes));
    on.launch(row_corners, Blocks{plane.height}, rows, columns, at_once, plane, rule);
    on.launch(join_corners, row_groups(plane), joined, joined_count, rows, columns, at_once, plane);
    const std::vector<std::int32_t> steps = Agent::read(response), tiles = Agent::read(at_once);
    for (std::uint32_t y = 0; y < plane.height; ++y)
        for (std::uint32_t x = 0; x < plane.width; ++x)
            ASSERT_EQ(tiles[y * plane.pitch + x], steps[y * plane.pitch + x]) << x << "," << y;
    EXPECT_EQ(Agent::read(joined_count)[0].found, Agent::read(count)[0].found);
    EXPECT_EQ(Agent::read(joined_count)[0].listed, Agent::read(count)[0].listed);
    const std::vector<Corner> all = Agent::read(joined);
    EXPECT_EQ(std::memcmp(all.data(), listed.data(), listed.size() * sizeof(Corner)), 0);
    record.keep("row counts", Agent::read(rows));
    // And from luma that was copied, into rows that begin at multiples of 16.
    const Plane even{plane.width, plane.height, (plane.width + 15) / 16 * 16};
    auto luma = on.room<std::uint8_t>(size_of(even));
    auto from_luma = on.room<std::int32_t>(size);
    on.launch(copy_luma, luma_runs(even), luma, even, held, luma_layout(format, pitch_bytes));
    on.launch(frame_response, response_tiles(plane), from_luma, plane, luma, LumaLayout{0, even.pitch, 1});
    record.keep("luma", Agent::read(luma), even);
    record.keep("response of luma", Agent::read(from_luma), plane);
    EXPECT_GT(Agent::read(count)[0].found, 0u) << "a picture without corners proves little";
}

TEST(Agreement, CornersAreTheSameToTheBit) {
    struct Case {
        Plane plane;
        PixelFormat format;
        std::uint32_t pitch_bytes;
        std::uint32_t capacity;
        CornerRule rule{50, 3, 4};
    };
    // Wide pictures: several groups of columns in a row. Radius 0: every pixel above the threshold.
    const Case cases[] = {{{64, 48, 64}, PixelFormat::gray, 64, 4096},
                          {{383, 289, 400}, PixelFormat::nv12, 448, 4096},
                          {{641, 31, 641}, PixelFormat::yuyv, 1290, 20},
                          {{33, 700, 40}, PixelFormat::uyvy, 66, 4096},
                          {{2100, 40, 2112}, PixelFormat::gray, 2112, 4096, {50, 5, 4}},
                          {{1100, 24, 1100}, PixelFormat::gray, 1100, 30000, {-1000000, 1, 1}},
                          {{1100, 24, 1100}, PixelFormat::gray, 1100, 30000, {50, 0, 1}},
                          {{200, 60, 200}, PixelFormat::gray, 200, 4096, {50, 25, 0}},
                          {{90, 60, 90}, PixelFormat::gray, 90, 4096, {50, 300, 0}}};
    for (const Case& c : cases) {
        expect_agreement([&c](Agent& on, Record& record) {
            // Squares of random brightness with noise: strong corners, weak ones and ties.
            auto random = random_from(c.plane.width);
            std::vector<std::uint8_t> frame(std::size_t{c.pitch_bytes} * c.plane.height);
            for (std::size_t n = 0; n < frame.size(); ++n) {
                const std::size_t x = n % c.pitch_bytes / 16, y = n / c.pitch_bytes / 8;
                frame[n] = static_cast<std::uint8_t>((x * 2654435761u ^ y * 40503u) * 97 % 200 + random() % 8);
            }
            find_corners(on, record, c.plane, c.format, frame, c.pitch_bytes, c.rule, c.capacity);
        });
    }
}

}  // namespace
