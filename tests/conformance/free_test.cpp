// SPDX-License-Identifier: Apache-2.0
// Releasing memory: once, to its allocator, with a distinct error for every mistake.
#include "scenario.hpp"

#include <cstdint>
#include <vector>

namespace conformance {
namespace {

const std::vector<MemoryKind> kinds = {MemoryKind::device, MemoryKind::pinned, MemoryKind::host};

TEST(Free, NothingIsGivenBackAsNothing) {  // keeps K8
    on_every_device([](Device& device) {
        for (const MemoryKind kind : kinds) EXPECT_TRUE(worked(device.allocator(kind).release(MemoryBlock{})));
    });
}

TEST(Free, EveryMistakeHasItsOwnErrorAndChangesNothing) {  // keeps K8
    on_every_device([](Device& device) {
        for (const MemoryKind kind : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            const Allocator allocator = device.allocator(kind);
            const MemoryBlock block = allocator.allocate(request_of(4096)).value();
            MemoryBlock inside = block;
            inside.device += 64;
            if (inside.host != nullptr) inside.host = static_cast<char*>(inside.host) + 64;
            MemoryBlock nameless = inside;
            nameless.id = 0;
            MemoryBlock foreign;
            std::uint64_t mine = 0;
            foreign.host = &mine;
            foreign.bytes = sizeof mine;
            EXPECT_TRUE(refused_as(allocator.release(inside), Code::interior_pointer));
            EXPECT_TRUE(refused_as(allocator.release(nameless), Code::interior_pointer));
            EXPECT_TRUE(refused_as(allocator.release(foreign), Code::unknown_pointer));
            EXPECT_TRUE(worked(allocator.release(block))) << "still ours after all of that";
            EXPECT_TRUE(refused_as(allocator.release(block), Code::already_released));
        }
    });
}

TEST(Free, MemoryGoesBackToItsOwnDeviceWhateverWasUsedSince) {  // keeps K9
    on_every_device([](Device& device) {
        const MemoryBlock block = device.allocator(MemoryKind::device).allocate(request_of(4096)).value();
        for (Device& other : all_devices()) {
            if (&other == &device) continue;
            // Uses the other device, whose context would then be current.
            const auto used = other.allocate_shared<std::int32_t>(16).value();
            EXPECT_TRUE(refused_as(other.allocator(MemoryKind::device).release(block), Code::wrong_device));
        }
        EXPECT_TRUE(worked(device.allocator(MemoryKind::pinned).release(block))) << "by what was recorded of it";
    });
}

TEST(Free, ABlockOfAnotherRuntimeIsNotTaken) {  // keeps K8, R7
    RuntimeOptions options;
    options.use_cuda = false;
    Runtime second = Runtime::open(options).value();
    const Allocator theirs = second.cpu().allocator(MemoryKind::host);
    const MemoryBlock block = theirs.allocate(request_of(64)).value();
    EXPECT_TRUE(refused_as(runtime().cpu().allocator(MemoryKind::host).release(block), Code::wrong_device));
    EXPECT_TRUE(worked(theirs.release(block)));
}

TEST(Free, ThreadsAllocateAndReleaseTogether) {  // keeps K12
    on_every_device([](Device& device) {
        const auto churn = [&device] {
            for (int round = 0; round < 20; ++round) {
                for (const MemoryKind kind : kinds) {
                    const Allocator allocator = device.allocator(kind);
                    const MemoryBlock block = allocator.allocate(request_of(512)).value();
                    EXPECT_TRUE(worked(allocator.release(block)));
                }
            }
        };
        Thread one(churn);
        Thread two(churn);
        one.join();
        two.join();
    });
}

}  // namespace
}  // namespace conformance
