// SPDX-License-Identifier: Apache-2.0
// The pools facet: which driver calls it makes, and with which arguments.
#include "cuda_calls.hpp"

namespace isthmus::platform::cuda {
namespace {

using CudaPoolCalls = CudaCalls;

TEST_F(CudaPoolCalls, APoolIsMadeOnItsDeviceWithTheLimitsThatWereAsked) {
    make_stream();
    PoolHandle pool{};
    ASSERT_TRUE(device().pools()->create({MemoryKind::pool, 4096, 1 << 20}, pool).ok());
    EXPECT_STREQ(fake().calls(),
                 "cuCtxPushCurrent_v2 cuCtxGetId cuMemPoolCreate cuCtxPopCurrent_v2 cuMemPoolSetAttribute ");
    EXPECT_NE(pool, PoolHandle::none);
    const FakeSeen& seen = *fake().seen();
    EXPECT_EQ(seen.pool_properties.allocType, allocation_type::pinned);
    EXPECT_EQ(seen.pool_properties.location.type, location_type::device);
    EXPECT_EQ(seen.pool_properties.location.id, 0);
    EXPECT_EQ(seen.pool_properties.handleTypes, handle_type::none);
    EXPECT_EQ(seen.pool_properties.maxSize, std::size_t{1} << 20);
    EXPECT_EQ(seen.attribute, mempool_attribute::release_threshold);
    EXPECT_EQ(seen.attribute_value, 4096u);
}

TEST_F(CudaPoolCalls, APoolWhoseThresholdCannotBeSetIsNotKept) {
    PoolHandle pool{};
    fake().fail("cuMemPoolSetAttribute", 1);
    EXPECT_EQ(device().pools()->create({MemoryKind::pool, 4096, 0}, pool).code, Code::invalid_argument);
    EXPECT_EQ(pool, PoolHandle::none);
    EXPECT_NE(std::string(fake().calls()).find("cuMemPoolDestroy"), std::string::npos);
}

// keeps K13: managed pools exist from CUDA 13.0 on; their memory is the CPU's, too
TEST_F(CudaPoolCalls, AManagedPoolGivesMemoryWithAHostAddress) {
    const StreamHandle stream = make_stream();
    PoolHandle managed{}, plain{};
    ASSERT_TRUE(device().pools()->create({MemoryKind::managed_pool, 0, 0}, managed).ok());
    EXPECT_EQ(fake().seen()->pool_properties.allocType, allocation_type::managed);
    ASSERT_TRUE(device().pools()->create({MemoryKind::pool, 0, 0}, plain).ok());
    fake().clear();
    Allocation one, other;
    ASSERT_TRUE(device().pools()->allocate(managed, 64, stream, one).ok());
    EXPECT_STREQ(fake().calls(), "cuMemAllocFromPoolAsync ");
    EXPECT_EQ(one.kind, MemoryKind::managed_pool);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.host), one.device);
    ASSERT_TRUE(device().pools()->allocate(plain, 64, stream, other).ok());
    EXPECT_EQ(other.kind, MemoryKind::pool);
    EXPECT_EQ(other.host, nullptr);
    EXPECT_NE(other.device, one.device);
    fake().clear();
    EXPECT_TRUE(memory().release(one, stream).ok());
    EXPECT_TRUE(memory().release(other, stream).ok());
    EXPECT_STREQ(fake().calls(), "cuMemFreeAsync cuMemFreeAsync ");
    // The driver gets its own handle back.
    EXPECT_TRUE(device().pools()->destroy(managed).ok());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(fake().seen()->pool) % 16, 0u);
}

// keeps K7
TEST_F(CudaPoolCalls, WhatAnOlderDriverDoesNotHaveIsRefusedWithoutACall) {
    open("cuda_12_0");
    PoolHandle pool{};
    EXPECT_EQ(device().pools()->create({MemoryKind::managed_pool, 0, 0}, pool).code, Code::unsupported);
    EXPECT_EQ(device().pools()->create({MemoryKind::pool, 0, 1 << 20}, pool).code, Code::unsupported);  // maxSize: 12.2
    EXPECT_EQ(device().pools()->create({MemoryKind::device, 0, 0}, pool).code, Code::unsupported);
    EXPECT_STREQ(fake().calls(), "");
    EXPECT_TRUE(device().pools()->create({MemoryKind::pool, 0, 0}, pool).ok());
}

TEST_F(CudaPoolCalls, ADriverWithoutPoolFunctionsHasNoSuchFacet) {
    EXPECT_NE(device().pools(), nullptr);
    open("lacks_pools");
    EXPECT_EQ(device().pools(), nullptr);
    EXPECT_NE(device().transfers(), nullptr);
    EXPECT_NE(device().captures(), nullptr);
}

TEST_F(CudaPoolCalls, UsageMarksThresholdTrimAndAccessAreOneCallForEachValue) {
    Pools& pools = *device().pools();
    PoolHandle pool{};
    ASSERT_TRUE(pools.create({}, pool).ok());
    fake().clear();
    PoolUsage usage;
    EXPECT_TRUE(pools.usage(pool, usage).ok());
    EXPECT_EQ(usage.reserved_bytes, 1005u);
    EXPECT_EQ(usage.reserved_high_bytes, 1006u);
    EXPECT_EQ(usage.used_bytes, 1007u);
    EXPECT_EQ(usage.used_high_bytes, 1008u);
    EXPECT_TRUE(pools.reset_high_marks(pool).ok());
    EXPECT_EQ(fake().seen()->attribute, mempool_attribute::used_mem_high);
    EXPECT_EQ(fake().seen()->attribute_value, 0u);
    EXPECT_TRUE(pools.set_release_threshold(pool, 77).ok());
    EXPECT_EQ(fake().seen()->attribute_value, 77u);
    EXPECT_TRUE(pools.trim(pool, 5).ok());
    EXPECT_STREQ(fake().calls(),
                 "cuMemPoolGetAttribute cuMemPoolGetAttribute cuMemPoolGetAttribute cuMemPoolGetAttribute "
                 "cuMemPoolSetAttribute cuMemPoolSetAttribute cuMemPoolSetAttribute cuMemPoolTrimTo ");
}

// keeps A5: pool access is given per device, and taken back
TEST_F(CudaPoolCalls, AccessIsGivenToADeviceOfThisRuntimeOnly) {
    Pools& pools = *device().pools();
    PoolHandle pool{};
    ASSERT_TRUE(pools.create({}, pool).ok());
    EXPECT_TRUE(pools.set_access(pool, 1, true).ok());
    EXPECT_EQ(fake().seen()->access.location.id, 1);
    EXPECT_EQ(fake().seen()->access.flags, access_read_write);
    EXPECT_TRUE(pools.set_access(pool, 1, false).ok());
    EXPECT_EQ(fake().seen()->access.flags, access_none);
    fake().clear();
    for (const int ordinal : {-1, 2}) {
        const Status refused = pools.set_access(pool, ordinal, true);
        EXPECT_EQ(refused.code, Code::wrong_device);
        EXPECT_NE(device().explain(refused, "sharing a pool").remedy().find("device"), std::string_view::npos);
    }
    EXPECT_STREQ(fake().calls(), "");
}

// keeps K19: what the driver says of exhaustion arrives as it is
TEST_F(CudaPoolCalls, AFailedAllocationLeavesNothing) {
    const StreamHandle stream = make_stream();
    PoolHandle pool{};
    ASSERT_TRUE(device().pools()->create({}, pool).ok());
    Allocation allocation;
    fake().fail("cuMemAllocFromPoolAsync", 2);
    EXPECT_EQ(device().pools()->allocate(pool, 64, stream, allocation).code, Code::out_of_memory);
    EXPECT_EQ(allocation.device, 0u);
}

}  // namespace
}  // namespace isthmus::platform::cuda
