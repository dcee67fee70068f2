// SPDX-License-Identifier: Apache-2.0
// A library without the component ipc: nothing is shared with other processes.
#include "left_out.hpp"

#include <array>

namespace left_out {
namespace {

template <class T>
testing::AssertionResult refused(const Result<T>& answer) {
    return refused_without("ipc", answer);
}

TEST(IpcLeftOut, NothingIsMade) {
    conformance::on_every_device([](Device& device) {
        EXPECT_TRUE(refused(ExportableBuffer<std::int32_t>::create(device, 16)));
        EXPECT_TRUE(refused(ExportableBuffer<std::int32_t>::create(device, 0)));
        EXPECT_TRUE(refused(SharedFrameRing<std::int32_t>::create(device, 16)));
        EXPECT_TRUE(refused(SharedFrameReader<std::int32_t>::open(device, SharedRingDescriptor({}, {}))));
        EXPECT_TRUE(refused(probe_export(device, ExportKinds::none)));
    });
}

TEST(IpcLeftOut, WhatOthersSentIsRefused) {
    EXPECT_TRUE(refused(SharedMemoryDescriptor::received({}, {})));
    EXPECT_TRUE(refused(SharedEventDescriptor::received({})));
    EXPECT_TRUE(refused(SharedRingDescriptor::received({}, {})));
}

TEST(IpcLeftOut, NothingIsExported) {
    conformance::on_every_device([](Device& device, Stream stream) {
        auto buffer = conformance::pinned(device, 64, 1);
        EXPECT_TRUE(refused(export_memory(buffer)));
        EXPECT_TRUE(refused(flush_shared(buffer)));
        EXPECT_TRUE(refused(invalidate_shared(buffer)));
        const ExportableBuffer<std::int32_t> exportable;
        EXPECT_TRUE(refused(exportable.export_memory()));
        EXPECT_TRUE(refused(exportable.export_dma_buf()));
        EXPECT_TRUE(refused(export_dma_buf(buffer)));
        EXPECT_EQ(exportable.share_method(), ShareMethod::none);
        EXPECT_TRUE(refused(export_event(stream.record().value())));
        conformance::expect_all(buffer, 1);
    });
}

}  // namespace
}  // namespace left_out
