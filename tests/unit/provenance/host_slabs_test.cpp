// SPDX-License-Identifier: Apache-2.0
// Pieces of host memory from slabs: which system calls are made and how often, what a release refuses, how a
// registration may fail.
#include "made_up_system.hpp"

#include <host_slabs.hpp>
#include <registered_placement.hpp>

#include <linux/mempolicy.h>

#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace {

using namespace made_up;
using isthmus::detail::HostSlabs;
using isthmus::detail::SlabOptions;
using isthmus::detail::SlabPiece;

struct Device {  // registers the slabs
    int added = 0;
    int removed = 0;
    bool adds = true;
    bool removes = true;
    bool moves_pages = false;
};

class Slabs : public testing::Test {
protected:
    Slabs() {
        start_again();
        options.machine.numa_nodes = {{0, 8, megabyte}, {1, 8, megabyte}};
        options.machine.memlock_limit_bytes = 8192;
        options.placement.locality = Locality::near_device;
        options.near_node = 1;
        options.slab_bytes = 8 * megabyte;
        options.calls = &calls;
    }
    ~Slabs() override { EXPECT_EQ(script.mapped_bytes, 0) << "a mapping was left behind"; }

    void register_slabs() {
        options.registration.add = [this](void* data, std::size_t) -> Result<std::uint64_t> {
            ++device.added;
            if (!device.adds) return Error(Code::driver_error, "refused by the test").from_call("register", 2);
            if (device.moves_pages) script.lies_on = 0;
            return reinterpret_cast<std::uint64_t>(data) + 0x1000000000u;
        };
        options.registration.remove = [this](void*) -> Result<void> {
            ++device.removed;
            if (!device.removes) return Error(Code::driver_error, "refused by the test");
            return {};
        };
    }

    SystemCalls calls = made_up::system();
    SlabOptions options;
    Device device;
};

TEST_F(Slabs, AThousandPiecesOfOneSlabAreMappedAndBoundOnce) {  // keeps H1, H2, H6
    HostSlabs slabs(options);
    std::set<void*> places;
    for (int i = 0; i < 1000; ++i) {
        const auto piece = slabs.allocate(4096, 64);
        ASSERT_TRUE(piece.ok()) << piece.error().text();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece->data) % 256, 0u);
        EXPECT_EQ(piece->report->placed, Placed::verified);
        EXPECT_EQ(piece->report->node, 1);
        EXPECT_EQ(piece->device_address, 0u);
        places.insert(piece->data);
    }
    EXPECT_EQ(places.size(), 1000u);
    EXPECT_EQ(script.mmap_calls, 1);
    EXPECT_EQ(script.mbind_calls, 1);
    EXPECT_EQ(script.populate_calls, 1);
    EXPECT_EQ(script.pages_asked, 8 * megabyte / page_size_bytes());
    EXPECT_EQ(script.mlock_calls, 0);
    EXPECT_EQ(slabs.reserved_bytes(), 8 * megabyte);
    EXPECT_EQ(slabs.used_bytes(), 1000u * 4096);
    for (void* place : places) ASSERT_TRUE(slabs.release(place).ok());
    EXPECT_EQ(slabs.used_bytes(), 0u);
    EXPECT_EQ(script.mapped_bytes, static_cast<std::ptrdiff_t>(8 * megabyte)) << "kept for the next pieces";
}

TEST_F(Slabs, PiecesNeverOverlapAndNeighboursJoinAgain) {
    HostSlabs slabs(options);
    std::mt19937 random(20261121);
    std::vector<std::pair<SlabPiece, unsigned char>> out;
    const auto intact = [](const auto& piece) {
        const auto* bytes = static_cast<const unsigned char*>(piece.first.data);
        return std::all_of(bytes, bytes + piece.first.bytes, [&](unsigned char b) { return b == piece.second; });
    };
    for (int step = 0; step < 4000; ++step) {
        if (out.size() < 40 && random() % 5 < 3) {
            const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? 300000 : 3000);
            const std::size_t alignment = std::size_t{1} << random() % 15;
            const auto piece = slabs.allocate(bytes, alignment);
            ASSERT_TRUE(piece.ok());
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(piece->data) % alignment, 0u);
            ASSERT_GE(piece->bytes, bytes);
            ASSERT_LT(piece->bytes, bytes + 256);
            out.emplace_back(*piece, static_cast<unsigned char>(step));
            std::memset(piece->data, out.back().second, piece->bytes);
        } else if (!out.empty()) {
            const std::size_t which = random() % out.size();
            ASSERT_TRUE(intact(out[which])) << "written over by a neighbour";
            ASSERT_TRUE(slabs.release(out[which].first.data).ok());
            out.erase(out.begin() + static_cast<std::ptrdiff_t>(which));
        }
    }
    for (const auto& piece : out) {
        EXPECT_TRUE(intact(piece));
        ASSERT_TRUE(slabs.release(piece.first.data).ok());
    }
    const int mapped = script.mmap_calls;
    EXPECT_TRUE(slabs.allocate(8 * megabyte, 256).ok()) << "a slab without pieces is one free range";
    EXPECT_EQ(script.mmap_calls, mapped);
}

TEST_F(Slabs, RefuseBadAmountsBeforeAnyCall) {  // keeps K18
    HostSlabs slabs(options);
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    const std::pair<std::size_t, std::size_t> amounts[] = {
        {0, 8}, {8, 0}, {8, 3}, {most, 8}, {most - 300, 256}, {8, (most >> 1) + 1}};
    for (const auto& [bytes, alignment] : amounts) {
        const auto refused = slabs.allocate(bytes, alignment);
        ASSERT_EQ(refused.code(), Code::invalid_argument) << bytes << " " << alignment;
        EXPECT_FALSE(refused.error().remedy().empty());
    }
    EXPECT_EQ(script.calls, 0);
    EXPECT_EQ(slabs.reserved_bytes(), 0u);
}

TEST_F(Slabs, UnknownInteriorAndSecondReleasesAreDistinctAndChangeNothing) {  // keeps K8
    HostSlabs slabs(options);
    auto* const first = static_cast<char*>(slabs.allocate(1000, 8)->data);
    auto* const second = static_cast<char*>(slabs.allocate(1000, 8)->data);
    ASSERT_TRUE(slabs.release(second).ok());
    int foreign = 0;
    const auto unknown = slabs.release(&foreign);
    const auto interior = slabs.release(first + 256);
    const auto twice = slabs.release(second);
    EXPECT_EQ(unknown.code(), Code::invalid_argument);
    EXPECT_EQ(interior.code(), Code::invalid_argument);
    EXPECT_EQ(twice.code(), Code::invalid_handle);
    EXPECT_NE(unknown.error().message(), interior.error().message());
    EXPECT_NE(interior.error().message().find("256 bytes inside an allocation"), std::string_view::npos);
    EXPECT_EQ(slabs.used_bytes(), 1024u);
    EXPECT_TRUE(slabs.release(nullptr).ok());
    EXPECT_TRUE(slabs.release(first).ok());
}

TEST_F(Slabs, APieceLargerThanASlabIsMappedAloneAndGoesBackWithItsRelease) {
    HostSlabs slabs(options);
    const auto small = slabs.allocate(100, 8);
    const auto large = slabs.allocate(20 * megabyte + 1, 8);
    ASSERT_TRUE(large.ok());
    EXPECT_EQ(slabs.reserved_bytes(), 28 * megabyte + page_size_bytes());
    EXPECT_EQ(script.mbind_calls, 2);
    ASSERT_TRUE(slabs.release(large->data).ok());
    EXPECT_EQ(slabs.reserved_bytes(), 8 * megabyte);
    EXPECT_EQ(script.mapped_bytes, static_cast<std::ptrdiff_t>(8 * megabyte));
    EXPECT_EQ(slabs.release(large->data).code(), Code::invalid_argument) << "the address is nobody's now";
    EXPECT_TRUE(slabs.release(small->data).ok());
}

TEST_F(Slabs, AlignmentsBeyondAPageAreKept) {
    HostSlabs slabs(options);
    for (const std::size_t alignment : {megabyte, 4 * megabyte, 16 * megabyte}) {
        const auto piece = slabs.allocate(megabyte, alignment);
        ASSERT_TRUE(piece.ok());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece->data) % alignment, 0u);
        std::memset(piece->data, 1, piece->bytes);
    }
}

TEST_F(Slabs, TrimGivesBackWhatHasNoPieces) {
    HostSlabs slabs(options);
    const auto kept = slabs.allocate(6 * megabyte, 8);
    const auto gone = slabs.allocate(6 * megabyte, 8);
    EXPECT_EQ(slabs.reserved_bytes(), 16 * megabyte);
    EXPECT_EQ(slabs.trim(), 0u);
    ASSERT_TRUE(slabs.release(gone->data).ok());
    EXPECT_EQ(slabs.trim(), 8 * megabyte);
    EXPECT_EQ(slabs.reserved_bytes(), 8 * megabyte);
    EXPECT_EQ(script.mapped_bytes, static_cast<std::ptrdiff_t>(8 * megabyte));
    std::memset(kept->data, 1, kept->bytes);
    ASSERT_TRUE(slabs.allocate(6 * megabyte, 8).ok()) << "and it grows again";
}

TEST_F(Slabs, StrictFailuresAreTypedAndLeaveNothing) {  // keeps H2
    options.placement.strict = true;
    HostSlabs slabs(options);
    script.mbind_errno = EPERM;
    EXPECT_EQ(slabs.allocate(100, 8).code(), Code::not_permitted);
    script.mbind_errno = 0;
    script.lies_on = 0;
    EXPECT_EQ(slabs.allocate(100, 8).code(), Code::system_error);
    EXPECT_EQ(script.mapped_bytes, 0);
    EXPECT_EQ(slabs.reserved_bytes(), 0u);
    script.lies_on = 1;
    EXPECT_TRUE(slabs.allocate(100, 8).ok());
}

TEST_F(Slabs, PreferredPlacementFallsBackAndEachPieceSaysSo) {  // keeps H2, H3
    script.mbind_errno = EPERM;
    HostSlabs slabs(options);
    const auto piece = slabs.allocate(100, 8);
    ASSERT_TRUE(piece.ok());
    EXPECT_EQ(piece->report->placed, Placed::fallback);
    EXPECT_NE(piece->report->reason.find("forbidden"), std::string::npos);
}

TEST_F(Slabs, ALockThatIsTooLargeNamesTheLimit) {  // keeps H8
    options.placement.lock = true;
    script.mlock_errno = ENOMEM;
    HostSlabs preferred(options);
    EXPECT_NE(preferred.allocate(100, 8)->report->reason.find("RLIMIT_MEMLOCK is 8192 bytes"), std::string::npos);
    options.placement.strict = true;
    HostSlabs strict(options);
    EXPECT_EQ(strict.allocate(100, 8).code(), Code::system_limit);
}

TEST_F(Slabs, LocalPiecesComeFromTheNodeThatTheCallerRunsOn) {  // keeps H1
    options.placement.locality = Locality::local;
    HostSlabs slabs(options);
    for (const int node : {0, 1, 0, 1}) {
        script.runs_on = script.lies_on = script.first_lies_on = node;
        const auto piece = slabs.allocate(4096, 8);
        ASSERT_TRUE(piece.ok());
        EXPECT_EQ(piece->report->node, node);
        EXPECT_EQ(piece->report->placed, Placed::verified);
    }
    EXPECT_EQ(script.mbind_calls, 2) << "a slab per node";
    EXPECT_EQ(script.mode, MPOL_PREFERRED);
}

TEST_F(Slabs, AreRegisteredOnceEachAndPiecesKnowTheirDeviceAddress) {  // keeps H6, K23
    register_slabs();
    {
        HostSlabs slabs(options);
        for (int i = 0; i < 100; ++i) {
            const auto piece = slabs.allocate(4096, 8);
            ASSERT_TRUE(piece.ok());
            EXPECT_EQ(piece->device_address, reinterpret_cast<std::uint64_t>(piece->data) + 0x1000000000u);
        }
        EXPECT_EQ(device.added, 1);
        EXPECT_EQ(device.removed, 0);
    }
    EXPECT_EQ(device.removed, 1);
}

TEST_F(Slabs, RegisteredSlabsAreLockedBeforeAndLookedForBehind) {  // keeps H7
    register_slabs();
    Capabilities ats;
    ats.features[static_cast<std::size_t>(Feature::host_page_tables)].state = State::yes;
    options.placement = rules::placement_to_register(ats, options.placement);
    HostSlabs slabs(options);
    const auto piece = slabs.allocate(4096, 8);
    ASSERT_TRUE(piece.ok());
    EXPECT_TRUE(piece->report->locked);
    EXPECT_EQ(script.pages_asked, 2 * 8 * megabyte / page_size_bytes()) << "before and behind the registration";

    device.moves_pages = true;
    const auto moved = slabs.allocate(8 * megabyte, 8);
    EXPECT_EQ(moved->report->placed, Placed::fallback);
}

TEST_F(Slabs, WithoutHostPageTablesTheDriverPinsAndNothingIsLocked) {  // keeps H7
    const HostPlacement placement = rules::placement_to_register(Capabilities{}, options.placement);
    EXPECT_FALSE(placement.lock);
    EXPECT_FALSE(placement.prefault);
}

TEST_F(Slabs, AStrictSlabThatRegisteringMovedIsGivenBack) {  // keeps H2, H7
    register_slabs();
    options.placement.strict = true;
    device.moves_pages = true;
    HostSlabs slabs(options);
    EXPECT_EQ(slabs.allocate(100, 8).code(), Code::system_error);
    EXPECT_EQ(device.removed, 1);
    EXPECT_EQ(script.mapped_bytes, 0);
}

TEST_F(Slabs, ARefusedRegistrationLeavesNoSlab) {  // keeps K12
    register_slabs();
    device.adds = false;
    HostSlabs slabs(options);
    const auto refused = slabs.allocate(100, 8);
    ASSERT_EQ(refused.code(), Code::driver_error);
    EXPECT_EQ(refused.error().call(), "register");
    EXPECT_EQ(script.mapped_bytes, 0);
    EXPECT_EQ(slabs.reserved_bytes(), 0u);
    device.adds = true;
    EXPECT_TRUE(slabs.allocate(100, 8).ok());
}

TEST_F(Slabs, WhatADeviceDoesNotForgetStaysMapped) {
    register_slabs();
    HostSlabs slabs(options);
    const auto small = slabs.allocate(100, 8);
    const auto large = slabs.allocate(20 * megabyte, 8);
    device.removes = false;
    ASSERT_TRUE(slabs.release(large->data).ok());
    ASSERT_TRUE(slabs.release(small->data).ok());
    EXPECT_EQ(slabs.trim(), 0u);
    EXPECT_EQ(slabs.reserved_bytes(), 28 * megabyte);
    EXPECT_EQ(script.mapped_bytes, static_cast<std::ptrdiff_t>(28 * megabyte));
    EXPECT_EQ(slabs.allocate(20 * megabyte, 8)->data, large->data) << "and it serves again";
    ASSERT_TRUE(slabs.release(large->data).ok());
    device.removes = true;
    EXPECT_EQ(slabs.trim(), 28 * megabyte);
}

TEST_F(Slabs, EveryFailedCallOfTheSystemIsTypedAndLeavesNothing) {  // keeps R6
    register_slabs();
    options.placement.strict = true;
    options.placement.lock = true;
    int failures = 0;
    for (int n = 1;; ++n) {
        start_again();
        script.fail_at = n;
        {
            HostSlabs slabs(options);
            const auto piece = slabs.allocate(4096, 8);
            if (piece.ok() && script.calls < n) break;
            if (!piece.ok()) {
                ++failures;
                EXPECT_EQ(slabs.reserved_bytes(), 0u) << n;
                EXPECT_EQ(script.mapped_bytes, 0) << n;
                EXPECT_NE(piece.code(), Code::invalid_handle) << n;
            }
        }
        ASSERT_EQ(script.mapped_bytes, 0) << n;
    }
    EXPECT_GE(failures, 5) << "mapping, binding, touching, locking, looking";
}

TEST_F(Slabs, ManyThreadsShareThem) {  // keeps K12
    options.slab_bytes = megabyte;
    HostSlabs slabs(options);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            std::vector<void*> mine;
            for (int step = 0; step < 500; ++step) {
                if (mine.size() < 16 && random() % 2 == 0) {
                    const auto piece = slabs.allocate(1 + random() % 40000, 64);
                    ASSERT_TRUE(piece.ok());
                    std::memset(piece->data, static_cast<int>(t), piece->bytes);
                    mine.push_back(piece->data);
                } else if (!mine.empty()) {
                    EXPECT_EQ(*static_cast<unsigned char*>(mine.back()), t);
                    ASSERT_TRUE(slabs.release(mine.back()).ok());
                    mine.pop_back();
                    if (step % 50 == 0) slabs.trim();
                }
            }
            for (void* data : mine) ASSERT_TRUE(slabs.release(data).ok());
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(slabs.used_bytes(), 0u);
    slabs.trim();
    EXPECT_EQ(slabs.reserved_bytes(), 0u);
}

}  // namespace
