// SPDX-License-Identifier: Apache-2.0
// How an import reports the driver's answers, and what its error says of the handle.
#include "fake_device.hpp"
#include "ipc_errors.hpp"
#include "memory_errors.hpp"
#include "refused_handle.hpp"
#include "refused_with.hpp"
#include "shared_memory_bytes.hpp"

#include <isthmus/ipc/shared_memory.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace {

using namespace isthmus;

Error answered(Code code, int driver_code) {
    return Error(code, "the driver's words", "the driver's remedy").from_call("cuImport", driver_code);
}

Error refused(const Error& why) {
    return detail::refused_handle<errors::imported_event_of_this_process, errors::imported_event_unknown>(why);
}

// keeps R1
TEST(RefusedHandle, AHandleThatTheDriverDoesNotKnowIsAWrongArgument) {
    for (const Error& why :
         {answered(Code::driver_error, 999), answered(Code::driver_error, 205), answered(Code::invalid_argument, 1),
          answered(Code::invalid_handle, 400), answered(Code::invalid_handle, 201)}) {
        const bool own = why.driver_code() == 201;
        const Error told = refused(why);
        EXPECT_EQ(told.code(), Code::invalid_argument) << why.driver_code();
        EXPECT_EQ(told.id(), own ? "I017" : "I018") << why.driver_code();
        EXPECT_NE(told.message().find("(the driver's words)"), std::string::npos) << told.message();
        EXPECT_EQ(told.driver_code(), why.driver_code());
    }
}

// keeps R1, R2
TEST(RefusedHandle, WhatHasAnotherCauseIsPassedOn) {
    for (const Error& why :
         {answered(Code::device_lost, 700), answered(Code::unsupported, 801), answered(Code::out_of_memory, 2),
          answered(Code::system_limit, 304), answered(Code::not_permitted, 800), answered(Code::capture_error, 900)}) {
        const Error told = refused(why);
        EXPECT_EQ(told.code(), why.code());
        EXPECT_EQ(told.message(), "the driver's words");
        EXPECT_EQ(told.remedy(), "the driver's remedy");
    }
}

// A GPU whose driver has legacy IPC handles only. What it opens is memory of the test.
struct OlderHandles : ::testing::Test {
    static constexpr std::uint64_t bytes = rules::legacy_granularity_bytes;
    isthmus::testing::FakeWorld world;
    isthmus::testing::FakeRuntime runtime;
    Device device{runtime.open(world)};
    platform::PointerFacts told{MemoryKind::device, 0, address, bytes};
    int opened = 0;

    void SetUp() override {
        world.open_shared = [this](platform::Allocation& out) {
            out = {MemoryKind::imported, nullptr, address, 0};
            ++opened;
            return platform::Status{};
        };
        world.foreign = [this](std::uint64_t, platform::PointerFacts& out) { out = told; };
    }
    Result<Buffer<std::int32_t>> import() {
        const auto facts =
            rules::make_shared_memory(ShareMethod::legacy_ipc, 64, sizeof(std::int32_t), bytes, device.facts().uuid)
                .value();
        const auto sent = rules::encode_shared_memory(facts, {1});
        return import_memory<std::int32_t>(device,
                                           SharedMemoryDescriptor::received({sent.begin(), sent.end()}, {}).value());
    }
    void refuse_to_open(Code code, int driver_code) {
        world.open_shared = [=](platform::Allocation&) { return platform::Status{code, driver_code, "open_shared"}; };
    }
    std::size_t closed() const { return world.count("release imported"); }
    static constexpr std::uint64_t address = std::uint64_t{1} << 40;
};

// keeps I1, R1
TEST_F(OlderHandles, OneThatTheDriverDoesNotOpenIsNamedByItsCause) {
    refuse_to_open(Code::invalid_handle, 201);
    EXPECT_TRUE(isthmus::testing::refused_with<errors::imported_memory_of_this_process>(import()));
    refuse_to_open(Code::invalid_argument, 1);
    EXPECT_TRUE(isthmus::testing::refused_with<errors::imported_memory_unknown>(import()));
    EXPECT_EQ(closed(), 0u) << "nothing was opened";
    SetUp();
    EXPECT_TRUE(import().ok());
}

// keeps I1, I6
TEST_F(OlderHandles, OneForOtherMemoryIsRefusedAndClosed) {
    const platform::PointerFacts right = told;
    for (const int wrong : {0, 1, 2}) {
        told = right;
        if (wrong == 0) told.bytes = 2 * bytes;
        if (wrong == 1) told.ordinal = 1;
        if (wrong == 2) told.base = address - bytes;
        EXPECT_TRUE(isthmus::testing::refused_with<errors::imported_handle_for_other_memory>(import())) << wrong;
    }
    EXPECT_EQ(closed(), 3u);
    told = right;
    EXPECT_TRUE(import().ok());
}

// keeps I1, I6: the driver opens the same memory at one address, which is one buffer
TEST_F(OlderHandles, OneThatIsHeldAlreadyIsRefusedAndClosedAsOftenAsItWasOpened) {
    {
        const Buffer<std::int32_t> taken = import().value();
        EXPECT_TRUE(isthmus::testing::refused_with<errors::memory_imported_twice>(import()));
        EXPECT_EQ(opened, 2);
        EXPECT_EQ(closed(), 1u);
        EXPECT_EQ(taken.size(), 16u);
    }
    EXPECT_EQ(closed(), 2u);
    EXPECT_TRUE(import().ok()) << "whoever let go may take it in again";
}

// keeps I1: by the error that other calls give
TEST(SharedMemory, AnEmptyBufferHasNothingToFlush) {
    Buffer<std::int32_t> none;
    using isthmus::testing::refused_with;
    EXPECT_TRUE(refused_with<errors::call_on_empty_buffer>(flush_shared(none)));
    EXPECT_TRUE(refused_with<errors::call_on_empty_buffer>(invalidate_shared(none)));
}

// keeps I1: an integrated GPU without virtual memory
TEST(DeviceMemoryForOthers, IsRefusedWhereTheDriverHasNoHandleForIt) {
    isthmus::testing::FakeWorld world;
    isthmus::testing::FakeRuntime runtime;
    Device device{runtime.open(world, isthmus::testing::with(isthmus::testing::discrete_facts(), 18, 1))};
    using Numbers = ExportableBuffer<std::int32_t>;
    EXPECT_TRUE(isthmus::testing::refused_with<errors::no_way_to_other_gpus>(Numbers::create(device, 16)));
    EXPECT_TRUE(world.memory.empty());
    EXPECT_TRUE(Numbers::create(device, 16, {.seen_by = SeenBy::cpus_and_gpus}).ok()) << "as the remedy says";
}

}  // namespace
