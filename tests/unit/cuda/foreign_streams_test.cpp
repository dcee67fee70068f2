// SPDX-License-Identifier: Apache-2.0
// Streams that other code made, default streams, host functions, and synchronizing a whole context.
#include "cuda_calls.hpp"

#include "abi.hpp"

namespace isthmus::platform::cuda {
namespace {

using ForeignStreams = CudaCalls;
const std::string entered = "cuCtxPushCurrent_v2 cuCtxGetId ";
const std::string left = "cuCtxPopCurrent_v2 ";

TEST_F(ForeignStreams, OneOfThePrimaryContextIsKnownByTheDriversId) {  // keeps S17
    (void)make_stream();                                               // retains the context
    ForeignStream stream;
    EXPECT_TRUE(execution().foreign_stream(reinterpret_cast<void*>(0x70), stream).ok());
    EXPECT_EQ(stream.handle, static_cast<StreamHandle>(0x70));
    EXPECT_EQ(stream.id, 0x70u + 1000);
    EXPECT_EQ(fake().calls(), entered + "cuStreamGetCtx " + left + entered + "cuStreamGetId " + left);
    EXPECT_EQ(execution().native_stream(stream.handle), reinterpret_cast<void*>(0x70));
    execution().forget_foreign_stream();
}

TEST_F(ForeignStreams, ThoseOfOtherContextsAndThePerThreadOneAreRefused) {  // keeps S18
    (void)make_stream();
    ForeignStream stream;
    EXPECT_EQ(execution().foreign_stream(reinterpret_cast<void*>(0xF0000), stream).code, Code::wrong_device);
    fake().clear();
    EXPECT_EQ(execution().foreign_stream(reinterpret_cast<void*>(2), stream).code, Code::unsupported);
    EXPECT_STREQ(fake().calls(), "");
    EXPECT_EQ(stream.handle, StreamHandle::none);
}

// Handle 1 means the current context's default stream, as handle 0 does.
TEST_F(ForeignStreams, TheLegacyOneIsTheDevicesOwnWhateverIsCurrent) {  // keeps S5
    (void)make_stream();
    ForeignStream legacy;
    EXPECT_TRUE(execution().foreign_stream(nullptr, legacy).ok());
    EXPECT_EQ(legacy.handle, static_cast<StreamHandle>(1));
    fake().clear();
    EXPECT_TRUE(memory().fill(64, 0, 8, legacy.handle).ok());
    EXPECT_TRUE(execution().query_stream(legacy.handle).ok());
    // Other code may begin a capture on it: the thread's capture mode is relaxed around each call.
    const std::string mode = "cuThreadExchangeStreamCaptureMode ";
    EXPECT_EQ(fake().calls(),
              mode + entered + "cuMemsetD8Async " + left + mode + mode + entered + "cuStreamQuery " + left + mode);
    execution().forget_foreign_stream();
    fake().clear();
    EXPECT_TRUE(execution().query_stream(legacy.handle).ok());
    EXPECT_EQ(fake().calls(), entered + "cuStreamQuery " + left);
}

TEST_F(ForeignStreams, PrioritiesAndHostFunctionsAreOneCall) {  // keeps S13, S20
    const StreamHandle stream = make_stream();
    int priority = 0;
    EXPECT_TRUE(execution().stream_priority(stream, priority).ok());
    EXPECT_EQ(priority, -1);
    EXPECT_TRUE(execution()
                    .call_on_host(
                        stream, [](void*) {}, nullptr)
                    .ok());
    EXPECT_STREQ(fake().calls(), "cuStreamGetPriority cuLaunchHostFunc ");
}

TEST_F(ForeignStreams, AnUnusedContextIsNotMadeToBeAsked) {  // keeps S9
    bool in_use = true;
    EXPECT_TRUE(execution().context_in_use(in_use).ok());
    EXPECT_FALSE(in_use);
    EXPECT_STREQ(fake().calls(), "cuDevicePrimaryCtxGetState ");
    (void)make_stream();
    EXPECT_TRUE(execution().context_in_use(in_use).ok());
    EXPECT_TRUE(in_use);
}

// keeps S19: both calls would end it, from whichever thread and in whatever mode
TEST_F(ForeignStreams, AWholeContextIsLeftAloneWhileACaptureIsOpen) {
    const StreamHandle stream = make_stream();
    EventHandle event{};
    ASSERT_TRUE(execution().create_event(EventKind::plain, event).ok());
    ASSERT_TRUE(device().captures()->begin(stream).ok());
    fake().clear();
    EXPECT_EQ(execution().record_context(event).code, Code::capture_error);
    EXPECT_EQ(execution().synchronize_context().code, Code::capture_error);
    EXPECT_STREQ(fake().calls(), "");
    GraphHandle graph{};
    ASSERT_TRUE(device().captures()->end(stream, graph).ok());
    fake().clear();
    EXPECT_TRUE(execution().record_context(event).ok());
    EXPECT_TRUE(execution().synchronize_context().ok());
    EXPECT_EQ(fake().calls(), entered + "cuCtxRecordEvent " + left + entered + "cuCtxSynchronize " + left);
}

TEST_F(ForeignStreams, ADriverWithoutContextEventsSaysSo) {  // keeps S9
    open("lacks_context_event");
    const StreamHandle stream = make_stream();
    EXPECT_NE(stream, StreamHandle::none);
    EXPECT_EQ(execution().record_context(EventHandle::none).code, Code::unsupported);
    EXPECT_STREQ(fake().calls(), "");
}

}  // namespace
}  // namespace isthmus::platform::cuda
