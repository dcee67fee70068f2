// SPDX-License-Identifier: Apache-2.0
// The ledger: identities, addresses, and distinct errors for wrong releases.
#include "ledger.hpp"

#include <isthmus/allocator.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace {

using isthmus::Code;
using isthmus::MemoryBlock;
using isthmus::MemoryKind;
using isthmus::Result;
using isthmus::detail::Ledger;
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
        piece.allocation = {block.kind, block.host, block.device, block.bytes};
        block.id = ledger.enter(block, device, piece).value();
        return block;
    }
};

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
    EXPECT_EQ(ledger.take(block, 0).value().allocation.device, 0x10000u);
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
    piece.allocation.bytes = 64;
    EXPECT_FALSE(ledger.enter(device_block(std::uint64_t{1} << 60, 64), 0, piece).ok());
    EXPECT_EQ(piece.allocation.bytes, 64u);
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

}  // namespace
