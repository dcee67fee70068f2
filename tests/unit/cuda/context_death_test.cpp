// SPDX-License-Identifier: Apache-2.0
// Other code destroys the primary context: what the backend reports, what it leaves alone, what it frees.
#include "cuda_calls.hpp"

namespace isthmus::platform::cuda {
namespace {

class ContextDeath : public CudaCalls {
protected:
    void SetUp() override {
        CudaCalls::SetUp();
        stream = make_stream();
    }
    std::string calls() {
        std::string made = fake().calls();
        fake().clear();
        return made;
    }
    StreamHandle stream{};
};

void expect_lost(const Status& status) {
    EXPECT_EQ(status.code, Code::device_lost) << status.call;
    EXPECT_EQ(status.driver_code, 709) << status.call;
}

TEST_F(ContextDeath, IsAskedInOneCallAndInNoneBeforeTheFirstUse) {
    EXPECT_FALSE(drivers_[1]->context_died());
    EXPECT_EQ(calls(), "");
    EXPECT_FALSE(device().context_died());
    EXPECT_EQ(calls(), "cuCtxGetId ");
    fake().kill_context();
    EXPECT_TRUE(device().context_died());
    fake().clear();
    EXPECT_TRUE(device().context_died());  // it never comes back
    EXPECT_EQ(calls(), "");
}

// The handle is the same then, and the new context works: only the id differs.
TEST_F(ContextDeath, IsNoticedThoughSomebodyRetainedTheContextAgain) {
    fake().kill_context();
    fake().revive_context();
    EXPECT_TRUE(device().context_died());
    EXPECT_EQ(fake().current(), nullptr);
}

// Every call answers 709 while a dead context is current, although this backend's context is valid.
TEST_F(ContextDeath, OfAnotherContextThatIsCurrentIsNotOurs) {
    StreamHandle second{};
    ASSERT_TRUE(drivers_[1]->execution().create_stream(0, second).ok());
    fake().kill_context();
    fake().set_current(reinterpret_cast<void*>(0xC0));
    EXPECT_FALSE(drivers_[1]->context_died());
    EXPECT_TRUE(drivers_[1]->execution().query_stream(second).ok());
    EXPECT_EQ(fake().current(), reinterpret_cast<void*>(0xC0));
    fake().set_current(nullptr);
}

// A sticky fault, a forked child and the end of the process have their own codes.
TEST_F(ContextDeath, IsNotConcludedFromOtherFailures) {
    for (const int code : {700, 3, 4}) {
        fake().fail("cuCtxGetId", code);
        EXPECT_FALSE(device().context_died()) << code;
    }
    EXPECT_TRUE(execution().create_stream(0, stream).ok());
}

// keeps K11: nothing of ours appears in the new context that has the old one's handle, nothing of others is freed there
TEST_F(ContextDeath, NothingIsMadeOrFreedInTheContextThatCameAfterwards) {
    Allocation device_memory, pinned;
    ASSERT_TRUE(memory().allocate(MemoryKind::device, 64, Attachment::global, stream, device_memory).ok());
    ASSERT_TRUE(memory().allocate(MemoryKind::pinned, 64, Attachment::global, stream, pinned).ok());
    fake().kill_context();
    fake().revive_context();
    fake().clear();
    StreamHandle made{};
    expect_lost(execution().create_stream(0, made));
    EXPECT_EQ(made, StreamHandle::none);
    EXPECT_EQ(calls(), "cuCtxPushCurrent_v2 cuCtxGetId cuCtxPopCurrent_v2 ");
    // From here on without a driver call.
    Allocation allocation;
    expect_lost(memory().allocate(MemoryKind::device, 64, Attachment::global, stream, allocation));
    expect_lost(memory().allocate(MemoryKind::pool, 64, Attachment::global, stream, allocation));
    expect_lost(memory().release(device_memory, stream));
    expect_lost(memory().release(pinned, stream));
    expect_lost(memory().unregister_host(&made));
    expect_lost(memory().fill(64, 0, 8, stream));
    expect_lost(execution().query_stream(stream));
    expect_lost(execution().destroy_stream(stream));
    expect_lost(execution().destroy_event(EventHandle{0x50}));
    expect_lost(device().captures()->destroy(GraphHandle{0x50}));
    expect_lost(drivers_[1]->transfers()->copy_between(64, 1, 64, 0, 8, StreamHandle{0x50}));
    EXPECT_EQ(calls(), "cuDevicePrimaryCtxRetain cuCtxGetId ");  // the second device's, for the copy
    EXPECT_EQ(fake().current(), nullptr);
}

// keeps K11: also where the death was not noticed before
TEST_F(ContextDeath, AFreeFindsOutByItself) {
    Allocation device_memory;
    ASSERT_TRUE(memory().allocate(MemoryKind::device, 64, Attachment::global, stream, device_memory).ok());
    fake().kill_context();
    fake().revive_context();
    fake().clear();
    expect_lost(memory().release(device_memory, stream));
    EXPECT_EQ(calls().find("cuMemFree_v2"), std::string::npos);
}

TEST_F(ContextDeath, DestroyingAHandleFindsOutByItself) {
    fake().kill_context();
    fake().revive_context();
    fake().clear();
    expect_lost(execution().destroy_stream(stream));
    EXPECT_EQ(calls().find("cuStreamDestroy_v2"), std::string::npos);
}

// keeps K11: pool memory outlives its context, and is still freed; the context made for it is given back
TEST_F(ContextDeath, PoolMemoryIsFreedInAContextThatIsRetainedForIt) {
    Allocation pool;
    PoolHandle own{};
    Allocation of_own;
    ASSERT_TRUE(memory().allocate(MemoryKind::pool, 64, Attachment::global, stream, pool).ok());
    ASSERT_TRUE(device().pools()->create({MemoryKind::managed_pool, 0, 0}, own).ok());
    ASSERT_TRUE(device().pools()->allocate(own, 64, stream, of_own).ok());
    fake().kill_context();
    const int before = fake().retained();  // references of this backend, until the end
    ASSERT_TRUE(device().context_died());
    for (const Allocation& one : {pool, of_own}) {
        fake().clear();
        EXPECT_TRUE(memory().release(one, stream).ok());
        EXPECT_EQ(calls(),
                  "cuDevicePrimaryCtxRetain cuCtxPushCurrent_v2 cuMemFreeAsync cuCtxPopCurrent_v2 "
                  "cuDevicePrimaryCtxRelease_v2 ");
        EXPECT_EQ(fake().seen()->stream, nullptr);  // the new context's default stream
        EXPECT_EQ(fake().retained(), before);
    }
    EXPECT_TRUE(device().pools()->destroy(own).ok());
    EXPECT_EQ(calls(), "cuMemPoolDestroy ");
    EXPECT_EQ(fake().current(), nullptr);
}

// keeps K11
TEST_F(ContextDeath, PoolMemoryIsFreedAlsoWhereTheDeathWasNotNoticedBefore) {
    Allocation pool;
    ASSERT_TRUE(memory().allocate(MemoryKind::pool, 64, Attachment::global, stream, pool).ok());
    fake().kill_context();
    const int before = fake().retained();  // references of this backend, until the end
    EXPECT_TRUE(memory().release(pool, stream).ok());
    EXPECT_EQ(fake().seen()->stream, nullptr);
    EXPECT_EQ(fake().retained(), before);
}

// keeps K11: what the driver refuses then is told
TEST_F(ContextDeath, AFailedFreeOfPoolMemoryIsTold) {
    Allocation pool;
    ASSERT_TRUE(memory().allocate(MemoryKind::pool, 64, Attachment::global, stream, pool).ok());
    fake().kill_context();
    const int before = fake().retained();  // references of this backend, until the end
    ASSERT_TRUE(device().context_died());
    fake().fail("cuMemFreeAsync", 1);
    EXPECT_EQ(memory().release(pool, stream).code, Code::invalid_argument);
    EXPECT_EQ(fake().retained(), before);
    fake().fail("cuDevicePrimaryCtxRetain", 2);
    EXPECT_EQ(memory().release(pool, stream).code, Code::out_of_memory);
    EXPECT_EQ(fake().current(), nullptr);
}

// keeps R7: the reference outlives a reset, and whoever took it gives it back; the module died with the context
TEST_F(ContextDeath, TheEndGivesTheReferenceBackAndUnloadsNothing) {
    static const unsigned char bytes[] = {1};
    const KernelImage image{bytes, 1, "0a", "a.cpp", true};
    KernelInfo kernel{};
    kernel.symbol = "isthmus_a";
    kernel.image = &image;
    FunctionHandle function{};
    ASSERT_TRUE(execution().resolve(kernel, function).ok());
    fake().kill_context();
    fake().revive_context();
    const int before = fake().retained();
    fake().clear();
    drivers_.clear();
    const std::string made = calls();
    EXPECT_EQ(made.find("cuModuleUnload"), std::string::npos) << made;
    EXPECT_NE(made.find("cuDevicePrimaryCtxRelease_v2"), std::string::npos) << made;
    EXPECT_EQ(fake().retained(), before - 1);
}

// keeps R1: the text says whose doing it was, what is gone, and what to do
TEST_F(ContextDeath, IsExplained) {
    fake().kill_context();
    ASSERT_TRUE(device().context_died());
    const Error error = device().explain(execution().query_stream(stream), "waiting");
    EXPECT_EQ(error.code(), Code::device_lost);
    EXPECT_NE(error.message().find("other code of this process"), std::string_view::npos);
    EXPECT_NE(error.message().find("gone"), std::string_view::npos);
    EXPECT_NE(error.remedy().find("open a new runtime"), std::string_view::npos);
}

// A context whose id cannot be read is not used: it is released and tried again.
TEST_F(ContextDeath, AContextWithoutAnIdIsNotKept) {
    StreamHandle second{};
    fake().fail("cuCtxGetId", 999);
    const Status status = drivers_[1]->execution().create_stream(0, second);
    EXPECT_EQ(status.code, Code::driver_error);
    EXPECT_EQ(calls(), "cuDevicePrimaryCtxRetain cuCtxGetId cuDevicePrimaryCtxRelease_v2 ");
    EXPECT_TRUE(drivers_[1]->execution().create_stream(0, second).ok());
}

}  // namespace
}  // namespace isthmus::platform::cuda
