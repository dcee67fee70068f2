// SPDX-License-Identifier: Apache-2.0
// A fault on the device, in a process of its own: it has its own code, stays, and host memory can still be read.
#include "module_code.hpp"
#include "scenario.hpp"

#include <cstdint>
#include <optional>
#include <unistd.h>
#include <sys/wait.h>

namespace conformance {
namespace {

TEST(Sticky, AFaultingKernelIsATypedErrorThatLosesTheDevice) {  // keeps L8, R2
    Device& device = runtime().default_device();
    if (device.is_cpu()) GTEST_SKIP() << "a fault on the CPU device is a fault of the process";
    SharedUse pinned;
    pinned.kind = MemoryKind::pinned;
    Buffer<std::int32_t> salvage = device.allocate_shared<std::int32_t>(64, pinned).value();
    {
        auto view = salvage.write_on_host().value();
        for (std::int32_t& value : view) value = 77;
    }
    // Memory of other code, once in use and once not.
    alignas(64) static std::int32_t foreign[2][64] = {};
    int told = 0;
    AdoptOptions options;
    options.release = [&told](void*, std::size_t) { ++told; };
    Buffer<std::int32_t> adopted = device.adopt<std::int32_t>(foreign[0], 64, options).value();
    Buffer<std::int32_t> idle = device.adopt<std::int32_t>(foreign[1], 64, options).value();
    (void)device.stream().launch(add_one, 64, adopted).value();
    Module module = device.load_module(modules::bytes(modules::ptx), modules::with_stand_ins()).value();
    const auto churn = module.kernel<modules::Churn>("churn").value();
    const Module another = device.load_module(modules::bytes(modules::ptx), modules::with_stand_ins()).value();
    (void)device.stream().launch(churn, {.grid = {1}, .block = {64}}, adopted, 64, 1).value();
    Buffer<std::int32_t> in_flight = device.allocate_shared<std::int32_t>(64, pinned).value();
    device.stream().set_launch_mode(LaunchMode::relaxed);
    // An unmapped address as a raw view, which relaxed mode lets through.
    const View<std::int32_t> nowhere{reinterpret_cast<std::int32_t*>(std::uintptr_t{0x10}), 64};
    const auto faulted = device.stream().launch(add_one, 64, nowhere);
    if (faulted.code() != Code::device_lost) {  // the driver has noticed the fault already
        EXPECT_TRUE(worked(faulted));
    }
    // After the fault: the driver may accept the launch, but it never runs.
    const bool launched = device.stream().launch(add_one, 64, in_flight).ok();
    const auto lost = device.synchronize();
    ASSERT_TRUE(refused_as(lost, Code::device_lost));
    EXPECT_TRUE(unless_fault(lost.error().driver_code() == 700));
    EXPECT_FALSE(lost.error().remedy().empty());
    EXPECT_FALSE(device.healthy());
    EXPECT_TRUE(refused_as(device.allocate<std::int32_t>(64), Code::device_lost));
    EXPECT_TRUE(refused_as(device.stream().launch(add_one, 64, salvage), Code::device_lost));
    EXPECT_TRUE(refused_as(device.stream().launch(churn, {}, salvage, 64, 1), Code::device_lost));
    EXPECT_TRUE(refused_as(device.load_module(modules::bytes(modules::ptx)), Code::device_lost));
    EXPECT_TRUE(worked(module.release())) << "nothing is left to unload";
    EXPECT_EQ(salvage.read_on_host().value()[63], 77) << "nothing was lost that would have changed it";
    if (launched) {
        EXPECT_TRUE(refused_as(in_flight.read_on_host(), Code::device_lost)) << "what was lost is no silent answer";
    }
    EXPECT_EQ(in_flight.salvage_on_host().value().size(), 64u);
    EXPECT_EQ(told, 0);
    adopted = {};
    (void)idle.release();
    EXPECT_EQ(told, 2) << "a lost device uses nothing any more: each owner is told once";
    EXPECT_TRUE(runtime().cpu().healthy()) << "the other devices work on";
    // A runtime that is opened now gets the device's answers, and no state of this one.
    Runtime next = Runtime::open().value();
    Device& same = *next.device(device.index()).value();
    EXPECT_TRUE(unless_fault(!same.healthy())) << "the driver answers the fault's code from now on";
    EXPECT_TRUE(unless_fault(next.default_device().healthy() && next.default_device().index() != device.index()));
    EXPECT_TRUE(refused_as(same.allocate<std::int32_t>(64), Code::device_lost));
    EXPECT_TRUE(worked(next.cpu().allocate<std::int32_t>(64)));
}

TEST(Sticky, AForkedChildIsRefusedAndItsDestructorsTouchNothing) {  // keeps R3
    std::optional<Runtime> own = Runtime::open().value();
    Device& device = own->cpu();
    Buffer<std::int32_t> buffer = device.allocate_shared<std::int32_t>(64).value();
    alignas(64) static std::int32_t foreign[64] = {};
    int told = 0;
    AdoptOptions options;
    options.release = [&told](void*, std::size_t) { ++told; };
    Buffer<std::int32_t> adopted = device.adopt<std::int32_t>(foreign, 64, std::move(options)).value();
    Device& gpu = own->default_device();
    std::optional<Module> module = gpu.load_module(modules::bytes(modules::ptx), modules::with_stand_ins()).value();
    std::optional<ModuleKernel<modules::Churn>> churn = module->kernel<modules::Churn>("churn").value();
    EXPECT_NE(device.cache_usage().limit_bytes, 0u);
    EXPECT_NE(buffer.placement().page_bytes, 0u);
    device.set_allocator(device.allocator(MemoryKind::host));
    const pid_t child = fork();
    if (child == 0) {
        const bool modules_refused = gpu.load_module(modules::bytes(modules::ptx)).code() == Code::forked &&
                                     gpu.stream().launch(*churn, {}, buffer, 64, 1).code() == Code::forked &&
                                     module->kernel<modules::Churn>("churn").code() == Code::forked &&
                                     module->release().code() == Code::forked;
        churn.reset();
        module.reset();
        const bool refused = modules_refused && device.allocate<std::int32_t>(4).code() == Code::forked &&
                             device.stream().launch(add_one, 64, buffer).code() == Code::forked &&
                             buffer.read_on_host().code() == Code::forked && own->seal().code() == Code::forked;
        device.set_allocator({});
        device.set_out_of_memory_handler({});
        const bool nothing_known = device.cache_usage().limit_bytes == 0 && own->counters().empty() &&
                                   buffer.placement().page_bytes == 0 &&
                                   device.current_allocator() == device.allocator(MemoryKind::device);
        { Buffer<std::int32_t> dies = std::move(buffer), as_well = std::move(adopted); }
        own.reset();  // also destroys its records, which still hold the adopted memory
        // The parent still has it.
        _exit(refused && nothing_known && told == 0 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(device.current_allocator(), device.allocator(MemoryKind::host));
    EXPECT_TRUE(worked(buffer.read_on_host()));
    adopted = {};
    EXPECT_EQ(told, 1);
    EXPECT_TRUE(worked(module->release())) << "the parent's code is still there";
}

}  // namespace
}  // namespace conformance
