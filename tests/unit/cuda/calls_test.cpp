// SPDX-License-Identifier: Apache-2.0
// Which driver calls the backend makes, and that it leaves the caller's context unchanged, against a driver that
// records calls.
#include "cuda_calls.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <string>

namespace isthmus::platform::cuda {
namespace {

const unsigned char image_bytes[] = {1, 2, 3, 4};
const KernelImage gpu_image{image_bytes, 4, "abcd", "scale.cpp", true};
const KernelImage placeholder{image_bytes + 1, 3, "ef01", "scale.cpp", false};
const ParameterInfo parameters[] = {{0, 16, 4, ArgumentUse::read_write}, {16, 4, 0, ArgumentUse::value}};
void twin_body(const Extent&, std::uint64_t, std::uint64_t, const void*) {}
KernelInfo kernel_with(const KernelImage* image) {
    return {"scale", "isthmus_scale", "View<float> out, float factor", parameters, 2, 24, 1, 0, image, &twin_body};
}

void* const foreign = reinterpret_cast<void*>(std::uintptr_t{0xF00});

// keeps R7
TEST_F(CudaCalls, CreationsLeaveTheCallersContextAsItWas) {
    for (void* before : {static_cast<void*>(nullptr), foreign}) {
        fake().set_current(before);
        StreamHandle stream{};
        EventHandle event{};
        Allocation allocation;
        EXPECT_TRUE(execution().create_stream(-1, stream).ok());
        EXPECT_EQ(fake().current(), before);
        EXPECT_TRUE(execution().create_event(EventKind::timing, event).ok());
        EXPECT_EQ(fake().current(), before);
        EXPECT_TRUE(memory().allocate(MemoryKind::device, 64, Attachment::global, stream, allocation).ok());
        EXPECT_EQ(fake().current(), before);
        EXPECT_TRUE(memory().release(allocation, stream).ok());
        EXPECT_EQ(fake().current(), before);
        std::uint64_t free_bytes = 0, total_bytes = 0;
        EXPECT_TRUE(memory().memory_info(free_bytes, total_bytes).ok());
        EXPECT_EQ(fake().current(), before);
    }
}

// keeps R7
TEST_F(CudaCalls, AFailedCreationLeavesTheCallersContextAsItWas) {
    fake().set_current(foreign);
    fake().fail("cuMemAlloc_v2", 2);
    Allocation allocation;
    const Status status = memory().allocate(MemoryKind::device, 64, Attachment::global, {}, allocation);
    EXPECT_EQ(status.code, Code::out_of_memory);
    EXPECT_EQ(status.driver_code, 2);
    EXPECT_STREQ(status.call, "cuMemAlloc_v2");
    EXPECT_EQ(allocation.device, 0u);
    EXPECT_EQ(fake().current(), foreign);
}

// keeps K9
TEST_F(CudaCalls, AFreeEntersTheContextOfItsDeviceWhicheverIsCurrent) {
    fake().set_current(foreign);
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::managed, MemoryKind::pinned}) {
        Allocation allocation;
        ASSERT_TRUE(memory().allocate(kind, 64, Attachment::global, {}, allocation).ok());
        fake().clear();
        EXPECT_TRUE(memory().release(allocation, {}).ok());
        const std::string free = kind == MemoryKind::pinned ? "cuMemFreeHost" : "cuMemFree_v2";
        EXPECT_EQ(std::string(fake().calls()), "cuCtxPushCurrent_v2 cuCtxGetId " + free + " cuCtxPopCurrent_v2 ");
        EXPECT_EQ(fake().current(), foreign);
    }
}

// keeps W1, W2: whatever is current, and whatever other code makes current
TEST_F(CudaCalls, WorkOfOtherCodeRunsInTheDevicesContextInTheCallersMode) {
    (void)make_stream();
    struct Seen {
        FakeDriver& driver;
        void* current = nullptr;
        bool changes = false;
    } seen{fake()};
    const auto look = [](void* data) {
        auto& it = *static_cast<Seen*>(data);
        it.current = it.driver.current();
        if (it.changes) it.driver.set_current(foreign);
    };
    fake().set_current(nullptr);
    fake().clear();
    ASSERT_TRUE(execution().call_in_context(look, &seen).ok());
    EXPECT_STREQ(fake().calls(), "cuCtxGetCurrent cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 ");
    void* const own = seen.current;
    EXPECT_NE(own, nullptr);
    EXPECT_EQ(fake().current(), nullptr);
    fake().set_current(foreign);
    ASSERT_TRUE(execution().call_in_context(look, &seen).ok());
    EXPECT_EQ(seen.current, own);
    EXPECT_EQ(fake().current(), foreign);
    for (const bool changes : {false, true}) {
        fake().set_current(own);
        fake().clear();
        seen.current = nullptr;
        seen.changes = changes;
        ASSERT_TRUE(execution().call_in_context(look, &seen).ok());
        EXPECT_EQ(seen.current, own);
        EXPECT_EQ(fake().current(), own);
        EXPECT_STREQ(fake().calls(), changes ? "cuCtxGetCurrent cuCtxGetCurrent cuCtxPopCurrent_v2 cuCtxPushCurrent_v2 "
                                             : "cuCtxGetCurrent cuCtxGetCurrent ");
    }
    EXPECT_EQ(execution().status_of(0, "work").code, Code::ok);
    EXPECT_EQ(execution().status_of(700, "work").code, Code::device_lost);
    EXPECT_EQ(execution().status_of(1, "work").driver_code, 1);
}

TEST_F(CudaCalls, ThePrimaryContextIsRetainedOnceAndGivenBackAtTheEnd) {
    make_stream();
    drivers_[0]->memory();
    StreamHandle second{};
    EXPECT_TRUE(execution().create_stream(0, second).ok());
    EXPECT_STREQ(fake().calls(), "cuCtxPushCurrent_v2 cuCtxGetId cuStreamCreateWithPriority cuCtxPopCurrent_v2 ");
    fake().clear();
    drivers_.clear();
    EXPECT_STREQ(fake().calls(), "cuDevicePrimaryCtxRelease_v2 ");  // the second device was never used
}

TEST_F(CudaCalls, AContextThatCannotBeRetainedIsAnErrorAndTriedAgain) {
    fake().fail("cuDevicePrimaryCtxRetain", 2);
    StreamHandle stream{};
    const Status status = execution().create_stream(0, stream);
    EXPECT_EQ(status.code, Code::out_of_memory);
    EXPECT_STREQ(status.call, "cuDevicePrimaryCtxRetain");
    EXPECT_TRUE(execution().create_stream(0, stream).ok());
}

TEST_F(CudaCalls, StreamCallsAreOneDriverCallEach) {
    const StreamHandle stream = make_stream();
    EventHandle event{};
    ASSERT_TRUE(execution().create_event(EventKind::plain, event).ok());
    fake().clear();
    EXPECT_TRUE(execution().record_event(event, stream).ok());
    EXPECT_TRUE(execution().wait_event(stream, event).ok());
    EXPECT_TRUE(execution().query_event(event).ok());
    EXPECT_TRUE(memory().fill(64, 0, 8, stream).ok());
    EXPECT_TRUE(memory().copy(64, 128, 8, CopyDirection::host_to_device, stream).ok());
    EXPECT_TRUE(memory().copy(64, 128, 8, CopyDirection::device_to_host, stream).ok());
    EXPECT_TRUE(memory().copy(64, 128, 8, CopyDirection::device_to_device, stream).ok());
    EXPECT_TRUE(memory().copy(64, 128, 8, CopyDirection::host_to_host, stream).ok());
    EXPECT_STREQ(fake().calls(),
                 "cuEventRecord cuStreamWaitEvent cuEventQuery "
                 "cuMemsetD8Async cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemcpyAsync ");
}

// A driver may require a context where the observed one does not: then the call is repeated with one.
TEST_F(CudaCalls, AStreamCallThatNeedsAContextIsRepeatedWithOne) {
    const StreamHandle stream = make_stream();
    fake().streams_need_context(1);
    EXPECT_TRUE(execution().query_stream(stream).ok());
    EXPECT_STREQ(fake().calls(), "cuStreamQuery cuCtxPushCurrent_v2 cuCtxGetId cuStreamQuery cuCtxPopCurrent_v2 ");
    EXPECT_EQ(fake().current(), nullptr);
}

// keeps K22, V11: memory of two devices is moved with the stream's own context current
TEST_F(CudaCalls, ACopyThatIsRefusedWithoutAContextIsTriedOnceMoreWithTheStreams) {
    const StreamHandle stream = make_stream();
    fake().set_current(foreign);
    fake().fail("cuMemcpyDtoHAsync_v2", 1);
    EXPECT_TRUE(memory().copy(64, 128, 8, CopyDirection::device_to_host, stream).ok());
    EXPECT_STREQ(fake().calls(),
                 "cuMemcpyDtoHAsync_v2 cuCtxPushCurrent_v2 cuCtxGetId cuMemcpyDtoHAsync_v2 cuCtxPopCurrent_v2 ");
    EXPECT_EQ(fake().current(), foreign);
    fake().clear();
    fake().fail("cuMemcpyDtoHAsync_v2", 2);
    EXPECT_EQ(memory().copy(64, 128, 8, CopyDirection::device_to_host, stream).code, Code::out_of_memory);
    EXPECT_STREQ(fake().calls(), "cuMemcpyDtoHAsync_v2 ");
}

// keeps V16: the handle does not tell the size, so that the mapping is asked for first
TEST_F(CudaCalls, AnAddressLeadsToTheHandleAndTheWholeMapping) {
    ASSERT_NE(device().virtual_memory(), nullptr);
    RetainedMemory found;
    EXPECT_TRUE(device().virtual_memory()->retain(0x1234, found).ok());
    EXPECT_EQ(found.memory, PhysicalHandle{0x77});
    EXPECT_EQ(found.base, 0x1000u);
    EXPECT_EQ(found.bytes, 0x4000u);
    EXPECT_STREQ(fake().calls(), "cuPointerGetAttributes cuMemRetainAllocationHandle ");
    fake().fail("cuMemRetainAllocationHandle", 1);
    RetainedMemory none;
    EXPECT_EQ(device().virtual_memory()->retain(0x1234, none).code, Code::invalid_argument);
    EXPECT_EQ(none.memory, PhysicalHandle::none);
    fake().clear();
    ASSERT_NE(device().multicast(), nullptr);
    EXPECT_TRUE(device().multicast()->bind_address(PhysicalHandle{5}, 0, 0x1000, 64).ok());
    EXPECT_STREQ(fake().calls(), "cuMulticastBindAddr ");
}

TEST_F(CudaCalls, TheDefaultStreamIsTheOneOfThisDevicesContext) {
    fake().set_current(foreign);
    EXPECT_TRUE(memory().fill(64, 0, 8, StreamHandle::none).ok());
    EXPECT_STREQ(
        fake().calls(),
        "cuDevicePrimaryCtxRetain cuCtxGetId cuCtxPushCurrent_v2 cuCtxGetId cuMemsetD8Async cuCtxPopCurrent_v2 ");
}

TEST_F(CudaCalls, StreamsDoNotBlockAndEventsTimeOnlyWhenAsked) {
    StreamHandle stream{};
    EventHandle event{};
    EXPECT_TRUE(execution().create_stream(0, stream).ok());
    EXPECT_EQ(fake().flags(), 1u);  // CU_STREAM_NON_BLOCKING
    EXPECT_TRUE(execution().create_event(EventKind::plain, event).ok());
    EXPECT_EQ(fake().flags(), 2u);  // CU_EVENT_DISABLE_TIMING
    EXPECT_TRUE(execution().create_event(EventKind::timing, event).ok());
    EXPECT_EQ(fake().flags(), 0u);
}

// keeps K23: host memory has an address on each side, equal or not
TEST_F(CudaCalls, HostMemoryHasTheAddressThatTheDriverStatesForTheDevice) {
    Allocation allocation;
    ASSERT_TRUE(memory().allocate(MemoryKind::pinned, 64, Attachment::global, {}, allocation).ok());
    EXPECT_EQ(fake().flags(), 3u);  // PORTABLE | DEVICEMAP
    EXPECT_EQ(allocation.device, reinterpret_cast<std::uintptr_t>(allocation.host) + 5);
    ASSERT_TRUE(memory().allocate(MemoryKind::write_combined, 64, Attachment::global, {}, allocation).ok());
    EXPECT_EQ(fake().flags(), 7u);
    char page[64];
    std::uint64_t device = 0;
    EXPECT_TRUE(memory().register_host(page, sizeof page, false, device).ok());
    EXPECT_EQ(fake().flags(), 3u);
    EXPECT_EQ(device, reinterpret_cast<std::uintptr_t>(page) + 5);
    EXPECT_TRUE(memory().register_host(page, sizeof page, true, device).ok());
    EXPECT_EQ(fake().flags(), 11u);  // READ_ONLY
}

// keeps R5: undoing waits for kernels that run, so it is the caller's, who knows of services
TEST_F(CudaCalls, HostMemoryWithoutADeviceAddressIsLeftToTheCaller) {
    make_stream();
    Allocation allocation;
    fake().fail("cuMemHostGetDevicePointer_v2", 1);
    EXPECT_EQ(memory().allocate(MemoryKind::pinned, 64, Attachment::global, {}, allocation).code,
              Code::invalid_argument);
    EXPECT_EQ(std::string(fake().calls()).find("cuMemFreeHost"), std::string::npos);
    EXPECT_NE(allocation.host, nullptr);
    EXPECT_EQ(allocation.bytes, 64u);
    EXPECT_TRUE(memory().release(allocation, {}).ok());
    char page[64];
    std::uint64_t device = 1;
    fake().clear();
    fake().fail("cuMemHostGetDevicePointer_v2", 1);
    EXPECT_FALSE(memory().register_host(page, sizeof page, false, device).ok());
    EXPECT_EQ(device, 0u) << "it is registered still";
    EXPECT_EQ(std::string(fake().calls()).find("cuMemHostUnregister"), std::string::npos);
    EXPECT_TRUE(memory().unregister_host(page).ok());
}

// keeps K12, R6
TEST_F(CudaCalls, WhatGivesBackIsTriedAgainWhereItMayPass) {
    make_stream();
    Allocation allocation;
    ASSERT_TRUE(memory().allocate(MemoryKind::pinned, 64, Attachment::global, {}, allocation).ok());
    for (int tries = 0; tries < 3; ++tries) fake().fail("cuMemFreeHost", 2);
    for (int tries = 0; tries < 3; ++tries) fake().fail("cuMemHostUnregister", 2);
    fake().clear();
    EXPECT_FALSE(memory().release(allocation, {}).ok());
    char page[64];
    EXPECT_FALSE(memory().unregister_host(page).ok());
    const std::string calls = fake().calls();
    const auto times = [&](std::string_view call) {
        int found = 0;
        for (std::size_t at = calls.find(call); at != std::string::npos; at = calls.find(call, at + 1)) ++found;
        return found;
    };
    EXPECT_EQ(times("cuMemFreeHost"), 3) << "what may pass is tried again";
    EXPECT_EQ(times("cuMemHostUnregister"), 3);
    fake().fail("cuMemHostUnregister", 713);
    fake().clear();
    EXPECT_FALSE(memory().unregister_host(page).ok());
    EXPECT_EQ(std::string(fake().calls()).find("cuMemHostUnregister"),
              std::string(fake().calls()).rfind("cuMemHostUnregister"))
        << "what is not registered is not asked for twice";
}

// keeps K6
TEST_F(CudaCalls, ManagedMemoryIsAttachedAsAsked) {
    const StreamHandle stream = make_stream();
    Allocation allocation;
    EXPECT_TRUE(memory().allocate(MemoryKind::managed, 64, Attachment::global, stream, allocation).ok());
    EXPECT_EQ(fake().flags(), 1u);
    EXPECT_TRUE(memory().allocate(MemoryKind::managed, 64, Attachment::host, stream, allocation).ok());
    EXPECT_EQ(fake().flags(), 2u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(allocation.host), allocation.device);
    EXPECT_TRUE(memory().attach(allocation, Attachment::stream, stream).ok());
    EXPECT_EQ(fake().flags(), 4u);
    // Attached to a stream at once: allocated as host only first, because the driver allocates nothing else. If the
    // second step fails, the allocation is left to the caller.
    fake().clear();
    fake().fail("cuStreamAttachMemAsync", 801);
    EXPECT_EQ(memory().allocate(MemoryKind::managed, 64, Attachment::stream, stream, allocation).code,
              Code::unsupported);
    EXPECT_EQ(std::string(fake().calls()).find("cuMemFree_v2"), std::string::npos);
    EXPECT_TRUE(memory().release(allocation, stream).ok());
    EXPECT_NE(std::string(fake().calls()).find("cuMemFree_v2"), std::string::npos);
}

TEST_F(CudaCalls, AKindThatThisBackendDoesNotAllocateIsRefusedWithoutACall) {
    Allocation allocation;
    const Status status = memory().allocate(MemoryKind::graph, 64, Attachment::global, {}, allocation);
    EXPECT_EQ(status.code, Code::unsupported);
    EXPECT_STREQ(fake().calls(), "");
    EXPECT_NE(device().explain(status, "allocating").remedy().find("pinned"), std::string_view::npos);
}

TEST_F(CudaCalls, APoolThatTheDriverLacksIsUnsupportedByName) {
    open("lacks_pools");
    Allocation allocation;
    const Status status = memory().allocate(MemoryKind::pool, 64, Attachment::global, {}, allocation);
    EXPECT_EQ(status.code, Code::unsupported);
    EXPECT_STREQ(status.call, "cuMemAllocAsync");
    EXPECT_STREQ(fake().calls(), "");
    EXPECT_NE(device().explain(status, "allocating").remedy().find("update the driver"), std::string_view::npos);
}

TEST_F(CudaCalls, AnImageIsLoadedOnceAndAKernelFoundOnce) {
    const KernelInfo first = kernel_with(&gpu_image);
    const KernelInfo second = kernel_with(&gpu_image);
    FunctionHandle function{}, again{}, other{};
    ASSERT_TRUE(execution().resolve(first, function).ok());
    ASSERT_TRUE(execution().resolve(first, again).ok());
    ASSERT_TRUE(execution().resolve(second, other).ok());
    EXPECT_EQ(function, again);
    const std::string calls = fake().calls();
    std::size_t loads = 0, finds = 0;
    for (std::size_t at = 0; (at = calls.find("cuModuleLoadData", at)) != std::string::npos; ++at) ++loads;
    for (std::size_t at = 0; (at = calls.find("cuModuleGetFunction", at)) != std::string::npos; ++at) ++finds;
    EXPECT_EQ(loads, 1u);
    EXPECT_EQ(finds, 2u);
    fake().clear();
    drivers_.clear();
    EXPECT_STREQ(fake().calls(),
                 "cuCtxPushCurrent_v2 cuCtxGetId cuModuleUnload cuCtxPopCurrent_v2 cuDevicePrimaryCtxRelease_v2 ");
}

std::size_t times(const std::string& calls, const char* name) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = calls.find(name, at)) != std::string::npos; ++at) ++count;
    return count;
}

// keeps W9
TEST_F(CudaCalls, AKernelAtTheAddressOfAnotherIsFoundAnew) {
    alignas(KernelInfo) unsigned char place[sizeof(KernelInfo)];
    const KernelImage other_image{image_bytes, 4, "beef", "scale.cpp", true};  // where gpu_image lies, with other code
    FunctionHandle function{};
    const auto* kernel = new (place) KernelInfo(kernel_with(&gpu_image));
    ASSERT_TRUE(execution().resolve(*kernel, function).ok());
    EXPECT_TRUE(execution().is_resolved(*kernel));
    kernel = new (place) KernelInfo(kernel_with(&other_image));
    EXPECT_FALSE(execution().is_resolved(*kernel));
    ASSERT_TRUE(execution().resolve(*kernel, function).ok());
    EXPECT_EQ(times(fake().calls(), "cuModuleLoadData"), 2u);
    EXPECT_EQ(times(fake().calls(), "cuModuleGetFunction"), 2u);
}

// keeps W9
TEST_F(CudaCalls, AnImageThatIsOpenedAgainElsewhereIsNotLoadedAgain) {
    const unsigned char elsewhere[] = {1, 2, 3, 4};
    const KernelImage again{elsewhere, 4, gpu_image.hash, "scale.cpp", true};
    FunctionHandle function{};
    ASSERT_TRUE(execution().resolve(kernel_with(&gpu_image), function).ok());
    ASSERT_TRUE(execution().resolve(kernel_with(&again), function).ok());
    EXPECT_EQ(times(fake().calls(), "cuModuleLoadData"), 1u);
}

// keeps W9
TEST_F(CudaCalls, TheSimulatorLoadsEachLibrarysImageForItsOwnTwins) {
    open("simulator");
    const KernelImage again{placeholder.data, 3, placeholder.hash, "scale.cpp", false};
    FunctionHandle function{};
    ASSERT_TRUE(execution().resolve(kernel_with(&placeholder), function).ok());
    const std::uint64_t first = fake().twin()->image_first_use;
    ASSERT_TRUE(execution().resolve(kernel_with(&again), function).ok());
    EXPECT_EQ(times(fake().calls(), "cuModuleLoadData"), 2u);
    EXPECT_NE(first, 0u);
    EXPECT_NE(fake().twin()->image_first_use, first);
}

TEST_F(CudaCalls, ARealDriverIsNeverShownAPlaceholder) {
    const KernelInfo without = kernel_with(&placeholder);
    const KernelInfo cpu_only = kernel_with(nullptr);
    FunctionHandle function{};
    for (const KernelInfo* kernel : {&without, &cpu_only}) {
        const Status status = execution().resolve(*kernel, function);
        EXPECT_EQ(status.code, Code::no_gpu_code);
        EXPECT_EQ(status.driver_code, 0);
        EXPECT_NE(device().explain(status, "launching scale").remedy().find("nvcc"), std::string_view::npos);
    }
    EXPECT_STREQ(fake().calls(), "");
}

TEST_F(CudaCalls, AFailedLoadIsTriedAgain) {
    const KernelInfo kernel = kernel_with(&gpu_image);
    FunctionHandle function{};
    fake().fail("cuModuleLoadData", 209);
    EXPECT_EQ(execution().resolve(kernel, function).code, Code::no_gpu_code);
    EXPECT_TRUE(execution().resolve(kernel, function).ok());
}

TEST_F(CudaCalls, TheSimulatorIsGivenTheTwinBeforeTheImage) {
    open("simulator");
    const KernelInfo kernel = kernel_with(&placeholder);
    FunctionHandle function{};
    ASSERT_TRUE(execution().resolve(kernel, function).ok());
    const std::string calls = fake().calls();
    EXPECT_LT(calls.find("isthmus_sim_register_kernel"), calls.find("cuModuleLoadData"));
    const isthmus_sim_kernel& twin = *fake().twin();
    EXPECT_EQ(twin.struct_bytes, sizeof(isthmus_sim_kernel));
    EXPECT_STREQ(twin.image_hash, "ef01");
    EXPECT_EQ(twin.image_data, placeholder.data);
    EXPECT_STREQ(twin.symbol, "isthmus_scale");
    EXPECT_EQ(twin.parameter_count, 2u);
    EXPECT_EQ(twin.parameter[0].use, 3u);
    EXPECT_EQ(twin.parameter[1].offset_bytes, 16u);
    EXPECT_EQ(twin.parameter[1].use, 0u);
    EXPECT_EQ(twin.pack_bytes, 24u);
    EXPECT_EQ(reinterpret_cast<void*>(twin.twin), reinterpret_cast<void*>(&twin_body));
}

TEST_F(CudaCalls, TwoKernelsOfOneNameInOneImageAreRefusedByName) {
    open("simulator");
    const KernelInfo kernel = kernel_with(&placeholder);
    FunctionHandle function{};
    fake().fail("isthmus_sim_register_kernel", 1);
    const Status status = execution().resolve(kernel, function);
    EXPECT_EQ(status.code, Code::in_use);
    EXPECT_NE(device().explain(status, "launching scale").remedy().find("different names"), std::string_view::npos);
    EXPECT_EQ(std::string(fake().calls()).find("cuModuleLoadData"), std::string::npos);
}

TEST_F(CudaCalls, ALaunchIsOneDriverCallWithTheGridOfItsExtent) {
    const StreamHandle stream = make_stream();
    const KernelInfo kernel = kernel_with(&gpu_image);
    LaunchRequest request{&kernel, FunctionHandle::none, {1000, 1, 1}, parameters, stream};
    ASSERT_TRUE(execution().resolve(kernel, request.function).ok());
    fake().clear();
    EXPECT_TRUE(execution().launch(request).ok());
    EXPECT_STREQ(fake().calls(), "cuLaunchKernel ");
    EXPECT_EQ(fake().grid()[0], 4u);
    EXPECT_EQ(fake().block()[0], 256u);
    request.extent = {0, 1, 1};
    EXPECT_TRUE(execution().launch(request).ok());  // empty launch
    request.extent = {std::uint64_t{1} << 40, 1, 1};
    const Status refused = execution().launch(request);
    EXPECT_EQ(refused.code, Code::invalid_argument);
    EXPECT_NE(device().explain(refused, "launching scale").remedy().find("split"), std::string_view::npos);
    EXPECT_STREQ(fake().calls(), "cuLaunchKernel ");
}

// keeps L8
TEST_F(CudaCalls, AStickyCodeIsALostDeviceExplainedInTheDriversWords) {
    const StreamHandle stream = make_stream();
    fake().fail("cuStreamQuery", 700);
    const Status status = execution().query_stream(stream);
    EXPECT_EQ(status.code, Code::device_lost);
    const Error error = device().explain(status, "waiting for the stream");
    EXPECT_NE(error.message().find("the driver's own words"), std::string_view::npos);
}

// keeps R3
TEST_F(CudaCalls, AForkedChildIsRefusedAndItsDestructorsTouchNothing) {
    make_stream();
    const pid_t child = ::fork();
    if (child == 0) {
        fake().fail("cuCtxPushCurrent_v2", 3);  // the real driver's answer there
        StreamHandle stream{};
        const bool refused = execution().create_stream(0, stream).code == Code::forked;
        fake().clear();
        drivers_.clear();
        ::_exit(refused && std::string(fake().calls()).empty() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    // In the parent the same answer is an ordinary driver error.
    fake().fail("cuCtxPushCurrent_v2", 3);
    StreamHandle stream{};
    EXPECT_EQ(execution().create_stream(0, stream).code, Code::driver_error);
}

}  // namespace
}  // namespace isthmus::platform::cuda
