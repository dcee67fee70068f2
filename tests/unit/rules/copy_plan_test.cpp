// SPDX-License-Identifier: Apache-2.0
// The paths of copies over every combination of sides, and the arithmetic of shapes compared with plain loops.
#include "copy_plan.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace {

using isthmus::CopyBox;
using isthmus::CopyLayout;
using isthmus::CopyPath;
using isthmus::LaunchPath;
using isthmus::MemoryKind;
using isthmus::platform::CopyDirection;
using namespace isthmus::rules;

constexpr std::uint32_t seed = 4711;

CopySideFacts side(MemoryKind kind, CopyOwner owner = CopyOwner::same, bool reached = true,
                   LaunchPath path = LaunchPath::pass) {
    return {kind, owner, path, reached};
}

template <class Each>
void for_every_side(Each each) {
    for (int kind = 0; kind < isthmus::memory_kind_count; ++kind) {
        for (const CopyOwner owner :
             {CopyOwner::same, CopyOwner::other_gpu, CopyOwner::cpu_device, CopyOwner::caller}) {
            for (const LaunchPath path :
                 {LaunchPath::pass, LaunchPath::attach, LaunchPath::stage, LaunchPath::refuse}) {
                each(side(static_cast<MemoryKind>(kind), owner, true, path));
                each(side(static_cast<MemoryKind>(kind), owner, false, path));
            }
        }
    }
}

bool pageable(const CopySideFacts& s) {
    return s.path != LaunchPath::stage &&
           (s.kind == MemoryKind::host || s.kind == MemoryKind::host_numa || s.kind == MemoryKind::unknown);
}
bool locked(const CopySideFacts& s) {
    return s.path != LaunchPath::stage &&
           (s.kind == MemoryKind::pinned || s.kind == MemoryKind::registered || s.kind == MemoryKind::write_combined);
}
bool on_gpu(const CopySideFacts& s) {
    return !pageable(s) && !locked(s);
}
bool seen_by_host(const CopySideFacts& s) {
    return !on_gpu(s) || s.path == LaunchPath::stage || s.kind == MemoryKind::managed ||
           s.kind == MemoryKind::managed_pool;
}
bool beyond_reach(const CopySideFacts& s) {
    return on_gpu(s) && s.owner == CopyOwner::other_gpu && !s.reached;
}
bool left_to_driver(const CopySideFacts& s) {
    return !pageable(s) && !beyond_reach(s);
}

TEST(CopyPlan, EveryPathIsOneThatBothSidesAllow) {  // keeps K22
    std::map<CopyPath, std::size_t> seen;
    for_every_side([&](const CopySideFacts& to) {
        for_every_side([&](const CopySideFacts& from) {
            const CopyPlan plan = plan_copy(false, to, from);
            ++seen[plan.path];
            ASSERT_FALSE(plan.reason.empty());
            switch (plan.path) {
                case CopyPath::on_host: ASSERT_TRUE(seen_by_host(to) && seen_by_host(from)); break;
                case CopyPath::driver: ASSERT_TRUE(left_to_driver(to) && left_to_driver(from)); break;
                case CopyPath::between_devices:
                    ASSERT_TRUE(beyond_reach(to) || beyond_reach(from));
                    ASSERT_TRUE(on_gpu(to) || locked(to) || left_to_driver(to));
                    break;
                case CopyPath::bounce_up: ASSERT_TRUE(pageable(from) && !left_to_driver(from) && on_gpu(to)); break;
                case CopyPath::bounce_down: ASSERT_TRUE(pageable(to) && !left_to_driver(to) && on_gpu(from)); break;
                case CopyPath::refuse:
                    ASSERT_FALSE(plan.remedy.empty());
                    ASSERT_TRUE((beyond_reach(to) && to.path == LaunchPath::attach) ||
                                (beyond_reach(from) && from.path == LaunchPath::attach));
                    break;
            }
        });
    });
    EXPECT_EQ(seen.size(), 6u) << "every path is taken by something";
}

TEST(CopyPlan, PageableMemoryIsNeverLeftToTheDriverBehindOtherWork) {  // keeps K22
    for_every_side([](const CopySideFacts& other) {
        for_every_side([&](const CopySideFacts& one) {
            if (!pageable(one)) return;
            for (const CopyPath path : {plan_copy(false, one, other).path, plan_copy(false, other, one).path}) {
                ASSERT_NE(path, CopyPath::driver);
                ASSERT_NE(path, CopyPath::between_devices);
            }
        });
    });
}

// Every side × memory × flag × size on both sides of each border, against the conditions one by one.
TEST(CopyPlan, TheDriverStagesOnlyWhatItMayAndOnlyLargePieces) {  // keeps K22
    constexpr std::size_t bounce_bytes = std::size_t{4} << 20;
    std::map<PageableWay, std::size_t> seen;
    for_every_side([&](const CopySideFacts& gpu) {
        for (const auto memory :
             {isthmus::MemoryModel::host, isthmus::MemoryModel::separate, isthmus::MemoryModel::shared_dram,
              isthmus::MemoryModel::coherent_node, isthmus::MemoryModel::coherent_hidden}) {
            for (unsigned flags = 0; flags < 32; ++flags) {
                for (const std::size_t bytes :
                     {std::size_t{1}, driver_up_bytes - 1, driver_up_bytes, bounce_bytes - 1, bounce_bytes,
                      bounce_bytes + 1, driver_down_bytes - 1, driver_down_bytes, std::size_t{1} << 40}) {
                    PageableFacts facts;
                    facts.up = (flags & 1) != 0;
                    facts.one_range = (flags & 2) == 0;
                    facts.others_submit = (flags & 4) != 0;
                    facts.capture_is_open = (flags & 8) != 0;
                    facts.service_runs = (flags & 16) != 0;
                    facts.bytes = bytes;
                    facts.bounce_bytes = bounce_bytes;
                    facts.memory = memory;
                    const PageableWay way = pageable_way(gpu, facts);
                    ++seen[way];
                    const bool own = (gpu.kind == MemoryKind::device || gpu.kind == MemoryKind::pool) &&
                                     gpu.owner == CopyOwner::same &&
                                     (gpu.path == LaunchPath::pass || gpu.path == LaunchPath::stage);
                    const bool alone = (flags & ~1u) == 0;
                    const bool apart =
                        memory != isthmus::MemoryModel::host && memory != isthmus::MemoryModel::shared_dram;
                    const bool large = bytes >= (facts.up ? driver_up_bytes : driver_down_bytes);
                    ASSERT_EQ(way != PageableWay::bounce, own && alone && apart && large);
                    // Uploads that bounce buffers hold never wait for earlier work.
                    if (facts.up && bytes <= bounce_bytes) {
                        ASSERT_NE(way, PageableWay::driver);
                    }
                    if (way == PageableWay::driver_if_idle) {
                        ASSERT_TRUE(facts.up && bytes <= bounce_bytes);
                    }
                }
            }
        }
    });
    EXPECT_EQ(seen.size(), 3u);
}

TEST(CopyPlan, TheCpuDeviceCopiesWhatItSeesAndLeavesTheRestToItsOwner) {  // keeps K22, A6
    for_every_side([](const CopySideFacts& to) {
        for_every_side([&](const CopySideFacts& from) {
            const CopyCarrier carrier = copy_carrier(true, to, from);
            const bool here = seen_by_host(to) && seen_by_host(from);
            ASSERT_EQ(plan_copy(true, to, from).path, here ? CopyPath::on_host : CopyPath::refuse);
            ASSERT_EQ(carrier == CopyCarrier::stream, here);
            if (carrier == CopyCarrier::owner_of_destination) {
                ASSERT_FALSE(seen_by_host(to));
            }
            if (carrier == CopyCarrier::owner_of_source) {
                ASSERT_FALSE(seen_by_host(from));
            }
        });
    });
}

TEST(CopyPlan, TheStreamCarriesUnlessTheMemoryBelongsToOthersOnly) {  // keeps K22, S8
    for_every_side([](const CopySideFacts& to) {
        for_every_side([&](const CopySideFacts& from) {
            const bool to_other = on_gpu(to) && to.owner == CopyOwner::other_gpu;
            const bool from_other = on_gpu(from) && from.owner == CopyOwner::other_gpu;
            switch (copy_carrier(false, to, from)) {
                case CopyCarrier::owner_of_destination: ASSERT_TRUE(to_other); break;
                case CopyCarrier::owner_of_source: ASSERT_TRUE(from_other); break;
                case CopyCarrier::stream:
                    ASSERT_FALSE(to_other && from_other);
                    ASSERT_FALSE(to_other && !on_gpu(from));
                    ASSERT_FALSE(from_other && !on_gpu(to));
                    ASSERT_NE(plan_copy(false, to, from).path, CopyPath::refuse);
                    break;
            }
        });
    });
}

TEST(CopyPlan, DirectionsAreThoseOfTheSides) {  // keeps K22
    const CopySideFacts gpu = side(MemoryKind::device);
    const CopySideFacts pinned = side(MemoryKind::pinned);
    EXPECT_EQ(plan_copy(false, gpu, pinned).direction, CopyDirection::host_to_device);
    EXPECT_EQ(plan_copy(false, pinned, gpu).direction, CopyDirection::device_to_host);
    EXPECT_EQ(plan_copy(false, gpu, gpu).direction, CopyDirection::device_to_device);
    EXPECT_EQ(plan_copy(false, pinned, pinned).direction, CopyDirection::host_to_host);
    const CopySideFacts peer = side(MemoryKind::device, CopyOwner::other_gpu, true);
    EXPECT_EQ(plan_copy(false, gpu, peer).path, CopyPath::driver);
    EXPECT_EQ(plan_copy(false, gpu, side(MemoryKind::device, CopyOwner::other_gpu, false)).path,
              CopyPath::between_devices);
    EXPECT_EQ(plan_copy(false, gpu, side(MemoryKind::host, CopyOwner::cpu_device, false)).path, CopyPath::bounce_up);
}

// keeps K22, S14: what a graph takes, for every kind, owner and reach
TEST(CopyPlan, AGraphTakesPageableBuffersWhereTheDeviceReachesThemAndNothingOfTheCallers) {
    using isthmus::rules::plan_recorded_copy;
    const CopySideFacts gpu = side(MemoryKind::device, CopyOwner::same, true);
    for (const MemoryKind kind : {MemoryKind::host, MemoryKind::host_numa}) {
        for (const CopyOwner owner :
             {CopyOwner::same, CopyOwner::other_gpu, CopyOwner::cpu_device, CopyOwner::caller}) {
            for (const bool reached : {false, true}) {
                const CopySideFacts host = side(kind, owner, reached);
                const bool taken = owner == CopyOwner::same && reached;
                const CopyPlan up = plan_recorded_copy(false, gpu, host);
                const CopyPlan down = plan_recorded_copy(false, host, gpu);
                ASSERT_EQ(up.path, taken ? CopyPath::driver : plan_copy(false, gpu, host).path);
                ASSERT_EQ(down.path, taken ? CopyPath::driver : plan_copy(false, host, gpu).path);
                if (!taken) continue;
                ASSERT_EQ(up.direction, CopyDirection::host_to_device);
                ASSERT_EQ(down.direction, CopyDirection::device_to_host);
            }
        }
    }
    EXPECT_EQ(plan_recorded_copy(false, gpu, gpu).path, CopyPath::driver);
    EXPECT_EQ(plan_recorded_copy(true, side(MemoryKind::host, CopyOwner::cpu_device, true), gpu).path,
              plan_copy(true, side(MemoryKind::host, CopyOwner::cpu_device, true), gpu).path);
}

// Every (destination, source) byte that a shape copies.
std::set<std::pair<std::size_t, std::size_t>> bytes_of(const CopyShape& shape) {
    std::set<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t z = 0; z < shape.slices; ++z) {
        for (std::size_t y = 0; y < shape.rows; ++y) {
            for (std::size_t x = 0; x < shape.width; ++x) {
                all.emplace(shape.to.offset + z * shape.to.slice + y * shape.to.row + x,
                            shape.from.offset + z * shape.from.slice + y * shape.from.row + x);
            }
        }
    }
    return all;
}

CopyStride random_stride(std::mt19937& random, const CopyShape& shape) {
    CopyStride stride;
    stride.offset = random() % 40;
    stride.row = shape.width + random() % 3;
    const std::size_t slice = (shape.rows - 1) * stride.row + shape.width;
    stride.slice = random() % 2 == 0 ? shape.rows * stride.row : slice + random() % 9;
    return stride;
}

CopyShape random_shape(std::mt19937& random, bool alike) {
    CopyShape shape{1 + random() % 6, 1 + random() % 4, 1 + random() % 4, {}, {}};
    shape.to = random_stride(random, shape);
    shape.from = random_stride(random, shape);
    if (alike) {
        shape.from.row = shape.to.row;
        shape.from.slice = shape.to.slice;
    }
    return shape;
}

TEST(CopyShapes, TheSimplestShapeCopiesTheSameBytes) {  // keeps K22
    std::mt19937 random(seed);
    for (int round = 0; round < 3000; ++round) {
        const CopyShape shape = random_shape(random, false);
        const CopyShape simple = simplest(shape);
        ASSERT_EQ(bytes_of(simple), bytes_of(shape)) << "seed " << seed << ", round " << round;
        ASSERT_LE(simple.slices * simple.rows, shape.slices * shape.rows);
    }
    const CopyShape dense = simplest({4, 5, 6, {0, 4, 20}, {3, 4, 20}});
    EXPECT_EQ(dense.width, 120u);
    EXPECT_EQ(dense.rows * dense.slices, 1u);
}

TEST(CopyShapes, OverlapIsExactWherePitchesAgreeAndNeverMissed) {  // keeps K18
    std::mt19937 random(seed);
    int met = 0, apart = 0;
    for (int round = 0; round < 6000; ++round) {
        const bool alike = round % 2 == 0;
        const CopyShape shape = random_shape(random, alike);
        std::set<std::size_t> written;
        for (const auto& [to, from] : bytes_of(shape)) written.insert(to);
        bool share = false;
        for (const auto& [to, from] : bytes_of(shape)) share |= written.count(from) != 0;
        if (alike) {
            ASSERT_EQ(overlaps(shape), share) << "seed " << seed << ", round " << round;
            ++(share ? met : apart);
        } else if (share) {
            ASSERT_TRUE(overlaps(shape)) << "seed " << seed << ", round " << round;
        }
    }
    EXPECT_GT(met, 500);
    EXPECT_GT(apart, 500);
}

TEST(CopyShapes, ChunksCoverAShapeOnce) {  // keeps K22
    std::mt19937 random(seed);
    for (int round = 0; round < 3000; ++round) {
        const CopyShape shape = random_shape(random, false);
        const std::size_t most = 1 + random() % 20;
        CopyChunks chunks(shape, most);
        CopyChunk chunk;
        std::set<std::pair<std::size_t, std::size_t>> all;
        while (chunks.next(chunk)) {
            ASSERT_LE(chunk.width * chunk.rows, most);
            for (std::size_t y = 0; y < chunk.rows; ++y) {
                for (std::size_t x = 0; x < chunk.width; ++x) {
                    const bool fresh = all.emplace(shape.to.offset + chunk.to + y * shape.to.row + x,
                                                   shape.from.offset + chunk.from + y * shape.from.row + x)
                                           .second;
                    ASSERT_TRUE(fresh);
                }
            }
        }
        ASSERT_EQ(all, bytes_of(shape)) << "seed " << seed << ", round " << round;
    }
}

TEST(CopyShapes, OneCallNeedsWholeRowsBetweenSlicesAndPitchesThatADriverTakes) {  // keeps K22
    EXPECT_TRUE(one_call({8, 1, 1, {}, {}}));
    EXPECT_TRUE(one_call({8, 4, 2, {0, 10, 40}, {0, 8, 80}}));
    EXPECT_FALSE(one_call({8, 4, 2, {0, 10, 45}, {0, 8, 80}}));
    EXPECT_FALSE(one_call({8, 4, 2, {0, 10, 30}, {0, 8, 80}}));
    EXPECT_TRUE(one_call({8, 2, 1, {0, 2147483647, 0}, {0, 8, 0}}));
    EXPECT_FALSE(one_call({8, 2, 1, {0, 2147483648, 0}, {0, 8, 0}}));
}

TEST(CopyShapes, FitRefusesWhatLeavesItsSideAndNothingElse) {  // keeps K18
    const auto fits = [](CopyLayout layout, const CopyBox& box, std::size_t elements) {
        return fit(layout, box, elements);
    };
    constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();
    using A = Fit::Answer;
    EXPECT_EQ(fits({0, 0, 0}, {100, 1, 1}, 100).answer, A::fits);
    EXPECT_EQ(fits({1, 0, 0}, {100, 1, 1}, 100).answer, A::outside);
    EXPECT_EQ(fits({1, 0, 0}, {100, 1, 1}, 100).end, 101u);
    EXPECT_EQ(fits({0, 10, 0}, {5, 10, 1}, 95).answer, A::fits);
    EXPECT_EQ(fits({0, 10, 0}, {5, 10, 1}, 94).answer, A::outside);
    EXPECT_EQ(fits({0, 4, 0}, {5, 10, 1}, 1000).answer, A::row_pitch);
    EXPECT_EQ(fits({0, 5, 9}, {5, 2, 2}, 1000).answer, A::slice_pitch);
    EXPECT_EQ(fits({0, 5, 10}, {5, 2, 2}, 20).answer, A::fits);
    EXPECT_EQ(fits({huge, 0, 0}, {1, 1, 1}, 10).answer, A::overflow);
    EXPECT_EQ(fits({0, huge / 2, 0}, {1, 4, 1}, 10).answer, A::overflow);
    EXPECT_EQ(fits({0, 0, huge}, {1, 1, 3}, 10).answer, A::overflow);
    EXPECT_EQ(fits({0, 0, 0}, {huge, huge, 1}, 10).answer, A::overflow);
    EXPECT_EQ(fits({huge, huge, huge}, {0, 5, 5}, 0).answer, A::fits) << "nothing is everywhere inside";
}

TEST(FillPatterns, AreAsShortAsTheValueRepeats) {  // keeps K22
    const auto pattern = [](auto value) { return shortest_pattern(&value, sizeof(value)); };
    EXPECT_EQ(pattern(std::uint8_t{7}).bytes, 1u);
    EXPECT_EQ(pattern(std::uint32_t{0}).bytes, 1u);
    EXPECT_EQ(pattern(std::uint32_t{0x12341234}).bytes, 2u);
    EXPECT_EQ(pattern(std::uint32_t{0x12341234}).value, 0x1234u);
    EXPECT_EQ(pattern(std::uint32_t{0x12345678}).bytes, 4u);
    EXPECT_EQ(pattern(std::uint64_t{0x1234567812345678}).bytes, 4u);
    EXPECT_EQ(pattern(std::uint64_t{0x1234567812345678}).value, 0x12345678u);
    EXPECT_EQ(pattern(std::uint64_t{1}).bytes, 0u);
    const unsigned char three[] = {1, 2, 3};
    EXPECT_EQ(shortest_pattern(three, 3).bytes, 0u);
    const unsigned char same[] = {9, 9, 9};
    EXPECT_EQ(shortest_pattern(same, 3).bytes, 1u);
}

// Every byte that a shape touches, of boxes whose lines do not overlap.
std::multiset<std::size_t> bytes_written(const CopyShape& shape) {
    std::multiset<std::size_t> bytes;
    for (std::size_t z = 0; z < shape.slices; ++z) {
        for (std::size_t y = 0; y < shape.rows; ++y) {
            for (std::size_t x = 0; x < shape.width; ++x) {
                bytes.insert(shape.to.offset + z * shape.to.slice + y * shape.to.row + x);
            }
        }
    }
    return bytes;
}

TEST(FillChunks, TouchTheSameBytesOnceAndReachOverNoSeam) {  // keeps K22, V11
    std::mt19937 random(7);
    const auto draw = [&](std::size_t least, std::size_t most) { return least + random() % (most - least + 1); };
    for (int round = 0; round < 3000; ++round) {
        CopyShape shape;
        shape.width = draw(1, 12);
        shape.rows = draw(1, 4);
        shape.slices = draw(1, 3);
        shape.to.offset = draw(0, 20);
        shape.to.row = shape.width + draw(0, 3);
        shape.to.slice = shape.rows * shape.to.row + draw(0, 5);
        shape.from = shape.to;
        const CopyShape whole = simplest(shape);
        std::set<std::size_t> seams;
        for (std::size_t count = draw(0, 4); count > 0; --count) seams.insert(draw(1, 140));
        const auto chunks = shapes_between(whole, {seams.begin(), seams.end()});
        std::multiset<std::size_t> touched;
        for (const CopyShape& chunk : chunks) {
            const auto bytes = bytes_written(chunk);
            for (const std::size_t seam : seams) {
                ASSERT_FALSE(*bytes.begin() < seam && *bytes.rbegin() >= seam) << round << " seam " << seam;
            }
            touched.insert(bytes.begin(), bytes.end());
        }
        ASSERT_EQ(touched, bytes_written(whole)) << round;
        if (seams.empty()) {
            ASSERT_EQ(chunks.size(), 1u);
        }
    }
}

}  // namespace
