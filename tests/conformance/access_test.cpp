// SPDX-License-Identifier: Apache-2.0
// Access rules on the machine at hand: buffers, views, addresses, concurrent uses, and devices.
#include "scenario.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 256;

void expect(const AccessAnswer& answer, Verdict verdict, const char* what) {
    EXPECT_TRUE(unless_fault(answer.verdict == verdict)) << what << ": " << answer.reason;
    EXPECT_FALSE(answer.reason.empty()) << what;
    EXPECT_EQ(answer.remedy.empty(), answer.verdict == Verdict::yes) << what;
}
Verdict if_so(bool condition) {
    return condition ? Verdict::yes : Verdict::no;
}

TEST(Access, FollowsCapabilitiesForEveryKindAndDevice) {  // keeps A1, A2, A3, A6, A7, A8, K4
    Device& owner = runtime().default_device();
    Buffer<std::int32_t> device = owner.allocate<std::int32_t>(count).value();
    Buffer<std::int32_t> pinned = owner.allocate<std::int32_t>(count, MemoryKind::pinned).value();
    Buffer<std::int32_t> host = owner.allocate_host<std::int32_t>(count).value();
    std::optional<Buffer<std::int32_t>> managed;
    if (!owner.is_cpu() && owner.capabilities().has(Feature::managed)) {
        managed = owner.allocate<std::int32_t>(count, MemoryKind::managed).value();
    }
    const long before = driver_calls();
    on_every_device([&](Device& asking) {
        const Capabilities& c = asking.capabilities();
        if (&asking == &owner) expect(asking.can_access(device), Verdict::yes, "own memory");
        if (asking.is_cpu() && !owner.is_cpu()) expect(asking.can_access(device), Verdict::no, "device memory");
        if (!owner.is_cpu()) {
            expect(asking.can_access(pinned), if_so(asking.is_cpu() || c.has(Feature::unified_addressing)), "pinned");
        }
        expect(asking.can_access(host), if_so(asking.is_cpu() || c.has(Feature::pageable_access)), "pageable");
        if (!managed) return;
        const ManagedModel model = owner.capabilities().managed;
        const bool any_time = model == ManagedModel::concurrent || model == ManagedModel::direct;
        expect(asking.can_access(*managed), if_so(asking.is_cpu() ? any_time : c.has(Feature::managed)), "managed");
    });
    EXPECT_TRUE(unless_fault(driver_calls() == before)) << "owned memory asks no driver";
}

TEST(Access, SeveralBuffersAreAccessibleOnlyTogether) {  // keeps A13
    Device& device = runtime().default_device();
    Buffer<std::int32_t> a = device.allocate<std::int32_t>(count).value();
    Buffer<float> b = device.allocate_shared<float>(count).value();
    Buffer<std::int32_t> none;
    expect(device.can_access(a, b), Verdict::yes, "both");
    expect(device.can_access(std::tie(a, b)), Verdict::yes, "both, as a tuple");
    const AccessAnswer with_none = device.can_access(a, b, none);
    expect(with_none, Verdict::not_verified, "one is empty");
    EXPECT_EQ(with_none.part, 2);
    std::array<Buffer<std::int32_t>, 2> two{std::move(a), std::move(none)};
    EXPECT_EQ(device.can_access(std::span(two)).part, 1);
    expect(device.can_access(std::span(two).first(1)), Verdict::yes, "the first alone");
    if (device.is_cpu()) return;
    const AccessAnswer by_cpu = runtime().cpu().can_access(b, two[0]);
    expect(by_cpu, Verdict::no, "the CPU, of device memory");
    EXPECT_TRUE(unless_fault(by_cpu.part == 1 || b.kind() == MemoryKind::managed));
}

TEST(Access, ViewsAnswerAsTheirOwner) {  // keeps A13
    on_every_device([](Device& owner) {
        for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::device, MemoryKind::managed}) {  // device: staged
            SCOPED_TRACE(isthmus::name(kind));
            if (kind == MemoryKind::managed && !owner.capabilities().has(Feature::managed)) continue;
            Buffer<std::int32_t> buffer = shared_numbers(owner, count, kind);
            const auto open = buffer.read_on_host().value();
            on_every_device([&](Device& asking) {
                EXPECT_EQ(asking.can_access(open).verdict, asking.can_access(buffer).verdict) << asking.index();
            });
        }
    });
}

TEST(Access, AddressesOfTheSystemFollowPageableAccess) {  // keeps A3, A17
    std::vector<std::int32_t> memory(count);
    on_every_device([&](Device& device) {
        const bool reaches = device.is_cpu() || device.capabilities().has(Feature::pageable_access);
        const AccessAnswer answer = device.can_access(memory.data(), memory.size() * sizeof(std::int32_t));
        EXPECT_TRUE(unless_fault(answer.verdict == if_so(reaches))) << answer.reason;
        EXPECT_TRUE(
            unless_fault(device.can_access(View<std::int32_t>{memory.data(), count}).verdict == if_so(reaches)));
        EXPECT_TRUE(unless_fault(device.can_access(Out<std::int32_t>{memory.data(), count}).verdict == if_so(reaches)));
        expect(device.can_access(nullptr, 4), Verdict::no, "null");
        expect(device.can_access(nullptr, 0), Verdict::yes, "nothing");
        expect(device.can_access(View<std::int64_t>{reinterpret_cast<std::int64_t*>(64), std::uint64_t{1} << 62}),
               Verdict::no, "longer than the address space");
    });
}

TEST(Access, TheCoarseQueryBetweenDevicesIsNotAuthoritative) {  // keeps A14
    Device& cpu = runtime().cpu();
    on_every_device([&](Device& device) {
        expect(device.can_access(device), Verdict::yes, "itself");
        if (device.is_cpu()) return;
        expect(device.can_access(cpu), if_so(device.capabilities().has(Feature::pageable_access)), "GPU to CPU");
        expect(cpu.can_access(device), Verdict::no, "CPU to GPU");
        Buffer<std::int32_t> pinned = device.allocate<std::int32_t>(count, MemoryKind::pinned).value();
        expect(cpu.can_access(pinned), Verdict::yes, "and yet the CPU reaches this buffer of the GPU");
    });
}

TEST(Access, ARangeThatLeavesItsAllocationIsRefused) {  // keeps A10
    Device& device = runtime().default_device();
    if (device.is_cpu()) GTEST_SKIP() << "the CPU reaches all of its own memory";
    Buffer<std::int32_t> buffer = device.allocate<std::int32_t>(count).value();
    const auto* first = reinterpret_cast<const std::int32_t*>(buffer.device_address());
    expect(device.can_access(first, count * 4), Verdict::yes, "all of it");
    expect(device.can_access(first + 10, 40), Verdict::yes, "an interior range");
    expect(device.can_access(first + 10, count * 4), Verdict::no, "beyond the end");
    const long before = driver_calls();
    expect(device.can_access(first + 20, 40), Verdict::yes, "asked before");
    EXPECT_TRUE(unless_fault(driver_calls() == before));
}

}  // namespace
}  // namespace conformance
