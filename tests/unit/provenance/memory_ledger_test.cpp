// SPDX-License-Identifier: Apache-2.0
// The ledger: identities, addresses, and distinct errors for wrong releases.
#include "cache_rules.hpp"
#include "ledger.hpp"

#include <isthmus/allocator.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {

using isthmus::Code;
using isthmus::MemoryBlock;
using isthmus::MemoryKind;
using isthmus::Result;
using isthmus::detail::Ledger;
using isthmus::detail::LedgerEntries;
using isthmus::detail::LedgerEntry;
using isthmus::detail::Piece;
using isthmus::provenance::AddressMap;
using isthmus::provenance::Record;

MemoryBlock device_block(std::uint64_t address, std::size_t bytes) {
    MemoryBlock block;
    block.device = address;
    block.bytes = bytes;
    block.kind = MemoryKind::device;
    return block;
}

struct Ledgers : testing::Test {
    AddressMap addresses;
    Ledger ledger{addresses};

    MemoryBlock entered(MemoryBlock block, std::size_t device = 0) {
        Piece piece;
        piece.make_own().allocation = {block.kind, block.host, block.device, block.bytes};
        block.id = ledger.enter(block, device, piece).value();
        return block;
    }
    // Of an allocation of the driver that may be kept.
    static Piece kept_piece(std::uint64_t begin, std::size_t bytes) {
        Piece piece;
        piece.make_own().allocation = {MemoryKind::device, nullptr, begin, bytes};
        piece.may_be_kept = true;
        return piece;
    }
    MemoryBlock entered_to_keep(MemoryBlock block, std::uint64_t begin, std::size_t whole_bytes) {
        Piece piece;
        piece.make_own().allocation = {block.kind, block.host, begin, whole_bytes};
        piece.may_be_kept = true;
        block.id = ledger.enter(block, 0, piece).value();
        return block;
    }
};

constexpr std::uint64_t plenty = 1 << 20;

TEST(Allocators, AnEmptyHandleIsRefused) {
    const isthmus::Allocator empty;
    EXPECT_EQ(empty.allocate({.bytes = 16}).code(), Code::invalid_handle);
    EXPECT_EQ(empty.release(device_block(0x10000, 0x1000)).code(), Code::invalid_handle);
    EXPECT_TRUE(empty.release({}).ok()) << "nothing to give back";
}

TEST_F(Ledgers, AReleaseThatIsWrongIsToldApartAndChangesNothing) {  // keeps K8
    const MemoryBlock block = entered(device_block(0x10000, 0x1000));
    const MemoryBlock other = entered(device_block(0x40000, 0x1000));
    MemoryBlock inside = block;
    inside.device += 16;
    MemoryBlock elsewhere = block;
    elsewhere.device = other.device;
    MemoryBlock nameless_inside = device_block(0x10010, 16);
    MemoryBlock never_issued = device_block(0x90000, 16);
    never_issued.id = ~std::uint64_t{0};
    EXPECT_EQ(ledger.take(inside, 0).code(), Code::interior_pointer);
    EXPECT_EQ(ledger.take(nameless_inside, 0).code(), Code::interior_pointer);
    EXPECT_EQ(ledger.take(elsewhere, 0).code(), Code::unknown_pointer);
    EXPECT_EQ(ledger.take(device_block(0x10000, 0x1000), 0).code(), Code::unknown_pointer)
        << "an address alone is not enough";
    EXPECT_EQ(ledger.take(device_block(0x90000, 16), 0).code(), Code::unknown_pointer);
    EXPECT_EQ(ledger.take(never_issued, 0).code(), Code::unknown_pointer);
    EXPECT_EQ(ledger.take(block, 1).code(), Code::wrong_device);
    EXPECT_EQ(ledger.size(), 2u);
    EXPECT_EQ(addresses.size(), 2u);
    EXPECT_EQ(ledger.take(block, 0).value().allocation().device, 0x10000u);
    EXPECT_EQ(ledger.take(block, 0).code(), Code::already_released);
    EXPECT_EQ(addresses.size(), 1u);
}

TEST_F(Ledgers, MemoryThatGrowsWhereItIsKeepsItsIdentity) {  // keeps V11
    const MemoryBlock block = entered(device_block(0x10000, 0x1000));
    const MemoryBlock behind = entered(device_block(0x14000, 0x1000));
    ASSERT_TRUE(ledger.resize(block.id, 0x3000).ok());
    EXPECT_EQ(addresses.find(0x12fff).id, block.id);
    EXPECT_FALSE(addresses.find(0x13000));
    ASSERT_TRUE(ledger.resize(block.id, 0x800).ok());
    EXPECT_EQ(addresses.find(0x107ff).id, block.id);
    EXPECT_FALSE(addresses.find(0x10800));
    // If the map refuses the new size, everything stays as it was.
    EXPECT_FALSE(ledger.resize(block.id, ~std::size_t{0}).ok());
    EXPECT_EQ(addresses.find(0x107ff).id, block.id);
    EXPECT_EQ(addresses.find(0x14fff).id, behind.id);
    EXPECT_EQ(ledger.resize(~std::uint64_t{0}, 1).code(), Code::invalid_handle);
    ledger.leave(block.id);
    EXPECT_FALSE(addresses.find(0x10000));
}

TEST_F(Ledgers, ABlockOfAnotherRuntimeBelongsToAnotherDevice) {  // keeps K8
    AddressMap other_addresses;
    Ledger other(other_addresses);
    Piece piece;
    MemoryBlock foreign = device_block(0x10000, 64);
    foreign.id = other.enter(foreign, 0, piece).value();
    EXPECT_EQ(ledger.take(foreign, 0).code(), Code::wrong_device);
    EXPECT_TRUE(other.take(foreign, 0).ok());
    EXPECT_EQ(ledger.take(foreign, 0).code(), Code::wrong_device);
    EXPECT_EQ(other.take(foreign, 0).code(), Code::already_released);
}

TEST_F(Ledgers, AnAddressThatIsReusedNeverRevivesAnOldIdentity) {  // keeps K8
    const MemoryBlock first = entered(device_block(0x10000, 64));
    ASSERT_TRUE(ledger.take(first, 0).ok());
    const MemoryBlock second = entered(device_block(0x10000, 64));
    EXPECT_NE(first.id, second.id);
    EXPECT_EQ(ledger.take(first, 0).code(), Code::already_released);
    EXPECT_TRUE(ledger.take(second, 0).ok());
}

TEST_F(Ledgers, MemoryThatTheDeviceFindsElsewhereStandsAtBothAddresses) {  // keeps K23
    std::array<unsigned char, 256> memory{};
    const auto host = reinterpret_cast<std::uintptr_t>(memory.data());
    MemoryBlock block;
    block.host = memory.data();
    block.device = 0x7000000;
    block.bytes = memory.size();
    block.kind = MemoryKind::registered;
    block = entered(block);
    const Record by_host = addresses.find(host + 255);
    const Record by_device = addresses.find(0x7000000 + 255);
    EXPECT_EQ(by_host.id, block.id);
    EXPECT_EQ(by_device.id, block.id);
    EXPECT_EQ(by_host.flags, 0);
    EXPECT_EQ(by_device.flags, isthmus::provenance::record_flags::device_address);
    ASSERT_TRUE(ledger.take(block, 0).ok());
    EXPECT_EQ(addresses.size(), 0u);
}

TEST_F(Ledgers, NewMemoryEvictsWhatIsStaleAtItsAddresses) {  // keeps K12
    const std::uint8_t foreign = isthmus::provenance::record_flags::foreign;
    ASSERT_TRUE(addresses.insert({0x10000, 0x100, 1, 0, MemoryKind::pinned, foreign}).ok());
    ASSERT_TRUE(addresses.insert({0x10800, 0x100, 2, 0, MemoryKind::pinned, foreign}).ok());
    ASSERT_TRUE(addresses.insert({0x20000, 0x100, 3, 0, MemoryKind::pinned, foreign}).ok());
    const MemoryBlock block = entered(device_block(0x10000, 0x1000));
    EXPECT_EQ(addresses.find(0x10800).id, block.id);
    EXPECT_EQ(addresses.find(0x20000).id, 3u) << "what does not overlap stays";
    EXPECT_EQ(addresses.size(), 2u);
}

TEST_F(Ledgers, WhatCannotBeEnteredStaysTheCallersAndLeavesNothing) {  // keeps K12
    Piece piece;
    piece.make_own().allocation.bytes = 64;
    EXPECT_FALSE(ledger.enter(device_block(std::uint64_t{1} << 60, 64), 0, piece).ok());
    EXPECT_EQ(piece.allocation().bytes, 64u);
    MemoryBlock half = device_block(std::uint64_t{1} << 60, 64);  // its second address is refused
    std::array<unsigned char, 64> memory{};
    half.host = memory.data();
    EXPECT_FALSE(ledger.enter(half, 0, piece).ok());
    EXPECT_EQ(ledger.size(), 0u);
    EXPECT_EQ(addresses.size(), 0u);
}

TEST_F(Ledgers, UsersMemoryCutOutOfKnownMemoryLeavesTheOwnersRecord) {  // keeps K17
    const MemoryBlock arena = entered(device_block(0x10000, 0x1000));
    const std::uint64_t id = ledger.enter_users(device_block(0x10100, 64), 0);
    EXPECT_EQ(addresses.find(0x10100).id, arena.id);
    ledger.leave(id);
    EXPECT_EQ(addresses.find(0x10100).id, arena.id);
    const std::uint64_t own = ledger.enter_users(device_block(0x50000, 64), 0);
    EXPECT_EQ(addresses.find(0x50010).id, own);
    ledger.leave(own);
    EXPECT_FALSE(addresses.find(0x50010));
}

TEST_F(Ledgers, WhatIsLeftOfADeviceCanBeTakenAtOnce) {  // keeps K11
    const MemoryBlock gone = entered(device_block(0x10000, 64), 0);
    const MemoryBlock kept = entered(device_block(0x20000, 64), 1);
    EXPECT_EQ(ledger.take_all(0).size(), 1u);
    EXPECT_EQ(ledger.take(gone, 0).code(), Code::already_released);
    EXPECT_TRUE(ledger.take(kept, 1).ok());
}

TEST_F(Ledgers, OfThreadsThatReleaseTheSameBlockExactlyOneSucceeds) {  // keeps K8, K12
    constexpr int rounds = 200;
    std::vector<MemoryBlock> blocks;
    for (int i = 0; i < rounds; ++i) blocks.push_back(entered(device_block(0x100000 + 0x1000u * unsigned(i), 0x100)));
    std::atomic<int> taken{0};
    std::atomic<int> refused{0};
    const auto release_all = [&] {
        for (const MemoryBlock& block : blocks) {
            const Result<Piece> piece = ledger.take(block, 0);
            if (piece) ++taken;
            if (piece.code() == Code::already_released) ++refused;
        }
    };
    std::thread other(release_all);
    release_all();
    other.join();
    EXPECT_EQ(taken.load(), rounds);
    EXPECT_EQ(refused.load(), rounds);
    EXPECT_EQ(addresses.size(), 0u);
}

// By the way of kept memory: no lock is taken, and of releases at the same moment one succeeds.
TEST_F(Ledgers, OfThreadsThatParkTheSameBlockExactlyOneSucceeds) {  // keeps K8, K12, M4
    constexpr int rounds = 300;
    constexpr int threads = 3;
    const MemoryBlock block = device_block(0x10000, 4096);
    for (int round = 0; round < rounds; ++round) {
        const MemoryBlock mine = entered_to_keep(block, 0x10000, 4096);
        std::atomic<int> parked{0}, refused{0}, ready{0};
        std::atomic<Piece*> piece{nullptr};
        const auto release = [&] {
            ++ready;
            while (ready.load() != threads) std::this_thread::yield();
            const Result<Piece*> done = ledger.park(mine, 0, {}, plenty);
            if (done.ok() && *done != nullptr) {
                ++parked;
                piece.store(*done);
            } else if (done.code() == Code::already_released) {
                ++refused;
            }
        };
        std::vector<std::thread> all;
        for (int at = 0; at < threads; ++at) all.emplace_back(release);
        for (std::thread& thread : all) thread.join();
        ASSERT_EQ(parked.load(), 1);
        ASSERT_EQ(refused.load(), threads - 1);
        (void)ledger.take_parked(*piece.load());
    }
}

// Neither a release that is wrong nor a question disturbs the owner, who releases the block at the same moment and gets
// its memory again.
TEST_F(Ledgers, WrongReleasesBesideTheRightOneChangeNothing) {  // keeps K8, K12
    constexpr int rounds = 500000;
    MemoryBlock mine = entered_to_keep(device_block(0x10000, 8192), 0x10000, 8192);
    std::atomic<std::uint64_t> id{mine.id};
    std::atomic<bool> done{false};
    std::atomic<int> accepted{0};
    const auto disturb = [&] {
        while (!done.load()) {
            MemoryBlock wrong = device_block(0x10000, 4096);
            wrong.id = id.load();
            accepted += ledger.park(wrong, 1, {}, plenty).ok() ? 1 : 0;
            accepted += ledger.take(wrong, 1).ok() ? 1 : 0;
            wrong.device += 256;
            accepted += ledger.park(wrong, 0, {}, plenty).ok() ? 1 : 0;
            accepted += ledger.take(wrong, 0).ok() ? 1 : 0;
            const Ledger::Origin origin = ledger.origin(wrong.id);
            accepted += origin.known && origin.lead_bytes != 0 ? 1 : 0;
        }
    };
    std::vector<std::thread> others;
    for (int at = 0; at < 4; ++at) others.emplace_back(disturb);
    int refused = 0;
    for (int round = 0; round < rounds && refused == 0; ++round) {
        const Result<Piece*> parked = ledger.park(mine, 0, {}, plenty);
        if (!parked || *parked == nullptr) {
            ++refused;
            break;
        }
        mine = device_block(0x10000, round % 2 == 0 ? 4096 : 8192);
        ASSERT_NE(ledger.wake(**parked, mine), 0u);
        id.store(mine.id);
    }
    done.store(true);
    for (std::thread& other : others) other.join();
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(accepted.load(), 0);
    EXPECT_TRUE(ledger.take(mine, 0).ok());
}

// What is wrong about a release leaves the identity to its owner.
TEST_F(Ledgers, ABlockThatIsNotParkedIsItsOwnersStill) {  // keeps K8
    const MemoryBlock mine = entered_to_keep(device_block(0x10000, 4096), 0x10000, 4096);
    MemoryBlock within = mine;
    within.device += 256;
    EXPECT_EQ(ledger.park(within, 0, {}, plenty).code(), Code::interior_pointer);
    EXPECT_EQ(ledger.park(mine, 1, {}, plenty).code(), Code::wrong_device);
    EXPECT_EQ(ledger.park(mine, 0, {}, 4095).value(), nullptr) << "too large";
    EXPECT_EQ(addresses.find(0x10000).id, mine.id);
    EXPECT_EQ(ledger.size(), 1u);
    EXPECT_TRUE(ledger.origin(mine.id).known);
    Piece* const parked = ledger.park(mine, 0, {}, plenty).value();
    ASSERT_NE(parked, nullptr);
    EXPECT_FALSE(ledger.origin(mine.id).known);
    (void)ledger.take_parked(*parked);
}

TEST_F(Ledgers, AParkedBlockIsReleasedAndItsMemoryComesBackUnderAnotherIdentity) {  // keeps M4, K8
    const MemoryBlock first = entered_to_keep(device_block(0x10000, 5000), 0x10000, 5000);
    Piece* const parked = ledger.park(first, 0, {}, plenty).value();
    ASSERT_NE(parked, nullptr);
    EXPECT_EQ(parked->allocation().bytes, 5000u);
    EXPECT_EQ(ledger.size(), 0u);
    EXPECT_TRUE(addresses.is_parked(0x10000 + 4999));
    EXPECT_FALSE(addresses.find(0x10000));
    EXPECT_EQ(ledger.park(first, 0, {}, plenty).code(), Code::already_released);
    EXPECT_EQ(ledger.take(first, 0).code(), Code::already_released);
    EXPECT_FALSE(ledger.origin(first.id).known);
    EXPECT_TRUE(ledger.take_all(0).empty()) << "whoever keeps it frees it";
    for (const std::size_t bytes : {std::size_t{4200}, std::size_t{5000}}) {
        MemoryBlock next = device_block(0x10000, bytes);
        ASSERT_EQ(ledger.wake(*parked, next), next.id);
        ASSERT_NE(next.id, 0u);
        EXPECT_NE(next.id, first.id);
        EXPECT_EQ(addresses.find(0x10000 + bytes - 1).id, next.id);
        EXPECT_FALSE(addresses.find(0x10000 + bytes));
        EXPECT_EQ(ledger.take(first, 0).code(), Code::already_released) << "while another has it";
        EXPECT_EQ(ledger.park(next, 0, {}, plenty).value(), parked) << "where it was";
    }
    EXPECT_EQ(ledger.take_parked(*parked).allocation().device, 0x10000u);
    EXPECT_FALSE(addresses.is_parked(0x10000));
    EXPECT_EQ(entered(device_block(0x10800, 64)).device, 0x10800u);
}

TEST_F(Ledgers, WhatRestsWakesUnderAnotherIdentity) {  // keeps M2, M4, K8
    const MemoryBlock block = device_block(0x10000, 5000);
    Piece piece = kept_piece(0x10000, 5000);
    Piece* entered = nullptr;
    MemoryBlock first = block;
    first.id = ledger.enter(block, 0, piece, &entered).value();
    ASSERT_NE(entered, nullptr);
    EXPECT_FALSE(ledger.rest(*entered, first.id + 1, {}, plenty)) << "another identity";
    EXPECT_FALSE(ledger.rest(*entered, first.id, {}, 4999)) << "too large";
    EXPECT_FALSE(ledger.rest(*entered, first.id, {.device_usable = false}, plenty));
    EXPECT_EQ(addresses.find(0x10000).id, first.id) << "unchanged";
    MemoryBlock last = first;
    for (int times = 0; times < 3; ++times) {
        ASSERT_TRUE(ledger.rest(*entered, last.id, {}, plenty));
        EXPECT_FALSE(ledger.rest(*entered, last.id, {}, plenty)) << "it rests";
        EXPECT_EQ(ledger.size(), 0u);
        EXPECT_FALSE(addresses.find(0x10000));
        EXPECT_TRUE(addresses.is_parked(0x10000 + 4999));
        EXPECT_EQ(ledger.take(last, 0).code(), Code::already_released);
        EXPECT_TRUE(ledger.take_all(0).empty()) << "whoever keeps it frees it";
        MemoryBlock next = last;
        EXPECT_EQ(ledger.wake(*entered, next), next.id);
        EXPECT_NE(next.id, last.id);
        EXPECT_EQ(ledger.take(last, 0).code(), Code::already_released) << "while another has it";
        EXPECT_EQ(addresses.find(0x10000 + 4999).id, next.id);
        EXPECT_EQ(ledger.size(), 1u);
        last = next;
    }
    ledger.exclude_from_cache(last.id);
    EXPECT_FALSE(ledger.rest(*entered, last.id, {}, plenty));
    EXPECT_TRUE(ledger.take(last, 0).ok());
}

TEST_F(Ledgers, WhatRestsWhereOtherMemoryIsNowStaysParked) {  // keeps M4, K11
    Piece piece = kept_piece(0x10000, 5000);
    Piece* entered_at = nullptr;
    MemoryBlock block = device_block(0x10000, 5000);
    block.id = ledger.enter(block, 0, piece, &entered_at).value();
    ASSERT_TRUE(ledger.rest(*entered_at, block.id, {}, plenty));
    const MemoryBlock other = entered(device_block(0x10800, 64));  // the driver gave the addresses to another context
    MemoryBlock again = block;
    EXPECT_EQ(ledger.wake(*entered_at, again), 0u);
    EXPECT_EQ(addresses.find(0x10800).id, other.id);
    EXPECT_FALSE(addresses.find(0x10000));
    EXPECT_EQ(ledger.take_parked(*entered_at).allocation().device, 0x10000u);
}

TEST_F(Ledgers, WhatRestsAndWakesBesideOtherThreadsIsNeverMixedUp) {  // keeps M7, K12
    constexpr int rounds = 20000;
    std::atomic<bool> done{false};
    const auto churn = [&](std::uint64_t base) {
        Piece piece = kept_piece(base, 4096);
        Piece* at = nullptr;
        MemoryBlock block = device_block(base, 4096);
        block.id = ledger.enter(block, 0, piece, &at).value();
        for (int round = 0; round < rounds; ++round) {
            EXPECT_TRUE(ledger.rest(*at, block.id, {}, plenty));
            EXPECT_EQ(ledger.wake(*at, block), block.id);
            EXPECT_NE(block.id, 0u);
        }
        EXPECT_TRUE(ledger.take(block, 0).ok());
    };
    const auto look = [&] {
        while (!done.load()) {
            for (const std::uint64_t base : {0x10000u, 0x20000u, 0x30000u}) {
                const Record found = addresses.find(base + 100);
                if (!found) continue;
                EXPECT_EQ(found.base, base);
                EXPECT_EQ(found.bytes, 4096u);
            }
            (void)ledger.size();
            (void)ledger.take(MemoryBlock{}, 0);
        }
    };
    std::thread reader(look);
    std::vector<std::thread> threads;
    for (const std::uint64_t base : {0x10000u, 0x20000u, 0x30000u}) threads.emplace_back(churn, base);
    for (std::thread& thread : threads) thread.join();
    done.store(true);
    reader.join();
    EXPECT_EQ(ledger.size(), 0u);
    EXPECT_EQ(addresses.size(), 0u);
}

TEST_F(Ledgers, WhatTheRulesDoNotKeepIsNotParked) {  // keeps M3, M5
    MemoryBlock block = entered_to_keep(device_block(0x10000, 5000), 0x10000, 5000);
    EXPECT_EQ(ledger.park(block, 0, {}, 4999).value(), nullptr) << "too large";
    EXPECT_EQ(ledger.park(block, 0, {.order = isthmus::rules::ReleaseOrder::own_stream}, plenty).value(), nullptr);
    EXPECT_EQ(ledger.park(block, 0, {.device_usable = false}, plenty).value(), nullptr);
    EXPECT_EQ(ledger.park(block, 1, {}, plenty).code(), Code::wrong_device);
    MemoryBlock inside = block;
    inside.device += 16;
    EXPECT_EQ(ledger.park(inside, 0, {}, plenty).code(), Code::interior_pointer);
    EXPECT_EQ(addresses.find(0x10000).id, block.id) << "unchanged";
    ledger.exclude_from_cache(block.id);
    EXPECT_EQ(ledger.park(block, 0, {}, plenty).value(), nullptr);
    EXPECT_TRUE(ledger.take(block, 0).ok());
    const MemoryBlock other = entered(device_block(0x20000, 64));
    EXPECT_EQ(ledger.park(other, 0, {.made_for_it = true}, plenty).value(), nullptr) << "the ledger knows better";
}

TEST_F(Ledgers, ParkedMemoryThatIsAskedForElsewhereIsEnteredAnew) {  // keeps M4
    const MemoryBlock first = entered_to_keep(device_block(0x10200, 1000), 0x10000, 5000);
    EXPECT_EQ(addresses.insert({0x10000 + 4999, 1, 9}).code(), Code::invalid_argument) << "to the allocation's end";
    Piece* const parked = ledger.park(first, 0, {}, plenty).value();
    MemoryBlock next = device_block(0x10000, 4000);
    EXPECT_EQ(ledger.wake(*parked, next), 0u) << "it begins elsewhere in the allocation";
    EXPECT_EQ(addresses.size(), 0u);
    Piece piece = ledger.take_parked(*parked);
    EXPECT_EQ(piece.allocation().bytes, 5000u);
    next.id = ledger.enter(next, 0, piece).value();
    EXPECT_EQ(addresses.find(0x10000 + 3999).id, next.id);
    EXPECT_EQ(ledger.take(first, 0).code(), Code::already_released);
}

TEST_F(Ledgers, BothAddressesOfMemoryAreParkedAndRevived) {  // keeps K23, M4
    std::array<unsigned char, 256> memory{};
    const auto host = reinterpret_cast<std::uintptr_t>(memory.data());
    MemoryBlock block;
    block.host = memory.data();
    block.device = 0x7000000;
    block.bytes = memory.size();
    block.kind = MemoryKind::pinned;
    const MemoryBlock first = entered_to_keep(block, block.device, block.bytes);
    Piece* const parked = ledger.park(first, 0, {}, plenty).value();
    EXPECT_TRUE(addresses.is_parked(host + 255) && addresses.is_parked(0x7000000 + 255));
    block.bytes = 200;
    (void)ledger.wake(*parked, block);
    ASSERT_NE(block.id, 0u);
    EXPECT_EQ(addresses.find(host + 199).id, block.id);
    EXPECT_EQ(addresses.find(0x7000000 + 199).id, block.id);
    EXPECT_EQ(addresses.find(0x7000000).flags, isthmus::provenance::record_flags::device_address);
    EXPECT_FALSE(addresses.find(host + 200));
    // Where one record has left the map, the other leaves it, too.
    ASSERT_EQ(ledger.park(block, 0, {}, plenty).value(), parked);
    EXPECT_EQ(addresses.make_way(0x7000000, 1), 1u);
    EXPECT_EQ(ledger.wake(*parked, block), 0u);
    EXPECT_FALSE(addresses.find(host));
    EXPECT_EQ(ledger.take_parked(*parked).allocation().device, 0x7000000u);
    EXPECT_FALSE(addresses.is_parked(host));
}

// Places of a slab of 16 times 256 bytes.
struct Places : Ledgers {
    static constexpr std::uint64_t begin = 0x10000;
    isthmus::detail::PieceSlab slab;

    Places() {
        slab.kind = MemoryKind::pinned;
        slab.host = reinterpret_cast<std::byte*>(begin);
        slab.device = begin;
        slab.place_bytes = 256;
        slab.places = 16;
    }
    MemoryBlock block_of(std::size_t place, std::size_t bytes) const {
        MemoryBlock block;
        block.host = slab.host + place * slab.place_bytes;
        block.device = slab.device + place * slab.place_bytes;
        block.bytes = bytes;
        block.kind = slab.kind;
        return block;
    }
    MemoryBlock cut(std::size_t place, std::size_t bytes, Piece** entered = nullptr) {
        MemoryBlock block = block_of(place, bytes);
        Piece piece;
        piece.memory.be_place_of(slab);
        piece.block = block;
        piece.may_be_kept = true;
        block.id = ledger.enter(block, 0, piece, entered).value();
        return block;
    }
};

TEST_F(Places, OfASlabAreToldApartByAddressAndIdentity) {  // keeps K8, K9, A16
    const MemoryBlock one = cut(2, 100), other = cut(3, 255);
    EXPECT_EQ(addresses.find(begin + 2 * 256 + 99).id, one.id);
    EXPECT_FALSE(addresses.find(begin + 2 * 256 + 100));
    EXPECT_EQ(addresses.find(begin + 3 * 256 + 254).id, other.id);
    EXPECT_EQ(addresses.find(begin + 3 * 256).bytes, 255u);
    EXPECT_EQ(addresses.find(begin + 3 * 256).kind, MemoryKind::pinned);
    MemoryBlock inside = one;
    inside.host = static_cast<std::byte*>(inside.host) + 16;
    EXPECT_EQ(ledger.take(inside, 0).code(), Code::interior_pointer);
    MemoryBlock nameless = inside;
    nameless.id = 0;
    EXPECT_EQ(ledger.take(nameless, 0).code(), Code::interior_pointer);
    MemoryBlock elsewhere = one;
    elsewhere.host = other.host;
    EXPECT_EQ(ledger.take(elsewhere, 0).code(), Code::unknown_pointer);
    EXPECT_EQ(ledger.take(one, 1).code(), Code::wrong_device);
    EXPECT_EQ(addresses.size(), 2u);
    EXPECT_EQ(ledger.take(one, 0).value().slab(), &slab);
    EXPECT_EQ(ledger.take(one, 0).code(), Code::already_released);
    EXPECT_FALSE(addresses.find(begin + 2 * 256));
    EXPECT_EQ(addresses.find(begin + 3 * 256).id, other.id);
    EXPECT_EQ(addresses.insert({begin, 1, 9}).code(), Code::invalid_argument) << "the slab is there";
    EXPECT_TRUE(ledger.take(other, 0).ok());
    EXPECT_TRUE(addresses.insert({begin, slab.place_bytes * slab.places, 9}).ok()) << "with its last place, it is not";
}

TEST_F(Places, ArePassedOnUnderAnotherIdentity) {  // keeps M4, K8
    const MemoryBlock first = cut(5, 100);
    (void)cut(6, 1);
    Piece* const parked = ledger.park(first, 0, {}, plenty).value();
    ASSERT_NE(parked, nullptr);
    EXPECT_EQ(parked->bytes(), 256u);
    EXPECT_FALSE(addresses.find(begin + 5 * 256));
    EXPECT_TRUE(addresses.is_parked(begin + 5 * 256));
    EXPECT_EQ(ledger.park(first, 0, {}, plenty).code(), Code::already_released);
    MemoryBlock next = block_of(5, 200);
    ASSERT_NE(ledger.wake(*parked, next), 0u);
    EXPECT_NE(next.id, first.id);
    EXPECT_EQ(addresses.find(begin + 5 * 256 + 199).id, next.id);
    EXPECT_EQ(ledger.take(first, 0).code(), Code::already_released) << "while another has it";
    ASSERT_EQ(ledger.park(next, 0, {}, plenty).value(), parked);
    MemoryBlock larger = block_of(5, 257);
    EXPECT_EQ(ledger.wake(*parked, larger), 0u) << "the next place is another's";
    MemoryBlock beside = block_of(6, 100);
    EXPECT_EQ(ledger.wake(*parked, beside), 0u);
    EXPECT_FALSE(addresses.find(begin + 5 * 256));
    Piece piece = ledger.take_parked(*parked);
    EXPECT_EQ(piece.allocation().device, begin + 5 * 256);
    EXPECT_EQ(piece.allocation().bytes, 256u);
    EXPECT_EQ(addresses.size(), 1u);
    EXPECT_EQ(ledger.take_all(0).size(), 1u);
    EXPECT_EQ(addresses.size(), 0u);
}

TEST_F(Places, AreFoundAtBothAddresses) {  // keeps K23
    slab.device = 0x7000000;
    const MemoryBlock block = cut(3, 100);
    EXPECT_EQ(addresses.find(begin + 3 * 256).flags, 0);
    const Record there = addresses.find(0x7000000 + 3 * 256 + 99);
    EXPECT_EQ(there.id, block.id);
    EXPECT_EQ(there.base, 0x7000000u + 3 * 256);
    EXPECT_EQ(there.flags, isthmus::provenance::record_flags::device_address);
    Piece* const parked = ledger.park(block, 0, {}, plenty).value();
    EXPECT_FALSE(addresses.find(0x7000000 + 3 * 256));
    MemoryBlock next = block_of(3, 50);
    EXPECT_NE(ledger.wake(*parked, next), 0u);
    EXPECT_EQ(addresses.find(0x7000000 + 3 * 256 + 49).id, next.id);
    EXPECT_TRUE(ledger.take(next, 0).ok());
    EXPECT_TRUE(addresses.insert({0x7000000, 1, 9}).ok());
}

TEST_F(Places, AreRecordedAnewWhereTheirSlabMadeWay) {  // keeps M4
    const MemoryBlock one = cut(1, 64), other = cut(2, 64);
    Piece* const parked = ledger.park(one, 0, {}, plenty).value();
    EXPECT_TRUE(ledger.insert({begin + 0x800, 16, 9, 0, MemoryKind::host, 0}).ok()) << "the driver has handed it out";
    EXPECT_FALSE(addresses.find(begin + 2 * 256));
    MemoryBlock next = block_of(1, 64);
    EXPECT_EQ(ledger.wake(*parked, next), 0u);
    Piece piece = ledger.take_parked(*parked);
    next.id = ledger.enter(next, 0, piece).value();
    EXPECT_EQ(addresses.find(begin + 256).id, next.id);
    EXPECT_EQ(addresses.find(begin + 2 * 256).id, other.id);
    EXPECT_FALSE(addresses.find(begin + 0x800)) << "it made way in turn";
}

TEST_F(Places, ArePutBackUnderTheirIdentity) {  // keeps R5, K8
    const MemoryBlock block = cut(4, 100);
    Piece piece = ledger.take(block, 0).value();
    EXPECT_FALSE(addresses.find(begin + 4 * 256));
    ledger.put_back(0, piece);
    EXPECT_EQ(addresses.find(begin + 4 * 256 + 99).id, block.id);
    EXPECT_TRUE(ledger.origin(block.id).known);
    Piece* const parked = ledger.park(block, 0, {}, plenty).value();
    ASSERT_NE(parked, nullptr);
    EXPECT_FALSE(addresses.find(begin + 4 * 256));
    MemoryBlock next = block_of(4, 100);
    ASSERT_NE(ledger.wake(*parked, next), 0u);
    EXPECT_EQ(addresses.find(begin + 4 * 256).id, next.id);
    EXPECT_TRUE(ledger.take(next, 0).ok());
    EXPECT_EQ(addresses.size(), 0u);
}

TEST_F(Ledgers, WhatLiesBehindABlockInItsPieceIsNotAdopted) {  // keeps M2
    const MemoryBlock block = entered_to_keep(device_block(0x10000, 4200), 0x10000, 5000);
    Piece none;
    EXPECT_EQ(ledger.enter_adopted(device_block(0x10000 + 4999, 16), 0, none).code(), Code::in_use);
    EXPECT_EQ(addresses.find(0x10000).id, block.id);
    const std::uint8_t foreign = isthmus::provenance::record_flags::foreign;
    ASSERT_TRUE(addresses.insert({0x12000, 0x100, 1, 0, MemoryKind::pinned, foreign}).ok());
    EXPECT_TRUE(ledger.enter_adopted(device_block(0x12000, 0x100), 0, none).ok()) << "only asked about so far";
    EXPECT_EQ(ledger.enter_adopted(device_block(0x12000, 0x100), 0, none).code(), Code::in_use);
}

// The driver hands addresses out again that it did not get back: a context has died with its memory.
TEST_F(Ledgers, ParkedMemoryOfADeadContextGivesWay) {  // keeps K12, M7
    const MemoryBlock dead = entered_to_keep(device_block(0x10000, 4096), 0x10000, 4096);
    Piece* const parked = ledger.park(dead, 0, {}, plenty).value();
    const MemoryBlock fresh = entered(device_block(0x10800, 64));
    EXPECT_EQ(addresses.find(0x10800).id, fresh.id);
    EXPECT_FALSE(addresses.is_parked(0x10000));
    MemoryBlock again = device_block(0x10000, 4096);
    EXPECT_EQ(ledger.wake(*parked, again), 0u);
    (void)ledger.take_parked(*parked);
    EXPECT_EQ(addresses.find(0x10800).id, fresh.id);
    EXPECT_TRUE(ledger.take(fresh, 0).ok());
}

TEST_F(Ledgers, APieceThatWasTakenCanBeParkedOrPutBack) {  // keeps K8, M2
    const MemoryBlock block = entered_to_keep(device_block(0x10000, 4096), 0x10000, 4096);
    Piece piece = ledger.take(block, 0).value();
    const MemoryBlock other = entered(device_block(0x20000, 64));  // in the entry that was freed
    ledger.put_back(0, piece);
    EXPECT_EQ(addresses.find(0x10fff).id, block.id);
    EXPECT_TRUE(ledger.origin(block.id).known);
    EXPECT_EQ(ledger.size(), 2u);
    piece = ledger.take(block, 0).value();
    EXPECT_EQ(ledger.take(block, 0).code(), Code::already_released);
    Piece* const parked = ledger.park_again(0, piece);
    ASSERT_NE(parked, nullptr);
    EXPECT_EQ(parked->allocation().device, 0x10000u);
    EXPECT_TRUE(addresses.is_parked(0x10fff));
    EXPECT_EQ(ledger.take(block, 0).code(), Code::already_released);
    MemoryBlock next = device_block(0x10000, 100);
    EXPECT_NE(ledger.wake(*parked, next), 0u);
    EXPECT_TRUE(ledger.take(other, 0).ok());
    EXPECT_EQ(ledger.size(), 1u);
}

TEST_F(Ledgers, APutBackBlockIsParkedUnderItsOldIdentity) {  // keeps K8
    const MemoryBlock block = entered_to_keep(device_block(0x10000, 4096), 0x10000, 4096);
    Piece piece = ledger.take(block, 0).value();
    ledger.put_back(0, piece);
    Piece* const parked = ledger.park(block, 0, {}, plenty).value();
    ASSERT_NE(parked, nullptr);
    EXPECT_EQ(ledger.take(block, 0).code(), Code::already_released);
    MemoryBlock next = device_block(0x10000, 4096);
    (void)ledger.wake(*parked, next);
    EXPECT_EQ(ledger.take(block, 0).code(), Code::already_released);
    EXPECT_TRUE(ledger.take(next, 0).ok());
}

TEST(LedgerEntries, IdentitiesAreUniqueInTheProcessAndUsedOnce) {  // keeps K8
    namespace identity = isthmus::detail::identity;
    LedgerEntries mine, others;
    std::set<std::uint64_t> seen;
    std::vector<LedgerEntry*> entries;
    for (int times = 0; times < 200; ++times) {
        for (LedgerEntries* ledger : {&mine, &others}) {
            LedgerEntry* const entry = ledger->add();
            ASSERT_TRUE(seen.insert(entry->id()).second);
            EXPECT_EQ(ledger->at(entry->id()), entry);
            EXPECT_TRUE(ledger->handed_out(entry->id()));
            entries.push_back(ledger == &mine ? entry : nullptr);
        }
        ASSERT_TRUE(seen.insert(isthmus::detail::reserve_ids(1)).second);
    }
    for (LedgerEntry* const entry : entries) {
        if (entry == nullptr) continue;
        const std::uint64_t id = entry->id();
        EXPECT_FALSE(others.handed_out(id));
        EXPECT_TRUE(LedgerEntries::handed_out_somewhere(id));
        EXPECT_FALSE(mine.handed_out(id + identity::one_owner)) << "not yet";
        mine.remove(*entry);
        LedgerEntry* const again = mine.add();
        EXPECT_EQ(again, entry) << "the entry that was freed last";
        ASSERT_TRUE(seen.insert(again->id()).second);
        EXPECT_TRUE(mine.handed_out(id)) << "earlier";
    }
    EXPECT_FALSE(mine.handed_out(0) || LedgerEntries::handed_out_somewhere(0));
    EXPECT_FALSE(mine.handed_out(isthmus::detail::reserve_ids(1)));
    EXPECT_TRUE(LedgerEntries::handed_out_somewhere(isthmus::detail::reserve_ids(1)));
    EXPECT_FALSE(LedgerEntries::handed_out_somewhere(~std::uint64_t{0}));
    EXPECT_FALSE(LedgerEntries::handed_out_somewhere(~std::uint64_t{0} >> 1)) << "no such number yet";
}

TEST(LedgerEntries, AnEntryThatHadAllItsIdentitiesIsNotUsedAgain) {  // keeps K8
    namespace identity = isthmus::detail::identity;
    LedgerEntries entries;
    LedgerEntry* const worn = entries.add();
    worn->publish(identity::number(worn->id()) + (identity::last_owner - 1) * identity::one_owner);
    const std::uint64_t last = LedgerEntries::next_id(*worn);
    EXPECT_EQ(identity::owner(last), identity::last_owner);
    EXPECT_EQ(last & identity::no_entry, 0u);
    worn->publish(last);
    EXPECT_EQ(LedgerEntries::next_id(*worn), 0u);
    entries.remove(*worn);
    for (int times = 0; times < 100; ++times) EXPECT_NE(entries.add(), worn);
    EXPECT_TRUE(entries.handed_out(last));
}

// An identity is somebody's from the store that publishes it to the one exchange that ends it.
TEST(LedgerEntries, AnIdentityEndsOnce) {  // keeps K8, K12
    LedgerEntries entries;
    LedgerEntry* const entry = entries.add();
    const std::uint64_t first = entry->id();
    EXPECT_FALSE(entry->is(first) || entry->has_owner()) << "nobody's yet";
    EXPECT_FALSE(entry->claim(first));
    entry->publish(first);
    EXPECT_TRUE(entry->is(first) && entry->has_owner());
    EXPECT_TRUE(entry->claim(first));
    EXPECT_FALSE(entry->claim(first)) << "twice";
    EXPECT_FALSE(entry->is(first) || entry->has_owner());
    EXPECT_EQ(entry->id(), first);
    const std::uint64_t second = LedgerEntries::next_id(*entry);
    entry->publish(second);
    EXPECT_FALSE(entry->is(first) || entry->claim(first)) << "another has it";
    EXPECT_TRUE(entry->is(second));
}

// Threads look into a directory that grows: an identity that was given to them leads to its entry.
TEST(LedgerEntries, AreFoundWhileOthersAreMade) {  // keeps K12
    constexpr std::size_t count = 64 * 200;        // more chunks than the first directories hold
    LedgerEntries entries;
    std::vector<std::atomic<LedgerEntry*>> made(count);
    std::atomic<bool> done{false};
    std::atomic<std::size_t> wrong{0};
    const auto look = [&] {
        while (!done.load()) {
            for (const std::atomic<LedgerEntry*>& one : made) {
                const LedgerEntry* const entry = one.load(std::memory_order_acquire);
                if (entry == nullptr) break;
                if (entries.at(entry->id()) != entry || !entry->is(entry->id())) ++wrong;
            }
        }
    };
    std::thread first(look), second(look);
    for (std::atomic<LedgerEntry*>& one : made) {
        LedgerEntry* const entry = entries.add();
        entry->publish(entry->id());
        one.store(entry, std::memory_order_release);
    }
    done.store(true);
    first.join();
    second.join();
    EXPECT_EQ(wrong.load(), 0u);
    std::size_t visited = 0;
    entries.for_each([&](LedgerEntry&) { ++visited; });
    EXPECT_EQ(visited, count);
}

}  // namespace
