// SPDX-License-Identifier: Apache-2.0
// Which buffers rest in lanes, how many, and which requests are the same: every combination of facts, and every field
// of a request.
#include <cache_rules.hpp>
#include <lane_rules.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

TEST(Lanes, ABufferRestsOnlyWhereNothingIsLeftToDoForIt) {  // keeps M2, M3, M7
    for (unsigned bits = 0; bits < 1u << 13; ++bits) {
        const auto bit = [&](int at) { return ((bits >> at) & 1u) != 0; };
        const Unheld buffer{bit(0), bit(1), bit(2), bit(3),  bit(4),  bit(5), bit(6),
                            bit(7), bit(8), bit(9), bit(10), bit(11), bit(12)};
        const bool needed = buffer.of_request && buffer.own_memory && buffer.device_usable;
        const bool nothing_forbids = (bits & 0b0111111110000u) == 0;
        const bool order_lost = buffer.in_order && !buffer.order_known;
        EXPECT_EQ(may_rest(buffer), needed && nothing_forbids && !order_lost) << bits;
    }
}

TEST(Lanes, ALaneKeepsFewBuffersAndItsShareOfTheLimit) {  // keeps M5
    constexpr std::uint64_t limit = 256 * mib;
    constexpr std::uint64_t most = lane_bytes(limit);
    EXPECT_EQ(most, 8 * mib);
    for (const std::size_t buffers : {std::size_t{0}, lane_buffers - 1, lane_buffers}) {
        for (const std::uint64_t there : {std::uint64_t{0}, most - 100, most}) {
            for (const std::uint64_t shelved : {std::uint64_t{0}, limit / 2, limit / 2 + 1, limit}) {
                for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{101}, most,
                                                  most + 1, std::numeric_limits<std::uint64_t>::max()}) {
                    const bool room =
                        buffers < lane_buffers && bytes <= most && there <= most - bytes && shelved <= limit / 2;
                    EXPECT_EQ(lane_has_room({buffers, there, shelved}, bytes, limit), room);
                }
            }
        }
    }
    EXPECT_FALSE(lane_has_room({}, 1, 0)) << "nothing is kept";
    EXPECT_LE(lane_count * lane_bytes(limit) + most_beside_shares(limit), limit);
}

TEST(Lanes, LargeMemoryLiesBesideTheSharesWhereAllLanesLeaveRoom) {  // keeps M5
    constexpr std::uint64_t limit = 256 * mib;
    constexpr std::uint64_t share = lane_bytes(limit), most = 96 * mib;
    for (const std::uint64_t bytes :
         {std::uint64_t{1}, share, share + 1, most - 1, most, most + 1, std::numeric_limits<std::uint64_t>::max()}) {
        EXPECT_EQ(is_large(bytes, limit), bytes > share);
        for (const std::uint64_t lanes : {std::uint64_t{0}, std::uint64_t{1}, most - share - 1, most, limit}) {
            for (const std::uint64_t beside : {std::uint64_t{0}, limit / 2 - most, limit / 2 - most + 1,
                                               limit / 2 - share - 1, limit / 2 - share, limit / 2 + 1}) {
                const bool room = bytes > share && bytes <= most && lanes <= most - bytes && beside <= limit / 2 &&
                                  bytes <= limit / 2 - beside;
                EXPECT_EQ(lanes_have_room_for_large(lanes, bytes, beside, limit), room);
            }
        }
    }
    EXPECT_FALSE(lanes_have_room_for_large(0, 1, 0, 0)) << "nothing is kept";
}

// Each differs from the default in one field.
std::vector<SharedUse> uses() {
    std::vector<SharedUse> all(1);
    const auto add = [&](const std::function<void(SharedUse&)>& change) { change(all.emplace_back()); };
    for (int use = 0; use < use_count; ++use) {
        if (static_cast<Use>(use) == Use::reads_and_writes) continue;
        add([&](SharedUse& one) { one.host = static_cast<Use>(use); });
        add([&](SharedUse& one) { one.device = static_cast<Use>(use); });
    }
    add([](SharedUse& one) { one.prefer = Prefer::latency; });
    for (int kind = 0; kind < memory_kind_count; ++kind) {
        add([&](SharedUse& one) { one.kind = static_cast<MemoryKind>(kind); });
    }
    for (const Locality locality : {Locality::near_device, Locality::node, Locality::interleaved, Locality::unbound}) {
        add([&](SharedUse& one) { one.placement.locality = locality; });
    }
    for (const int node : {0, 1, 200}) {
        add([&](SharedUse& one) { one.placement.node = node; });
    }
    add([](SharedUse& one) { one.placement.page_size = PageSize::huge; });
    add([](SharedUse& one) { one.placement.prefault = true; });
    add([](SharedUse& one) { one.placement.lock = true; });
    for (const AtomicSet set : {AtomicSet::add, AtomicSet::float_add, AtomicSet::all}) {
        add([&](SharedUse& one) { one.updates = set; });
    }
    for (const std::size_t alignment : {1u, 2u, 512u, 4096u, 1u << 21}) {
        add([&](SharedUse& one) { one.alignment_bytes = alignment; });
    }
    for (const int passes : {1, 4, 1000}) {
        add([&](SharedUse& one) { one.device_passes = passes; });
    }
    return all;
}

TEST(Lanes, RequestsAreTheSameIfEveryFieldIs) {  // keeps G11, M1
    std::vector<SharedRequest> known;
    const auto see = [&](const SharedRequest& request) {
        ASSERT_TRUE(request);
        for (const SharedRequest& other : known) EXPECT_FALSE(request == other) << known.size();
        known.push_back(request);
    };
    for (const SharedUse& use : uses()) {
        see(shared_request(4096, 4, 4, true, use));
        EXPECT_TRUE(shared_request(4096, 4, 4, true, use) == known.back());
    }
    see(shared_request(4095, 4, 4, true, {}));
    see(shared_request(4096, 8, 4, true, {}));
    see(shared_request(4096, 4, 8, true, {}));
    see(shared_request(4096, 4, 4, false, {}));
    EXPECT_GT(known.size(), 40u);
}

TEST(Lanes, BlocksAreTheSameIfKindPlacementSizeAndStreamAre) {  // keeps M1, M3
    KindRequest of_kind;
    of_kind.bytes = 4096;
    of_kind.alignment = 256;
    of_kind.kind = MemoryKind::device;
    std::vector<SharedRequest> known = {shared_request(4096, 4, 4, true, {}), kind_request(of_kind)};
    const auto see = [&](MemoryKind kind, const HostPlacement& placement = {}, std::uint64_t bytes = 4096,
                         std::uint64_t stream_id = 0) {
        const BlockSort sort = block_sort(kind, placement);
        ASSERT_TRUE(sort) << name(kind);
        const SharedRequest request = sort.request(bytes, stream_id);
        EXPECT_TRUE(request && request == block_sort(kind, placement).request(bytes, stream_id));
        for (const SharedRequest& other : known) EXPECT_FALSE(request == other) << known.size();
        known.push_back(request);
    };
    for (const MemoryKind kind :
         {MemoryKind::device, MemoryKind::pinned, MemoryKind::write_combined, MemoryKind::managed,
          MemoryKind::registered, MemoryKind::host, MemoryKind::host_numa, MemoryKind::pool}) {
        see(kind);
    }
    see(MemoryKind::device, {}, 4097);
    see(MemoryKind::pool, {}, 4096, 1);
    see(MemoryKind::pool, {}, 4096, ~std::uint64_t{0});
    const auto placed = [](const auto& change) {
        HostPlacement placement;
        change(placement);
        return placement;
    };
    for (const MemoryKind kind : {MemoryKind::registered, MemoryKind::host}) {
        see(kind, placed([](HostPlacement& one) { one.locality = Locality::node; }));
        see(kind, placed([](HostPlacement& one) { one.node = 1; }));
        see(kind, placed([](HostPlacement& one) { one.page_size = PageSize::huge; }));
        see(kind, placed([](HostPlacement& one) { one.prefault = true; }));
        see(kind, placed([](HostPlacement& one) { one.lock = true; }));
        EXPECT_FALSE(block_sort(kind, placed([](HostPlacement& one) { one.strict = true; })));
        EXPECT_FALSE(block_sort(kind, placed([](HostPlacement& one) { one.locality = Locality::local; })));
        EXPECT_FALSE(block_sort(kind, placed([](HostPlacement& one) { one.node = 1 << 16; })));
    }
    // Memory of the driver has no placement.
    EXPECT_TRUE(block_sort(MemoryKind::device, placed([](HostPlacement& one) { one.lock = true; })).word ==
                block_sort_of_driver(MemoryKind::device).word);
    EXPECT_FALSE(block_sort(MemoryKind::graph, {}));
    EXPECT_FALSE(block_sort(MemoryKind::managed_pool, {}));
    EXPECT_FALSE(block_sort(MemoryKind::unknown, {}));
}

TEST(Lanes, RequestsForAKindAreTheSameIfEveryFieldIs) {  // keeps M1, M3
    KindRequest plain;
    plain.bytes = 4096;
    plain.alignment = 4;
    plain.kind = MemoryKind::device;
    std::vector<SharedRequest> known = {shared_request(4096, 4, 4, true, {})};
    const auto see = [&](const std::function<void(KindRequest&)>& change) {
        KindRequest asked = plain;
        change(asked);
        const SharedRequest request = kind_request(asked);
        ASSERT_TRUE(request);
        EXPECT_TRUE(request == kind_request(asked));
        EXPECT_EQ(request.in_order(), asked.in_order);
        if (asked.in_order) {
            EXPECT_EQ(request.stream_id(), asked.stream_id);
        }
        for (const SharedRequest& other : known) EXPECT_FALSE(request == other) << known.size();
        known.push_back(request);
    };
    see([](KindRequest&) {});
    see([](KindRequest& one) { one.bytes = 4095; });
    see([](KindRequest& one) { one.alignment = 8; });
    for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::host, MemoryKind::host_numa, MemoryKind::pool}) {
        see([&](KindRequest& one) { one.kind = kind; });
    }
    see([](KindRequest& one) { one.reason = 7; });
    for (const std::uint64_t stream : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
        see([&](KindRequest& one) {
            one.kind = MemoryKind::pool;
            one.in_order = true;
            one.stream_id = stream;
        });
    }
    see([](KindRequest& one) { one.placement.locality = Locality::node; });
    see([](KindRequest& one) { one.placement.node = 1; });
    see([](KindRequest& one) { one.placement.page_size = PageSize::huge; });
    see([](KindRequest& one) { one.placement.prefault = true; });
    see([](KindRequest& one) { one.placement.lock = true; });
    for (const SharedRequest& request : known) EXPECT_TRUE(request);
    EXPECT_FALSE(known.front().in_order()) << "a shared request";

    const auto refuse = [&](const std::function<void(KindRequest&)>& change) {
        KindRequest asked = plain;
        change(asked);
        EXPECT_FALSE(kind_request(asked));
    };
    refuse([](KindRequest& one) { one.bytes = 0; });
    refuse([](KindRequest& one) { one.kind = MemoryKind::graph; });
    refuse([](KindRequest& one) { one.kind = MemoryKind::unknown; });
    refuse([](KindRequest& one) { one.alignment = 3; });
    refuse([](KindRequest& one) { one.reason = 8; });
    refuse([](KindRequest& one) { one.placement.node = 1 << 16; });
    refuse([](KindRequest& one) {
        one.kind = MemoryKind::host;
        one.placement.strict = true;
    });
}

TEST(Lanes, ARequestThatIsDecidedAnewEachTimeIsServedByNoLane) {  // keeps M1, M6
    EXPECT_FALSE(shared_request(0, 4, 4, true, {})) << "no memory";
    EXPECT_FALSE(SharedRequest{});
    SharedUse strict;
    strict.placement.strict = true;
    EXPECT_FALSE(shared_request(4096, 4, 4, true, strict));
    SharedUse local;
    local.placement.locality = Locality::local;
    EXPECT_FALSE(shared_request(4096, 4, 4, true, local)) << "where the thread is";
    SharedUse far_node;
    far_node.placement.node = 1 << 16;
    EXPECT_FALSE(shared_request(4096, 4, 4, true, far_node));
    SharedUse passes;
    passes.device_passes = 1 << 16;
    EXPECT_FALSE(shared_request(4096, 4, 4, true, passes));
    passes.device_passes = -1;
    EXPECT_FALSE(shared_request(4096, 4, 4, true, passes));
    SharedUse odd;
    odd.alignment_bytes = 3;
    EXPECT_FALSE(shared_request(4096, 4, 4, true, odd)) << "refused later";
    EXPECT_FALSE(shared_request(4096, 1 << 16, 4, true, {}));
}

}  // namespace
