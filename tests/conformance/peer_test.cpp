// SPDX-License-Identifier: Apache-2.0
// Two GPUs: which may access the other's memory, and switching that access.
#include "scenario.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace conformance {
namespace {

constexpr std::size_t count = 256;

// Restores the devices for later scenarios.
struct SwitchedOff {
    Device& device;
    Device& owner;
    ~SwitchedOff() { (void)device.disable_peer_access(owner); }
};

bool two_gpus() {
    return runtime().device_count() >= 3;
}

TEST(Peer, DeviceMemoryFollowsPeerAccessAndPoolsDoNot) {  // keeps A4, A5, A15, L6
    if (!two_gpus()) GTEST_SKIP() << "one GPU, or none";
    Device& here = *runtime().device(0).value();
    Device& there = *runtime().device(1).value();
    Buffer<std::int32_t> data = there.allocate<std::int32_t>(count).value();
    Buffer<std::int32_t> seen = there.allocate_shared<std::int32_t>(count).value();
    there.stream().fill_bytes(data, 0).value();
    there.synchronize().value();
    EXPECT_EQ(here.can_access(data).verdict, Verdict::no);
    EXPECT_TRUE(refused_as(here.stream().launch(add_one, count, data), Code::not_accessible));
    const auto enabled = here.enable_peer_access(there);
    if (!enabled) {
        EXPECT_TRUE(refused_as(enabled, Code::unsupported)) << "no link between them";
        EXPECT_EQ(here.can_access(data).verdict, Verdict::no);
        return;
    }
    const SwitchedOff afterwards{here, there};
    EXPECT_EQ(here.can_access(data).verdict, Verdict::yes);
    EXPECT_TRUE(here.can_access(there)) << "the coarse query follows";
    EXPECT_EQ(there.can_access(here).verdict, Verdict::no) << "one direction";
    const long before = driver_calls();
    EXPECT_TRUE(worked(here.enable_peer_access(there))) << "already so";
    EXPECT_TRUE(unless_fault(driver_calls() == before));
    (void)here.stream().launch(add_one, count, data).value();
    here.synchronize().value();
    (void)there.stream().launch(scale_into, count, seen, data, 3).value();
    EXPECT_EQ(seen.read_on_host().value()[count - 1], 3);
    if (there.capabilities().has(Feature::pools)) {
        Buffer<std::int32_t> pooled = there.allocate<std::int32_t>(count, MemoryKind::pool).value();
        EXPECT_EQ(here.can_access(pooled).verdict, Verdict::no) << "peer access does not open a pool";
        EXPECT_TRUE(refused_as(here.stream().launch(add_one, count, pooled), Code::not_accessible));
    }
    EXPECT_TRUE(worked(here.disable_peer_access(there)));
    EXPECT_EQ(here.can_access(data).verdict, Verdict::no);
}

// keeps A15, A18
TEST(Peer, WhetherAccessCanBeEnabledIsAnsweredAsEnablingDoes) {
    for (Device& here : all_devices()) {
        for (Device& there : all_devices()) {
            SCOPED_TRACE(std::string(here.name()) + " to " + std::string(there.name()));
            const long before = driver_calls();
            const AccessAnswer peer = here.can_enable_peer_access(there);
            const AccessAnswer pool = here.can_enable_pool_access(there);
            EXPECT_FALSE(peer.reason.empty());
            EXPECT_EQ(peer.remedy.empty(), peer.verdict == Verdict::yes) << peer.reason;
            const bool one_gpu = &here == &there || here.is_cpu() || there.is_cpu();
            if (one_gpu) {
                EXPECT_EQ(peer.verdict, Verdict::no);
                EXPECT_EQ(pool.verdict, &here == &there ? Verdict::yes : Verdict::no);
                EXPECT_TRUE(unless_fault(driver_calls() == before)) << "the driver has nothing to say";
                continue;
            }
            EXPECT_TRUE(unless_fault(peer.verdict != Verdict::not_verified)) << peer.reason;
            EXPECT_EQ(here.can_access(there).verdict, Verdict::no) << "a question enables nothing";
            const Result<void> enabled = here.enable_peer_access(there);
            const SwitchedOff afterwards{here, there};
            if (peer.verdict == Verdict::no) {
                EXPECT_TRUE(refused_as(enabled, Code::unsupported)) << peer.reason;
            } else {
                EXPECT_TRUE(worked(enabled)) << peer.reason;
                const long enabled_calls = driver_calls();
                EXPECT_TRUE(unless_fault(here.can_enable_peer_access(there).verdict == Verdict::yes));
                EXPECT_TRUE(unless_fault(driver_calls() == enabled_calls)) << "it is known to be enabled";
            }
            if (!there.capabilities().has(Feature::pools)) {
                EXPECT_EQ(pool.verdict, Verdict::no) << pool.reason;
                continue;
            }
            MemoryPool made = there.create_pool().value();
            if (pool.verdict == Verdict::no) {
                EXPECT_TRUE(refused_as(made.allow(here), Code::unsupported)) << pool.reason;
            } else {
                EXPECT_TRUE(worked(made.allow(here))) << pool.reason;
            }
        }
    }
}

TEST(Peer, PoolAccessIsAskedForByItself) {  // keeps A5, A18
    if (!two_gpus()) GTEST_SKIP() << "one GPU, or none";
    Device& here = *runtime().device(0).value();
    Device& there = *runtime().device(1).value();
    if (!here.enable_peer_access(there)) return;
    const SwitchedOff afterwards{here, there};
    const long before = driver_calls();
    EXPECT_TRUE(unless_fault(here.can_enable_pool_access(there).verdict == Verdict::yes));
    if (!counts_calls(here)) return;
    EXPECT_TRUE(unless_fault(driver_calls() == before + 1))
        << "peer access says nothing about pools: the link is asked for";
}

TEST(Peer, ADeviceOfAnotherRuntimeCannotBeLetIn) {  // keeps A18
    auto other = Runtime::open();
    if (!other) return;
    Device& here = runtime().default_device();
    Device& there = other->default_device();
    for (const AccessAnswer& answer : {here.can_enable_peer_access(there), here.can_enable_pool_access(there)}) {
        EXPECT_EQ(answer.verdict, Verdict::no);
        EXPECT_NE(answer.reason.find("two runtimes"), std::string_view::npos);
    }
    EXPECT_TRUE(refused_as(here.enable_peer_access(there), Code::wrong_device));
}

TEST(Peer, ManagedAndPinnedMemoryNeedNoSwitch) {  // keeps A2, A7
    if (!two_gpus()) GTEST_SKIP() << "one GPU, or none";
    Device& here = *runtime().device(0).value();
    Device& there = *runtime().device(1).value();
    for (const MemoryKind kind : {MemoryKind::managed, MemoryKind::pinned}) {
        Buffer<std::int32_t> data = shared_numbers(there, count, kind);
        {
            auto view = data.write_on_host().value();
            for (std::int32_t& value : view) value = 4;
        }
        EXPECT_EQ(here.can_access(data).verdict, Verdict::yes) << isthmus::name(kind);
        EXPECT_TRUE(worked(here.stream().launch(add_one, count, data)));
        EXPECT_EQ(data.read_on_host().value()[count - 1], 5) << isthmus::name(kind);
    }
}

TEST(Peer, ImpossiblePairsAreRefusedWithoutTheDriver) {  // keeps A4, R1
    Device& device = runtime().default_device();
    const long before = driver_calls();
    EXPECT_TRUE(refused_as(device.enable_peer_access(device), Code::invalid_argument));
    if (!device.is_cpu()) {
        EXPECT_TRUE(refused_as(device.enable_peer_access(runtime().cpu()), Code::unsupported));
        EXPECT_TRUE(refused_as(runtime().cpu().enable_peer_access(device), Code::unsupported));
    }
    EXPECT_TRUE(unless_fault(driver_calls() == before));
}

}  // namespace
}  // namespace conformance
