// SPDX-License-Identifier: Apache-2.0
// Refusals of virtual memory that need a driver in a rare state, or a second holder of the same state.
#include "fake_device.hpp"
#include "mapping_errors.hpp"
#include "memory_errors.hpp"
#include "refused_with.hpp"

#include "virtual_memory_state.hpp"

#include <isthmus/mapping/multicast.hpp>
#include <isthmus/mapping/virtual_memory.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace {

using isthmus::AddressReservation;
using isthmus::Code;
using isthmus::Device;
using isthmus::DeviceFacts;
using isthmus::MemoryPlace;
using isthmus::MulticastGroup;
using isthmus::PhysicalMemory;
using isthmus::RangeAccess;
using isthmus::detail::MappingState;
using isthmus::testing::discrete_facts;
using isthmus::testing::FakeRuntime;
using isthmus::testing::FakeWorld;
using isthmus::testing::refused_with;
namespace errors = isthmus::errors;
namespace platform = isthmus::platform;
using platform::Status;

constexpr std::size_t granule = 4096;

// Addresses and handles are numbers, which are never dereferenced.
class FakeVirtualMemory final : public platform::VirtualMemory {
public:
    explicit FakeVirtualMemory(FakeWorld& world) : world_(world) {}
    std::size_t granularity_bytes = granule;
    int reserved = 0, created = 0, mapped = 0, open = 0;

    Status granularity(const platform::PhysicalRequest&, platform::Granularity& out) override {
        out = {granularity_bytes, granularity_bytes};
        return world_.call("granularity", "granularity");
    }
    Status reserve(std::size_t bytes, std::size_t, std::uint64_t& address) override {
        address = next_;
        next_ += bytes;
        ++reserved;
        return world_.call("reserve", "reserve");
    }
    Status free_address(std::uint64_t, std::size_t) override {
        --reserved;
        return world_.call("free address", "free_address");
    }
    Status create(const platform::PhysicalRequest&, platform::PhysicalHandle& out) override {
        out = platform::PhysicalHandle{world_.next++};
        ++created;
        return world_.call("create", "create");
    }
    Status release(platform::PhysicalHandle) override {
        --created;
        return world_.call("release handle", "release");
    }
    Status map(std::uint64_t, std::size_t, platform::PhysicalHandle) override {
        ++mapped;
        return world_.call("map", "map");
    }
    Status unmap(std::uint64_t, std::size_t) override {
        --mapped;
        return world_.call("unmap", "unmap");
    }
    Status set_access(std::uint64_t, std::size_t, const platform::AccessGrant*, std::size_t) override {
        ++open;
        return world_.call("set access", "set_access");
    }
    Status properties(platform::PhysicalHandle, platform::PhysicalFacts&) override { return missing; }
    Status access(std::uint64_t, const MemoryPlace&, RangeAccess&) override { return missing; }
    Status export_fd(platform::PhysicalHandle, int&) override { return missing; }
    Status import_fd(int, platform::PhysicalHandle&) override { return missing; }
    Status export_fabric(platform::PhysicalHandle, platform::FabricHandle&) override { return missing; }
    Status import_fabric(const platform::FabricHandle&, platform::PhysicalHandle&) override { return missing; }

private:
    const Status missing{Code::unsupported, 801, "missing"};
    FakeWorld& world_;
    std::uint64_t next_ = std::uint64_t{1} << 40;
};

class FakeMulticast final : public platform::Multicast {
public:
    explicit FakeMulticast(FakeWorld& world) : world_(world) {}
    std::size_t granularity_bytes = granule;
    Status granularity(const platform::TeamRequest&, platform::Granularity& out) override {
        out = {granularity_bytes, granularity_bytes};
        return {};
    }
    Status create(const platform::TeamRequest&, platform::PhysicalHandle& out) override {
        out = platform::PhysicalHandle{world_.next++};
        ++created;
        return {};
    }
    Status add_device(platform::PhysicalHandle) override { return {}; }
    Status bind(platform::PhysicalHandle, std::size_t, platform::PhysicalHandle, std::size_t, std::size_t) override {
        return {};
    }
    Status unbind(platform::PhysicalHandle, std::size_t, std::size_t) override { return {}; }
    int created = 0;

private:
    FakeWorld& world_;
};

DeviceFacts mapping_facts(int ordinal) {
    DeviceFacts facts = discrete_facts(ordinal);
    facts.attributes.push_back({102, 1, 0});  // virtual memory
    facts.attributes.push_back({132, 1, 0});  // multicast
    return facts;
}

struct MappingRefusals : testing::Test {
    FakeWorld world;
    FakeVirtualMemory memory{world};
    FakeMulticast multicast{world};
    FakeRuntime runtime;
    Device device{
        (world.virtual_memory = &memory, world.multicast = &multicast, runtime.open(world, mapping_facts(0)))};
};

TEST_F(MappingRefusals, ADriverThatTellsNoGranularityIsNotAskedForMemory) {  // keeps V2
    memory.granularity_bytes = 0;
    using errors::driver_tells_no_granularity;
    EXPECT_TRUE(refused_with<driver_tells_no_granularity>(isthmus::memory_granularity(device)));
    EXPECT_TRUE(refused_with<driver_tells_no_granularity>(PhysicalMemory::create(device, 1)));
    EXPECT_TRUE(refused_with<driver_tells_no_granularity>(AddressReservation::reserve(device, 1)));
    EXPECT_EQ(memory.reserved, 0);
    EXPECT_EQ(memory.created, 0);
    memory.granularity_bytes = granule;
    EXPECT_EQ(PhysicalMemory::create(device, 1).value().size_bytes(), granule);
}

// keeps V2: by the error that every allocation gives
TEST_F(MappingRefusals, MoreBytesThanAnyMachineHasAreNotAskedOfTheDriver) {
    const Device second{runtime.open(world, mapping_facts(1))};
    constexpr std::size_t most = ~std::size_t{0};
    using errors::allocation_larger_than_any_machine;
    EXPECT_TRUE(refused_with<allocation_larger_than_any_machine>(PhysicalMemory::create(device, most)));
    EXPECT_TRUE(refused_with<allocation_larger_than_any_machine>(MulticastGroup::create(device, 2, most)));
    EXPECT_EQ(memory.created, 0);
    EXPECT_EQ(multicast.created, 0);
    EXPECT_TRUE(PhysicalMemory::create(device, granule).ok());
}

TEST_F(MappingRefusals, ADriverThatTellsNoGranularityOfMulticastObjectsMakesNone) {  // keeps V2
    const Device second{runtime.open(world, mapping_facts(1))};
    multicast.granularity_bytes = 0;
    using errors::driver_tells_no_multicast_granularity;
    EXPECT_TRUE(refused_with<driver_tells_no_multicast_granularity>(isthmus::multicast_granularity(device, 2)));
    EXPECT_TRUE(refused_with<driver_tells_no_multicast_granularity>(MulticastGroup::create(device, 2, 1)));
    EXPECT_EQ(multicast.created, 0);
    multicast.granularity_bytes = granule;
    EXPECT_TRUE(MulticastGroup::create(device, 2, 1).ok());
}

// Two holders of one reservation stand for two threads: the second sees the first one's release.
TEST_F(MappingRefusals, AReleasedReservationTakesNothingAndIsReleasedOnce) {  // keeps V10
    const PhysicalMemory physical = PhysicalMemory::create(device, granule).value();
    AddressReservation one = AddressReservation::reserve(device, granule).value();
    AddressReservation other(one.state());
    ASSERT_TRUE(one.release().ok());
    EXPECT_TRUE(refused_with<errors::mapping_into_released_reservation>(other.map(0, physical)));
    EXPECT_TRUE(refused_with<errors::reservation_released_before>(other.release()));
    EXPECT_EQ(memory.reserved, 0) << "given back once";
    EXPECT_EQ(memory.mapped, 0);
    AddressReservation again = AddressReservation::reserve(device, granule).value();
    EXPECT_TRUE(again.map(0, physical).ok());
    EXPECT_TRUE(again.release().ok());
}

// A thread that found the mapping alive may continue after another thread's unmap().
TEST_F(MappingRefusals, WhatWasUnmappedIsNotUnmappedAgainAndLetsNobodyIn) {  // keeps V9, V10
    const PhysicalMemory physical = PhysicalMemory::create(device, granule).value();
    const AddressReservation where = AddressReservation::reserve(device, granule).value();
    const std::shared_ptr<MappingState> mapping = where.state()->map(0, physical.state()).value();
    EXPECT_TRUE(mapping->set_access({device.state()}, RangeAccess::read_write).ok());
    EXPECT_TRUE(mapping->unmap().ok());
    EXPECT_TRUE(refused_with<errors::unmapped_before>(mapping->unmap()));
    const auto let_in = mapping->set_access({device.state()}, RangeAccess::read_write);
    EXPECT_TRUE(refused_with<errors::letting_devices_into_unmapped_memory>(let_in));
    EXPECT_EQ(memory.mapped, 0) << "unmapped once";
    EXPECT_EQ(memory.open, 1);
}

}  // namespace
