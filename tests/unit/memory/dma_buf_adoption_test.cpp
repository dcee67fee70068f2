// SPDX-License-Identifier: Apache-2.0
// Adopted dma-bufs: how a device uses them, and the order of the kernel's cache operations with views, copies and
// launches, against a made-up kernel and a driver that records its calls.
#include "core_errors.hpp"
#include "fake_device.hpp"
#include "made_up_dma_buf.hpp"
#include "memory_errors.hpp"
#include "refused_with.hpp"
#include "rules_errors.hpp"

#include "allocation.hpp"
#include "buffer_state.hpp"

#include <platform/os.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace {

ISTHMUS_KERNEL(increment, isthmus::Index i, isthmus::View<int> data) {
    data[i] += 1;
}

using isthmus::AdoptOptions;
using isthmus::Buffer;
using isthmus::Code;
using isthmus::Device;
using isthmus::DeviceFacts;
using isthmus::LaunchPath;
using isthmus::MemoryKind;
using isthmus::Result;
using isthmus::Use;
using isthmus::testing::discrete_facts;
using isthmus::testing::FakeRuntime;
using isthmus::testing::FakeWorld;
using isthmus::testing::MadeUpDmaBuf;
using isthmus::testing::MadeUpKernel;
using isthmus::testing::refused_with;
using isthmus::testing::with;
namespace errors = isthmus::errors;

constexpr std::size_t count = 1000;
using Names = std::vector<std::string>;

struct DmaBufAdoption : testing::Test {
    FakeWorld world;
    FakeRuntime runtime;
    MadeUpKernel kernel;
    MadeUpDmaBuf frame{3 * 4096};
    std::optional<Device> device;

    void open(const DeviceFacts& facts) {
        std::iota(frame.data<int>(), frame.data<int>() + count, 0);
        device.emplace(runtime.open(world, facts));
        // The cache operations among the driver's calls.
        kernel.inside = [this](const std::string& sync) { world.calls.push_back(sync); };
    }
    Result<Buffer<int>> adopt(AdoptOptions options = {}, std::uint64_t offset = 0, std::size_t elements = count) {
        auto made =
            isthmus::detail::adopt_dma_buf(device->state(), frame.fd(), offset, {elements, sizeof(int), alignof(int)},
                                           std::move(options), MadeUpKernel::calls());
        if (!made) return std::move(made).error();
        return Buffer<int>(std::move(made).value());
    }
    // The recorded calls of these names, in their order.
    Names calls_of(const Names& wanted) const {
        Names found;
        for (const std::string& call : world.calls) {
            for (const std::string& name : wanted) {
                if (call.rfind(name, 0) == 0) found.push_back(name);
            }
        }
        return found;
    }
};

const Names uses = {"start", "end", "launch", "copy up", "copy down"};

// A GPU that reaches registered memory: the launch finds the caches written back.
TEST_F(DmaBufAdoption, RegisteredMemoryIsWrittenBackBeforeALaunchAndReadAgainBehindIt) {  // keeps Y5
    open(discrete_facts());
    int told = 0;
    AdoptOptions options;
    options.release = [&](void* pointer, std::size_t bytes) {
        ++told;
        EXPECT_EQ(static_cast<int*>(pointer)[3], 14) << "still mapped";
        EXPECT_EQ(bytes, count * sizeof(int));
    };
    {
        Buffer<int> buffer = adopt(options).value();
        EXPECT_EQ(buffer.path(), LaunchPath::pass) << buffer.explain();
        EXPECT_EQ(buffer.kind(), MemoryKind::registered);
        EXPECT_TRUE(kernel.syncs.empty()) << "adopting touches nothing";
        world.calls.clear();
        {
            auto view = buffer.read_write_on_host().value();
            EXPECT_EQ(view[3], 3);
            view[3] = 13;
        }
        EXPECT_EQ(frame.data<int>()[3], 13) << "the exporter's own bytes";
        ASSERT_TRUE(device->stream().launch(increment, count, buffer).ok());
        EXPECT_EQ(buffer.read_on_host().value()[3], 14);
        EXPECT_EQ(calls_of(uses), (Names{"start", "end", "launch", "start", "end"}));
        EXPECT_EQ(kernel.syncs, (Names{"start read write", "end read write", "start read", "end read"}));
        EXPECT_EQ(kernel.mapped, 1);
        EXPECT_EQ(told, 0);
    }
    EXPECT_EQ(told, 1);
    EXPECT_EQ(kernel.mapped, 0);
    EXPECT_TRUE(world.registrations.empty());
}

// While a camera has the buffer, a view for writing is open: launches are refused, and find the new frame behind it.
TEST_F(DmaBufAdoption, AWriteViewSpansTheTimeOfTheCamera) {  // keeps Y5
    for (const bool registers : {true, false}) {
        open(with(discrete_facts(), 99, registers ? 1 : 0));
        Buffer<int> buffer = adopt().value();
        EXPECT_EQ(buffer.path(), registers ? LaunchPath::pass : LaunchPath::stage) << buffer.explain();
        world.calls.clear();
        kernel.syncs.clear();
        {
            auto view = buffer.write_on_host().value();
            EXPECT_EQ(kernel.syncs, (Names{"start read write"}));
            EXPECT_EQ(device->stream().launch(increment, count, buffer).code(), Code::in_use);
            frame.data<int>()[5] = 100;  // by the camera
        }
        ASSERT_TRUE(device->stream().launch(increment, count, buffer).ok());
        EXPECT_EQ(buffer.read_on_host().value()[5], 101);
    }
}

// What cannot be registered is copied by the CPU: each copy is a use by the CPU.
TEST_F(DmaBufAdoption, CopiesByTheCpuAreBracketed) {  // keeps Y5
    open(with(discrete_facts(), 99, 0));
    Buffer<int> buffer = adopt().value();
    ASSERT_EQ(buffer.path(), LaunchPath::stage);
    world.calls.clear();
    ASSERT_TRUE(device->stream().launch(increment, count, buffer).ok());
    EXPECT_EQ(kernel.syncs, (Names{"start read", "end read"})) << "the copy to the relay";
    EXPECT_EQ(calls_of(uses), (Names{"start", "end", "copy up", "launch"}));
    kernel.syncs.clear();
    world.calls.clear();
    {
        const auto view = buffer.read_on_host().value();
        EXPECT_EQ(view[7], 8);
        EXPECT_EQ(kernel.syncs, (Names{"start read write", "end read write", "start read"}));
        EXPECT_EQ(calls_of(uses), (Names{"copy down", "start", "end", "start"}));
    }
    EXPECT_EQ(frame.data<int>()[7], 8);
}

TEST_F(DmaBufAdoption, ADeviceThatReachesPageableMemoryUsesItAsItIs) {  // keeps Y5
    open(with(discrete_facts(), 88, 1));
    Buffer<int> buffer = adopt().value();
    EXPECT_EQ(buffer.path(), LaunchPath::pass) << buffer.explain();
    ASSERT_TRUE(device->stream().launch(increment, count, buffer).ok());
    EXPECT_EQ(buffer.read_on_host().value()[9], 10);
    EXPECT_EQ(kernel.syncs, (Names{"start read", "end read"}));
}

TEST_F(DmaBufAdoption, AFailedOperationRefusesTheViewAndLeavesTheContent) {  // keeps Y5
    for (const bool registers : {true, false}) {
        open(with(discrete_facts(), 99, registers ? 1 : 0));
        Buffer<int> buffer = adopt().value();
        kernel.sync_errors = {EIO};
        EXPECT_TRUE(refused_with<errors::dma_buf_not_synchronised>(buffer.read_on_host()));
        EXPECT_EQ(buffer.read_on_host().value()[2], 2) << "nothing stayed open";
        if (!registers) {
            kernel.sync_errors = {EIO};
            EXPECT_EQ(device->stream().launch(increment, count, buffer).code(), Code::system_error);
        }
        ASSERT_TRUE(device->stream().launch(increment, count, buffer).ok());
        kernel.sync_errors = {EIO};
        EXPECT_TRUE(refused_with<errors::dma_buf_not_synchronised>(buffer.write_on_host()));
        EXPECT_EQ(buffer.read_on_host().value()[2], 3) << "what the device wrote is still there";
        (void)buffer.release().value();
    }
}

TEST_F(DmaBufAdoption, TheEndOfAViewThatFailsIsLogged) {  // keeps Y5
    std::vector<std::string> log;
    runtime.config->log = [&](isthmus::Severity, std::string_view text) { log.emplace_back(text); };
    open(discrete_facts());
    Buffer<int> buffer = adopt().value();
    kernel.sync_errors = {0, EIO};
    { (void)buffer.read_on_host().value(); }
    ASSERT_EQ(log.size(), 1u);
    EXPECT_NE(log[0].find("dma-buf"), std::string::npos);
}

TEST_F(DmaBufAdoption, ItIsUsedAsAWholeAndByOneSideAtATime) {  // keeps Y5
    open(discrete_facts());
    Buffer<int> buffer = adopt().value();
    const auto refused = buffer.concurrent_on_host();
    EXPECT_EQ(refused.code(), Code::not_accessible);
    EXPECT_NE(refused.error().message().find("dma-buf"), std::string_view::npos);
    auto first = buffer.part(0, 10).value();
    auto second = buffer.part(10, 10).value();
    {
        const auto view = first.write_on_host().value();
        EXPECT_EQ(second.read_on_host().code(), Code::in_use) << "its caches are synchronised as a whole";
    }
    EXPECT_TRUE(second.read_on_host().ok());
}

TEST_F(DmaBufAdoption, OneForReadingOnlyIsReadByBothSides) {  // keeps Y5
    open(discrete_facts());
    kernel.fail_map_write = EACCES;
    EXPECT_EQ(adopt().code(), Code::not_accessible);
    EXPECT_EQ(kernel.mapped, 0);
    AdoptOptions options;
    options.use = {.host = Use::reads_once, .device = Use::reads_once};
    Buffer<int> buffer = adopt(options).value();
    EXPECT_EQ(buffer.write_on_host().code(), Code::not_accessible);
    EXPECT_EQ(buffer.read_on_host().value()[1], 1);
}

TEST_F(DmaBufAdoption, WhatCannotBeAdoptedIsRefusedAndLeavesNothing) {  // keeps Y5
    open(discrete_facts());
    EXPECT_TRUE(refused_with<errors::adoption_of_no_elements>(adopt({}, 0, 0)));
    EXPECT_TRUE(refused_with<errors::adoption_of_unaligned_pointer>(adopt({}, 2, 10)));
    EXPECT_EQ(adopt({}, 4096 * 3 - 4, 2).error().id(), "O038") << "it leaves the dma-buf";
    EXPECT_EQ(adopt({}, 0, std::size_t{1} << 62).code(), Code::invalid_argument);
    kernel.exports = false;
    EXPECT_EQ(adopt().error().id(), "O037") << "another file";
    EXPECT_TRUE(refused_with<errors::adoption_of_negative_descriptor>(device->adopt_dma_buf<int>(-1, 10)));
    EXPECT_EQ(kernel.mapped, 0);
    EXPECT_TRUE(world.registrations.empty());
    kernel.exports = true;
    frame.data<int>()[1025] = 77;
    Buffer<int> second = adopt({}, 4100, 10).value();  // from inside a page on
    EXPECT_EQ(second.read_on_host().value()[0], 77);
}

// keeps Y5: where the driver imports dma-bufs, the device has its own mapping, and registers nothing.
TEST_F(DmaBufAdoption, ADriverThatImportsItUsesItInPlace) {
    world.imports_dma_bufs = true;
    open(with(discrete_facts(), 99, 0));  // the CPU's mapping could not be registered
    {
        Buffer<int> buffer = adopt({}, 4096, 100).value();
        EXPECT_EQ(buffer.path(), LaunchPath::pass) << buffer.explain();
        EXPECT_EQ(buffer.kind(), MemoryKind::registered);
        EXPECT_EQ(world.imports.size(), 1u);
        EXPECT_TRUE(world.registrations.empty());
        const auto device_mapping = world.mapped.begin()->first;
        EXPECT_EQ(buffer.state()->memory->device_address, device_mapping + 4096);
        EXPECT_NE(buffer.state()->memory->host, reinterpret_cast<void*>(device_mapping + 4096));
        world.calls.clear();
        buffer.write_on_host().value()[7] = 41;
        ASSERT_TRUE(device->stream().launch(increment, 100, buffer).ok());
        EXPECT_EQ(buffer.read_on_host().value()[7], 42) << "the device used the same memory";
        EXPECT_EQ(frame.data<int>()[1024 + 7], 42);
        EXPECT_EQ(calls_of(uses), (Names{"start", "end", "launch", "start", "end"}));
    }
    EXPECT_TRUE(world.imports.empty());
    EXPECT_TRUE(world.mapped.empty());
    EXPECT_EQ(kernel.mapped, 0);
}

// keeps Y5
TEST_F(DmaBufAdoption, WhatTheDriverDoesNotImportIsRegisteredAsBefore) {
    open(discrete_facts());  // no function
    EXPECT_EQ(adopt().value().kind(), MemoryKind::registered);
    world.imports_dma_bufs = true;
    for (const char* const failing : {"import", "map import"}) {
        world.calls.clear();
        world.failing = false;
        world.inside = [&](const std::string& call) { world.failing = world.failing || call == failing; };
        Buffer<int> buffer = adopt().value();
        world.inside = nullptr;
        EXPECT_EQ(buffer.path(), LaunchPath::pass) << buffer.explain();
        EXPECT_EQ(world.registrations.size(), 1u) << failing;
        EXPECT_TRUE(world.imports.empty()) << failing << ": taken back";
    }
    // What could not be taken back is not adopted, and not forgotten.
    int refusals = 0;
    world.inside = [&](const std::string& call) {
        world.failing = world.failing || call == "map import" || (call == "end import" && refusals++ == 0);
    };
    EXPECT_TRUE(refused_with<errors::half_imported_dma_buf>(adopt()));
    world.inside = nullptr;
    EXPECT_TRUE(world.imports.empty()) << "the second try of its end";
}

// keeps Y5
TEST_F(DmaBufAdoption, NothingIsImportedForReadingOnlyOrForACopy) {
    world.imports_dma_bufs = true;
    open(discrete_facts());
    AdoptOptions copies;
    copies.use.kind = MemoryKind::device;
    EXPECT_EQ(adopt(copies).value().path(), LaunchPath::stage);
    AdoptOptions host;
    host.use.kind = MemoryKind::host;
    EXPECT_TRUE(refused_with<errors::adoption_of_dma_buf_as_host_memory>(adopt(host)));
    kernel.fail_map_write = EACCES;
    AdoptOptions reads;
    reads.use = {.host = Use::reads_once, .device = Use::reads_once};
    EXPECT_TRUE(adopt(reads).ok());
    EXPECT_EQ(world.count("import"), 0u);
}

// keeps Y5: a driver's copies of unregistered memory would stand between no cache operations, so the CPU copies.
TEST_F(DmaBufAdoption, WhatIsNotRegisteredIsCopiedByTheCpuBetweenCacheOperations) {
    open(with(with(discrete_facts(), 88, 1), 99, 0));  // the device reaches pageable memory
    Buffer<int> buffer = adopt().value();
    EXPECT_EQ(buffer.path(), LaunchPath::stage) << buffer.explain();
    Buffer<int> other = device->allocate<int>(count).value();
    kernel.syncs.clear();
    world.calls.clear();
    ASSERT_TRUE(device->stream().copy(other, buffer).ok());
    EXPECT_EQ(kernel.syncs, (Names{"start read", "end read"}));
}

}  // namespace
