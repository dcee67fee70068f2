// SPDX-License-Identifier: Apache-2.0
// The transfers facet: which driver calls it makes, and with which arguments.
#include "cuda_calls.hpp"

namespace isthmus::platform::cuda {
namespace {

class CudaTransferCalls : public CudaCalls {
protected:
    void SetUp() override {
        CudaCalls::SetUp();
        stream = make_stream();
    }
    Transfers& transfers() { return *device().transfers(); }
    StreamHandle stream{};
};

// keeps K22: any strides; one driver call
TEST_F(CudaTransferCalls, OneSliceIsATwoDimensionalCopyAndMoreAreThreeDimensional) {
    const CopySide host{0x5000, true, 100, 7};
    const CopySide gpu{0x9000, false, 128, 9};
    EXPECT_TRUE(transfers().copy_shaped(gpu, host, {90, 5, 1}, stream).ok());
    const CUDA_MEMCPY2D& flat = fake().seen()->copy_2d;
    EXPECT_EQ(flat.srcMemoryType, memory_type_host);
    EXPECT_EQ(flat.srcHost, reinterpret_cast<void*>(0x5000));
    EXPECT_EQ(flat.srcPitch, 100u);
    EXPECT_EQ(flat.dstMemoryType, memory_type_device);
    EXPECT_EQ(flat.dstDevice, 0x9000u);
    EXPECT_EQ(flat.dstPitch, 128u);
    EXPECT_EQ(flat.WidthInBytes, 90u);
    EXPECT_EQ(flat.Height, 5u);
    EXPECT_TRUE(transfers().copy_shaped(host, gpu, {90, 5, 3}, stream).ok());
    const CUDA_MEMCPY3D& deep = fake().seen()->copy_3d;
    EXPECT_EQ(deep.srcMemoryType, memory_type_device);
    EXPECT_EQ(deep.srcDevice, 0x9000u);
    EXPECT_EQ(deep.srcHeight, 9u);
    EXPECT_EQ(deep.dstMemoryType, memory_type_host);
    EXPECT_EQ(deep.dstHost, reinterpret_cast<void*>(0x5000));
    EXPECT_EQ(deep.dstHeight, 7u);
    EXPECT_EQ(deep.Depth, 3u);
    EXPECT_STREQ(fake().calls(), "cuMemcpy2DAsync_v2 cuMemcpy3DAsync_v2 ");
}

// keeps K22: between devices the driver needs the context of each, retained for it
TEST_F(CudaTransferCalls, CopiesBetweenDevicesNameTheirContexts) {
    EXPECT_TRUE(transfers().copy_between(0x100, 1, 0x200, 0, 64, stream).ok());
    EXPECT_EQ(fake().seen()->contexts[0], reinterpret_cast<CUcontext>(0xC1));
    EXPECT_EQ(fake().seen()->contexts[1], reinterpret_cast<CUcontext>(0xC0));
    EXPECT_STREQ(fake().calls(), "cuDevicePrimaryCtxRetain cuCtxGetId cuMemcpyPeerAsync ");
    fake().clear();
    EXPECT_TRUE(
        transfers().copy_shaped_between({0x100, false, 64, 4}, 0, {0x200, false, 32, 3}, 1, {16, 3, 2}, stream).ok());
    const CUDA_MEMCPY3D_PEER& copy = fake().seen()->copy_3d_peer;
    EXPECT_EQ(copy.dstContext, reinterpret_cast<CUcontext>(0xC0));
    EXPECT_EQ(copy.srcContext, reinterpret_cast<CUcontext>(0xC1));
    EXPECT_EQ(copy.dstPitch, 64u);
    EXPECT_EQ(copy.srcHeight, 3u);
    EXPECT_EQ(copy.Depth, 2u);
    EXPECT_STREQ(fake().calls(), "cuMemcpy3DPeerAsync ");
    fake().clear();
    EXPECT_EQ(transfers().copy_between(0x100, 2, 0x200, 0, 64, stream).code, Code::wrong_device);
    EXPECT_EQ(transfers().copy_between(0x100, 0, 0x200, -1, 64, stream).code, Code::wrong_device);
    EXPECT_STREQ(fake().calls(), "");
}

TEST_F(CudaTransferCalls, FillsAreByTheSizeOfTheElement) {
    for (const std::size_t bytes : {1u, 2u, 4u}) {
        EXPECT_TRUE(transfers().fill_elements(0x100, 7, bytes, 8, stream).ok());
        EXPECT_TRUE(transfers().fill_shaped({0x100, false, 64, 2}, 7, bytes, {16, 2, 1}, stream).ok());
    }
    EXPECT_STREQ(fake().calls(),
                 "cuMemsetD8Async cuMemsetD2D8Async cuMemsetD16Async cuMemsetD2D16Async "
                 "cuMemsetD32Async cuMemsetD2D32Async ");
    fake().clear();
    for (const std::size_t bytes : {0u, 3u, 8u}) {
        const Status refused = transfers().fill_elements(0x100, 7, bytes, 8, stream);
        EXPECT_EQ(refused.code, Code::invalid_argument);
        EXPECT_NE(device().explain(refused, "filling").message().find("1, 2 or 4"), std::string_view::npos);
        EXPECT_EQ(transfers().fill_shaped({0x100, false, 64, 2}, 7, bytes, {16, 2, 1}, stream).code,
                  Code::invalid_argument);
    }
    EXPECT_STREQ(fake().calls(), "");
}

TEST_F(CudaTransferCalls, SlicesWithoutAGapAreFilledInOneCallAndOthersInOneEach) {
    EXPECT_TRUE(transfers().fill_shaped({0x1000, false, 64, 4}, 9, 2, {32, 4, 3}, stream).ok());
    EXPECT_STREQ(fake().calls(), "cuMemsetD2D16Async ");
    EXPECT_EQ(fake().seen()->fill.width, 16u);  // in elements
    EXPECT_EQ(fake().seen()->fill.rows, 12u);
    EXPECT_EQ(fake().seen()->fill.pitch, 64u);
    fake().clear();
    EXPECT_TRUE(transfers().fill_shaped({0x1000, false, 64, 5}, 9, 2, {32, 4, 3}, stream).ok());
    EXPECT_STREQ(fake().calls(), "cuMemsetD2D16Async cuMemsetD2D16Async cuMemsetD2D16Async ");
    EXPECT_EQ(fake().seen()->fill.first, 0x1000u + 2 * 5 * 64);
    EXPECT_EQ(fake().seen()->fill.rows, 4u);
    fake().fail("cuMemsetD2D16Async", 2);
    fake().clear();
    EXPECT_FALSE(transfers().fill_shaped({0x1000, false, 64, 5}, 9, 2, {32, 4, 3}, stream).ok());
    EXPECT_STREQ(fake().calls(), "cuMemsetD2D16Async ");
}

// keeps K21
TEST_F(CudaTransferCalls, HintsNameTheirPlaceInTheWordsOfTheDriver) {
    EXPECT_TRUE(transfers().prefetch(0x100, 64, {1, -1}, stream).ok());
    EXPECT_EQ(fake().seen()->location.type, location_type::device);
    EXPECT_EQ(fake().seen()->location.id, 1);
    EXPECT_TRUE(transfers().prefetch(0x100, 64, {-1, 3}, stream).ok());
    EXPECT_EQ(fake().seen()->location.type, location_type::host_numa);
    EXPECT_EQ(fake().seen()->location.id, 3);
    EXPECT_TRUE(transfers().prefetch(0x100, 64, {}, stream).ok());
    EXPECT_EQ(fake().seen()->location.type, location_type::host);
    EXPECT_STREQ(fake().calls(), "cuMemPrefetchAsync_v2 cuMemPrefetchAsync_v2 cuMemPrefetchAsync_v2 ");
    const std::pair<Advice, int> words[] = {{Advice::read_mostly, 1}, {Advice::not_read_mostly, 2},
                                            {Advice::prefer, 3},      {Advice::no_preference, 4},
                                            {Advice::accessed_by, 5}, {Advice::not_accessed_by, 6}};
    for (const auto& [advice, number] : words) {
        fake().clear();
        EXPECT_TRUE(transfers().advise(0x100, 64, advice, {0, -1}).ok());
        EXPECT_EQ(fake().seen()->advice, number);
        EXPECT_STREQ(fake().calls(), "cuCtxPushCurrent_v2 cuCtxGetId cuMemAdvise_v2 cuCtxPopCurrent_v2 ");
    }
}

// keeps K21: the older variants know devices and the host as a whole
TEST_F(CudaTransferCalls, ADriverBeforeTwelveTwoIsGivenHintsInItsOwnWords) {
    open("cuda_12_0");
    stream = make_stream();
    EXPECT_TRUE(transfers().prefetch(0x100, 64, {1, -1}, stream).ok());
    EXPECT_EQ(fake().seen()->device, 1);
    EXPECT_TRUE(transfers().prefetch(0x100, 64, {-1, 3}, stream).ok());
    EXPECT_EQ(fake().seen()->device, device_cpu);
    EXPECT_STREQ(fake().calls(), "cuMemPrefetchAsync cuMemPrefetchAsync ");
    EXPECT_TRUE(transfers().advise(0x100, 64, Advice::prefer, {}).ok());
    EXPECT_NE(std::string(fake().calls()).find("cuMemAdvise "), std::string::npos);
    EXPECT_EQ(fake().seen()->advice, 3);
    EXPECT_EQ(fake().seen()->device, device_cpu);
}

// keeps K21: one call for a batch; a run of ranges with one place has one entry
TEST_F(CudaTransferCalls, ABatchOfHintsIsOneCall) {
    const HintedRange ranges[] = {{0x100, 64, {1, -1}}, {0x200, 32, {1, -1}}, {0x300, 16, {-1, 3}}};
    EXPECT_TRUE(transfers().prefetch_batch(ranges, 3, stream).ok());
    const auto& batch = fake().seen()->batch;
    EXPECT_EQ(batch.count, 3u);
    EXPECT_EQ(batch.addresses[2], 0x300u);
    EXPECT_EQ(batch.sizes[1], 32u);
    EXPECT_EQ(batch.place_count, 2u);
    EXPECT_EQ(batch.first_of[1], 2u);
    EXPECT_EQ(batch.places[0].type, location_type::device);
    EXPECT_EQ(batch.places[1].type, location_type::host_numa);
    EXPECT_EQ(batch.places[1].id, 3);
    EXPECT_TRUE(transfers().discard_batch(ranges, 2, true, stream).ok());
    EXPECT_EQ(batch.place_count, 1u);
    EXPECT_TRUE(transfers().discard_batch(ranges, 2, false, stream).ok());
    EXPECT_EQ(batch.count, 2u);
    EXPECT_EQ(batch.place_count, 0u);
    EXPECT_STREQ(fake().calls(), "cuMemPrefetchBatchAsync cuMemDiscardAndPrefetchBatchAsync cuMemDiscardBatchAsync ");
}

// keeps K21: advice in the words that this driver has
TEST_F(CudaTransferCalls, AdviceIsToldWithTheNodeWhereTheDriverKnowsNodes) {
    const auto asked = [&](std::size_t attributes, const Place& preferred) {
        AdviceFacts facts;
        EXPECT_TRUE(drivers_[1]->transfers()->advice(0x100, 64, facts).ok());
        EXPECT_STREQ(fake().calls(), "cuMemRangeGetAttributes ");
        EXPECT_EQ(fake().seen()->attributes, attributes);
        EXPECT_TRUE(facts.read_mostly);
        EXPECT_TRUE(facts.accessed);
        ASSERT_TRUE(facts.preferred && facts.prefetched);
        EXPECT_EQ(facts.preferred->ordinal, preferred.ordinal);
        EXPECT_EQ(facts.preferred->host_node, preferred.host_node);
        EXPECT_EQ(facts.prefetched->ordinal, 1);
        facts = {};
        EXPECT_TRUE(transfers().advice(0x100, 64, facts).ok());
        EXPECT_FALSE(facts.accessed) << "the second device has that advice";
    };
    asked(8, {-1, 3});
    open("cuda_12_0");
    asked(4, {});
    stream = make_stream();
    const HintedRange range{0x100, 64, {}};
    EXPECT_EQ(transfers().prefetch_batch(&range, 1, stream).code, Code::unsupported);
    EXPECT_EQ(transfers().discard_batch(&range, 1, false, stream).code, Code::unsupported);
    EXPECT_EQ(transfers().discard_batch(&range, 1, true, stream).code, Code::unsupported);
    EXPECT_STREQ(fake().calls(), "");
}

// keeps A15: access is directional
TEST_F(CudaTransferCalls, ReachingAnotherDeviceIsAskedPerDirection) {
    bool reach = false;
    EXPECT_TRUE(transfers().can_reach(1, reach).ok());
    EXPECT_TRUE(reach);
    EXPECT_TRUE(drivers_[1]->transfers()->can_reach(0, reach).ok());
    EXPECT_FALSE(reach);
    EXPECT_STREQ(fake().calls(), "cuDeviceCanAccessPeer cuDeviceCanAccessPeer ");
    EXPECT_EQ(transfers().can_reach(7, reach).code, Code::wrong_device);
}

// keeps A4
TEST_F(CudaTransferCalls, PeerAccessIsSwitchedInThisDevicesContextAndTwiceIsNoError) {
    EXPECT_TRUE(transfers().set_peer_access(1, true).ok());
    EXPECT_STREQ(fake().calls(),
                 "cuDevicePrimaryCtxRetain cuCtxGetId cuCtxPushCurrent_v2 cuCtxGetId "
                 "cuCtxEnablePeerAccess cuCtxPopCurrent_v2 ");
    EXPECT_EQ(fake().seen()->contexts[0], reinterpret_cast<CUcontext>(0xC1));
    fake().fail("cuCtxEnablePeerAccess", 704);
    EXPECT_TRUE(transfers().set_peer_access(1, true).ok());
    fake().fail("cuCtxDisablePeerAccess", 705);
    EXPECT_TRUE(transfers().set_peer_access(1, false).ok());
    fake().fail("cuCtxEnablePeerAccess", 705);  // not "already enabled", which is 704
    EXPECT_FALSE(transfers().set_peer_access(1, true).ok());
    fake().fail("cuCtxEnablePeerAccess", 217);
    const Status refused = transfers().set_peer_access(1, true);
    EXPECT_EQ(refused.code, Code::unsupported);
    EXPECT_NE(device().explain(refused, "giving access").remedy().find("copy"), std::string_view::npos);
    EXPECT_EQ(transfers().set_peer_access(2, true).code, Code::wrong_device);
    EXPECT_EQ(fake().current(), nullptr);
}

}  // namespace
}  // namespace isthmus::platform::cuda
