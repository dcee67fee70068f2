// SPDX-License-Identifier: Apache-2.0
// Multicast objects in their order: devices join, memory is bound, mapped, and undone. On the simulator only: tests
// never ask real drivers for a multicast object.
#include "multicast_scenario.hpp"
#include "multimem_kernels.hpp"

#include <array>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace conformance {
namespace {

// V14: the types enforce the order. Nothing can be bound to or mapped from a group, and no device can join an object.
template <class T>
concept Binds = requires(T& object, const PhysicalMemory& memory) {
    object.bind(std::size_t{0}, memory);
};
template <class T>
concept IsMapped = requires(AddressReservation& where, const T& object) {
    where.map(std::size_t{0}, object);
};
template <class T>
concept Adds = requires(T& object, const Device& device) {
    object.add(device);
};
template <class T>
concept CompletesInPlace = requires(T& object) {
    object.complete();
};
static_assert(!Binds<MulticastGroup> && !IsMapped<MulticastGroup> && Adds<MulticastGroup>);
static_assert(Binds<MulticastObject> && IsMapped<MulticastObject> && !Adds<MulticastObject>);
static_assert(!CompletesInPlace<MulticastGroup>);

class Multicast : public testing::Test {
protected:
    void SetUp() override {
        if (std::getenv("ISTHMUS_TEST_REAL") != nullptr) GTEST_SKIP() << "never on real hardware";
        (void)runtime();
        const bool simulated = driver_calls() >= 0;
        if (!simulated && runtime().device_count() > 1) GTEST_SKIP() << "this driver is not the simulator";
    }
};

// Two granules, joined by all devices, with memory of each device bound at the beginning.
struct BoundTeam {
    Devices devices;
    std::size_t granule;
    MulticastObject object;

    explicit BoundTeam(const Devices& all)
        : devices(all), granule(granule_of(*all.front(), all.size())), object(completed(all, 2 * granule)) {
        for (const Device* device : devices) {
            object.bind(0, PhysicalMemory::create(*device, granule).value()).value();
        }
    }
    static MulticastObject completed(const Devices& all, std::size_t bytes) {
        MulticastGroup group = MulticastGroup::create(*all.front(), all.size(), bytes).value();
        for (const Device* device : all) group.add(*device).value();
        return complete(group).value();
    }
    AddressReservation reserve() const {
        return AddressReservation::reserve(*devices.front(), 2 * granule, granule).value();
    }
};

// Runs on machines where two or more devices support multicast.
template <class Body>
void on_every_team(Body body) {
    const Devices all = taking_part();
    if (all.size() >= 2) body(all);
}

// keeps V14
TEST_F(Multicast, WhoTakesNoPartIsRefusedWithTheReasonAndNoDriverCall) {
    on_every_device([](Device& device) {
        const bool takes_part = device.capabilities().has(Feature::multicast);
        EXPECT_EQ(isthmus::can_multicast(device).verdict, takes_part ? Verdict::yes : Verdict::no);
        const bool multimem = takes_part && device.facts().attribute(75).value_or(0) >= 9;
        EXPECT_EQ(isthmus::can_multimem(device).verdict, multimem ? Verdict::yes : Verdict::no);
        const long before = driver_calls();
        const std::size_t others = taking_part().size();
        EXPECT_TRUE(refused_as(MulticastGroup::create(device, 2 + others, 1), Code::unsupported));
        if (!takes_part) {
            const auto refused = MulticastGroup::create(device, 2, 1);
            ASSERT_TRUE(refused_as(refused, Code::unsupported));
            EXPECT_FALSE(refused.error().remedy().empty());
            EXPECT_TRUE(refused_as(isthmus::multicast_granularity(device, 2), Code::unsupported));
        } else {
            EXPECT_TRUE(refused_as(MulticastGroup::create(device, 1, 1), Code::invalid_argument));
            EXPECT_TRUE(refused_as(MulticastGroup::create(device, 2, 0), Code::invalid_argument));
        }
        EXPECT_EQ(driver_calls(), before);
    });
}

TEST_F(Multicast, DevicesOfAnotherRuntimeAreNotAdded) {
    const Devices devices = taking_part();
    if (devices.size() < 2) GTEST_SKIP() << "fewer than two devices take part";
    Runtime second = Runtime::open().value();
    MulticastGroup group = MulticastGroup::create(*devices[0], 2, 1).value();
    EXPECT_TRUE(refused_as(group.add(*second.device(devices[0]->index()).value()), Code::wrong_device));
    EXPECT_EQ(group.added(), 0u);
    EXPECT_TRUE(worked(group.add(*devices[0])));
}

// keeps V14: what comes before all devices were added never reaches the driver, which would wait there
TEST_F(Multicast, NothingIsBoundOrMappedBeforeAllDevicesWereAdded) {
    on_every_team([](const Devices& all) {
        const std::size_t granule = granule_of(*all.front(), all.size());
        MulticastGroup group = MulticastGroup::create(*all.front(), all.size(), granule + 1).value();
        EXPECT_EQ(group.asked_bytes(), granule + 1);
        EXPECT_EQ(group.size_bytes(), 2 * granule);
        EXPECT_EQ(group.devices(), all.size());
        EXPECT_TRUE(refused_as(group.add(runtime().cpu()), Code::unsupported));
        for (const Device* device : all) {
            const long before = driver_calls();
            const auto early = complete(group);
            ASSERT_TRUE(refused_as(early, Code::not_ready));
            const std::string missing = std::to_string(group.added()) + " of " + std::to_string(all.size());
            EXPECT_NE(early.error().message().find(missing), std::string_view::npos) << early.error().message();
            EXPECT_TRUE(refused_as(complete(group, all.size()), Code::invalid_argument));  // no further device
            EXPECT_TRUE(unless_fault(driver_calls() == before));
            EXPECT_TRUE(worked(group.add(*device)));  // a refused group is unchanged
            EXPECT_TRUE(refused_as(group.add(*device), Code::invalid_argument));
        }
        MulticastObject object = complete(group).value();
        EXPECT_EQ(object.size_bytes(), 2 * granule);
        EXPECT_EQ(object.devices(), all.size());
        EXPECT_TRUE(refused_as(group.add(*all.front()), Code::invalid_handle));
        EXPECT_TRUE(refused_as(complete(group), Code::invalid_handle));
    });
}

// keeps V14
TEST_F(Multicast, EachDeviceBindsItsOwnMemoryAndUnbindsItAsItWasBound) {
    on_every_team([](const Devices& all) {
        BoundTeam scene(all);
        const std::size_t granule = scene.granule;
        for (const Device* device : all) {
            const PhysicalMemory memory = PhysicalMemory::create(*device, 2 * granule).value();
            EXPECT_EQ(scene.object.bound_bytes(*device), granule);
            const long before = driver_calls();
            EXPECT_TRUE(refused_as(scene.object.bind(0, memory), Code::in_use));
            EXPECT_TRUE(refused_as(scene.object.bind(4096, memory, 0, granule), Code::invalid_argument));
            EXPECT_TRUE(refused_as(scene.object.bind(granule, memory, granule, 2 * granule), Code::invalid_argument));
            EXPECT_TRUE(refused_as(scene.object.bind(2 * granule, memory, 0, granule), Code::invalid_argument));
            EXPECT_TRUE(refused_as(scene.object.bind(granule, memory, 0, 0), Code::invalid_argument));
            EXPECT_TRUE(refused_as(scene.object.unbind(*device, granule), Code::invalid_argument));
            EXPECT_TRUE(unless_fault(driver_calls() == before));
            EXPECT_TRUE(worked(scene.object.bind(granule, memory, granule, granule)));
            EXPECT_EQ(scene.object.bound_bytes(*device), 2 * granule);
            EXPECT_TRUE(worked(scene.object.unbind(*device, 0)));
            EXPECT_EQ(scene.object.bound_bytes(*device), granule);
            EXPECT_TRUE(worked(scene.object.bind(0, memory, 0, granule)));
        }
        if (!all.front()->capabilities().has(Feature::host_numa_virtual_memory)) return;
        PhysicalOptions on_host;
        on_host.where = MemoryPlace::Where::host_node;
        const PhysicalMemory host = PhysicalMemory::create(*all.front(), granule, on_host).value();
        EXPECT_TRUE(refused_as(scene.object.bind(0, host), Code::unsupported));
    });
}

// keeps V14
TEST_F(Multicast, WhatIsMappedIsBoundByItsAddress) {
    on_every_team([](const Devices& all) {
        const std::size_t granule = granule_of(*all.front(), all.size());
        MulticastObject object = BoundTeam::completed(all, 2 * granule);
        for (const Device* device : all) {
            AddressReservation where = AddressReservation::reserve(*device, 3 * granule, granule).value();
            std::optional<Mapping> mapping = where.map(0, PhysicalMemory::create(*device, 2 * granule).value()).value();
            const std::uint64_t address = mapping->address();
            const long before = driver_calls("cuMulticastBindAddr");
            EXPECT_TRUE(
                refused_as(object.bind_address(0, *device, address + 2 * granule, granule), Code::invalid_argument));
            EXPECT_TRUE(refused_as(object.bind_address(0, *device, address + 4096, granule), Code::invalid_argument));
            EXPECT_TRUE(
                refused_as(object.bind_address(0, *device, address + granule, 2 * granule), Code::invalid_argument));
            const Device& other = device == all.front() ? *all.back() : *all.front();
            EXPECT_TRUE(refused_as(object.bind_address(0, other, address, granule), Code::wrong_device));
            EXPECT_TRUE(unless_fault(driver_calls("cuMulticastBindAddr") == before));
            EXPECT_TRUE(worked(object.bind_address(granule, *device, address + granule, granule)));
            EXPECT_TRUE(unless_fault(driver_calls("cuMulticastBindAddr") == before + 1));
            EXPECT_TRUE(refused_as(object.bind_address(granule, *device, address, granule), Code::in_use));
            EXPECT_EQ(object.bound_bytes(*device), granule);
            mapping.reset();  // what is bound stays
            EXPECT_EQ(object.bound_bytes(*device), granule);
            EXPECT_TRUE(worked(object.unbind(*device, granule)));
        }
        AddressReservation where = AddressReservation::reserve(*all.front(), 2 * granule, granule).value();
        Mapping mapping = where.map(0, object).value();
        EXPECT_TRUE(refused_as(PhysicalMemory::mapped_at(*all.front(), mapping.address()), Code::invalid_argument));
        EXPECT_TRUE(
            refused_as(object.bind_address(0, *all.front(), mapping.address(), granule), Code::invalid_argument));
    });
}

// keeps V8, V14
TEST_F(Multicast, MappedItIsForMultimemInstructionsOfItsDevicesAlone) {
    on_every_team([](const Devices& all) {
        BoundTeam scene(all);
        AddressReservation where = scene.reserve();
        EXPECT_TRUE(refused_as(where.map(4096, scene.object), Code::invalid_argument));
        Mapping mapping = where.map(0, scene.object).value();
        EXPECT_EQ(mapping.size_bytes(), scene.object.size_bytes());
        EXPECT_TRUE(refused_as(mapping.set_access({&runtime().cpu()}), Code::wrong_device));
        const long before = driver_calls("cuMemSetAccess");
        EXPECT_TRUE(worked(mapping.set_access(all)));
        EXPECT_TRUE(unless_fault(driver_calls("cuMemSetAccess") == before + 1));
        Device& first = *runtime().device(all.front()->index()).value();
        EXPECT_EQ(mapping.access(first), RangeAccess::read_write);
        const auto view = mapping.view<std::int32_t>(0, 16);
        const auto answer = first.can_access(view);
        EXPECT_EQ(answer.verdict, Verdict::no);
        EXPECT_NE(answer.reason.find("multimem"), std::string_view::npos) << answer.reason;
        const LaunchOptions checked{.mode = LaunchMode::checked};
        EXPECT_TRUE(refused_as(first.stream().launch(checked, add_one, 16, view), Code::not_accessible));
    });
}

// Memory of one device, bound to the object and mapped for its own kernels.
struct Replica {
    AddressReservation where;
    PhysicalMemory memory;
    Mapping mapping;

    Replica(Device& device, MulticastObject& object, std::size_t granule)
        : where(AddressReservation::reserve(device, granule).value()),
          memory(PhysicalMemory::create(device, granule).value()),
          mapping(where.map(0, memory).value()) {
        mapping.set_access({&device}).value();
        object.bind(0, memory).value();
    }
    template <class T>
    Out<T> out(std::size_t count) const {
        const View<T> view = mapping.view<T>(0, count);
        return {view.data, view.count};
    }
    std::vector<std::int32_t> read(Device& device, std::size_t count) const {
        Buffer<std::int32_t> seen = pinned(device, count, -1);
        const View<std::int32_t> view = mapping.view<std::int32_t>(0, count);
        (void)device.stream()
            .launch(scale_into, count, seen, View<const std::int32_t>{view.data, view.count}, 1)
            .value();
        device.stream().synchronize().value();
        const auto all = seen.read_on_host().value();
        return {all.begin(), all.end()};
    }
};

// keeps V14: a load combines the words of every device, and a store or an update reaches each
TEST_F(Multicast, MultimemFunctionsReachTheMemoryOfEveryDevice) {
    on_every_team([](const Devices& all) {
        constexpr std::size_t count = 300;
        Device& first = *runtime().device(all.front()->index()).value();
        if (!isthmus::can_multimem(first)) return;
        const std::size_t granule = granule_of(first, all.size());
        MulticastObject object = BoundTeam::completed(all, granule);
        std::vector<Replica> replicas;
        std::int64_t sum = 0, bits_and = -1, bits_or = 0, bits_xor = 0;
        for (std::size_t at = 0; at < all.size(); ++at) {
            Device& device = *runtime().device(all[at]->index()).value();
            replicas.emplace_back(device, object, granule);
            const auto value = static_cast<std::int32_t>(at) * 6 - 3;  // −3, 3, 9, ...: as the lower half of 64 bits
            Buffer<std::int32_t> values = pinned(device, count, value);
            (void)device.stream()
                .launch(scale_into, count, replicas.back().out<std::int32_t>(count), values, 1)
                .value();
            device.stream().synchronize().value();
            const std::int64_t word = (std::int64_t{value} << 32) | static_cast<std::uint32_t>(value);
            sum += value;
            bits_and &= word;
            bits_or |= word;
            bits_xor ^= word;
        }
        const std::int64_t least = (std::int64_t{-3} << 32) | 0xFFFFFFFD;
        const std::int64_t value = static_cast<std::int64_t>(all.size()) * 6 - 9;
        const std::int64_t greatest = (value << 32) | value;
        AddressReservation where = AddressReservation::reserve(first, granule, granule).value();
        Mapping mapping = where.map(0, object).value();
        mapping.set_access(all).value();
        const std::uint64_t address = mapping.address();
        for (const Device* each : all) {
            Device& device = *runtime().device(each->index()).value();
            Buffer<std::int32_t> sums = pinned(device, count, 0);
            (void)device.stream().launch(multimem_sum, count, sums, address).value();
            expect_all(sums, static_cast<std::int32_t>(sum));
            Buffer<std::int64_t> combined = device.allocate_shared<std::int64_t>(6, {.host = Use::reads_once}).value();
            (void)device.stream().launch(multimem_combine, 1, combined, address).value();
            const auto seen = combined.read_on_host().value();
            EXPECT_EQ(seen[1], least);
            EXPECT_EQ(seen[2], greatest);
            EXPECT_EQ(seen[3], bits_and);
            EXPECT_EQ(seen[4], bits_or);
            EXPECT_EQ(seen[5], bits_xor);
        }
        const struct {
            std::int32_t operation, value, wanted;
        } changes[] = {{0, 12, 12}, {1, 5, 17}, {2, 9, 9}, {3, 14, 14}, {4, 7, 6}, {5, 8, 14}, {6, 3, 13}};
        for (const auto& change : changes) {
            Device& device =
                *runtime().device(all[static_cast<std::size_t>(change.operation) % all.size()]->index()).value();
            (void)device.stream().launch(multimem_change, count, address, change.operation, change.value).value();
            device.stream().synchronize().value();
            for (std::size_t at = 0; at < all.size(); ++at) {
                Device& owner = *runtime().device(all[at]->index()).value();
                EXPECT_EQ(replicas[at].read(owner, count), std::vector<std::int32_t>(count, change.wanted))
                    << "operation " << change.operation << " in the memory of device " << at;
            }
        }
        Buffer<float> floats = first.allocate_shared<float>(count, {.host = Use::reads_once}).value();
        (void)first.stream().launch(multimem_sum_floats, count, floats, address).value();
        EXPECT_EQ(floats.read_on_host().value()[count - 1], 1.25F * static_cast<float>(all.size()));
    });
}

// keeps V10, V14
TEST_F(Multicast, WhateverGoesFirstTheDriverSeesUnbindThenUnmapThenRelease) {
    on_every_team([](const Devices& all) {
        const std::array<const char*, 4> calls{"cuMulticastUnbind", "cuMemUnmap", "cuMemRelease", "cuMemAddressFree"};
        const auto n = static_cast<long>(all.size());
        std::optional<Mapping> mapping;
        {
            BoundTeam scene(all);
            AddressReservation where = scene.reserve();
            mapping = where.map(0, scene.object).value();
            mapping->set_access(all).value();
        }  // the object, its memory and the reservation are destroyed first: the mapping holds them
        std::array<long, 4> before{};
        for (std::size_t at = 0; at < calls.size(); ++at) before[at] = driver_calls(calls[at]);
        EXPECT_TRUE(worked(mapping->unmap()));
        const std::array<long, 4> wanted{n, 1, n + 1, 1};
        for (std::size_t at = 0; at < calls.size(); ++at) {
            EXPECT_TRUE(unless_fault(driver_calls(calls[at]) == before[at] + wanted[at])) << calls[at];
        }
        // The reverse order: the object outlives its mapping, and bound memory stays bound.
        BoundTeam scene(all);
        {
            AddressReservation where = scene.reserve();
            Mapping short_lived = where.map(0, scene.object).value();
            before[0] = driver_calls(calls[0]);
        }
        EXPECT_TRUE(unless_fault(driver_calls(calls[0]) == before[0]));
        EXPECT_EQ(scene.object.bound_bytes(*all.front()), scene.granule);
    });
}

// keeps K10, V14: a capture is not disturbed, and what goes while it is open goes behind it
TEST_F(Multicast, WhileACaptureIsOpenNothingIsJoinedBoundOrUnbound) {
    on_every_team([](const Devices& all) {
        std::optional<BoundTeam> scene(all);
        const PhysicalMemory memory = PhysicalMemory::create(*all.front(), scene->granule).value();
        MulticastGroup group = MulticastGroup::create(*all.front(), all.size(), 1).value();
        Stream stream = runtime().device(all.front()->index()).value()->create_stream().value();
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(refused_as(MulticastGroup::create(*all.front(), 2, 1), Code::capture_error));
        EXPECT_TRUE(refused_as(group.add(*all.front()), Code::capture_error));
        EXPECT_TRUE(refused_as(scene->object.bind(scene->granule, memory), Code::capture_error));
        EXPECT_TRUE(refused_as(scene->object.unbind(*all.front(), 0), Code::capture_error));
        const long before = driver_calls("cuMulticastUnbind");
        scene.reset();
        EXPECT_TRUE(unless_fault(driver_calls("cuMulticastUnbind") == before));
        EXPECT_TRUE(worked(capture.end()));
        EXPECT_TRUE(unless_fault(driver_calls("cuMulticastUnbind") == before + static_cast<long>(all.size())));
    });
}

// keeps V4, V14: handles are shared as others are
TEST_F(Multicast, WhatIsExportableIsFixedWhenItIsMade) {
    on_every_team([](const Devices& all) {
        const Device& device = *all.front();
        const MulticastGroup kept = MulticastGroup::create(device, all.size(), 1).value();
        EXPECT_TRUE(refused_as(kept.export_posix_fd(), Code::unsupported));
        if (!device.capabilities().has(Feature::export_posix_fd)) return;
        // For one more device than this process has, which another process would add.
        MulticastGroup shared =
            MulticastGroup::create(device, all.size() + 1, 1, {.exports = ExportKinds::posix_fd}).value();
        for (const Device* each : all) shared.add(*each).value();
        EXPECT_TRUE(refused_as(complete(shared), Code::not_ready));
        EXPECT_TRUE(refused_as(complete(shared, 2), Code::invalid_argument));
        EXPECT_TRUE(worked(shared.export_posix_fd()));
        // Relies on the other process's statement, which may be wrong.
        MulticastObject object = complete(shared, 1).value();
        const PhysicalMemory alone = PhysicalMemory::create(device, object.size_bytes()).value();
        EXPECT_TRUE(refused_as(object.bind(0, alone), Code::unsupported));
        const FileDescriptor none;
        EXPECT_TRUE(refused_as(MulticastGroup::import_posix_fd(device, none, 2, 1), Code::invalid_argument));
    });
}

// keeps V14: what another end imports is the same object, which is complete when both have added their devices
TEST_F(Multicast, AnImportedGroupIsJoinedFromBothEndsAndThenBoundAndMappedThroughEither) {
    on_every_team([](const Devices& all) {
        const Device& first = *all.front();
        if (!first.capabilities().has(Feature::export_posix_fd)) return;
        const std::size_t granule = granule_of(first, all.size());
        const PhysicalOptions shareable{.exports = ExportKinds::posix_fd};
        MulticastGroup made =
            MulticastGroup::create(first, all.size(), granule, {.exports = ExportKinds::posix_fd}).value();
        const FileDescriptor fd = made.export_posix_fd().value();
        auto import = MulticastGroup::import_posix_fd(*all.back(), fd, all.size(), granule);
        ASSERT_TRUE(worked(import));
        MulticastGroup& imported = *import;
        EXPECT_EQ(imported.size_bytes(), granule);
        EXPECT_EQ(imported.added(), 0u) << "of this end";
        made.add(first).value();
        EXPECT_TRUE(refused_as(imported.add(first), Code::invalid_argument)) << "the driver knows of the other end";
        for (std::size_t at = 1; at < all.size(); ++at) {
            EXPECT_TRUE(refused_as(complete(made, at - 1), Code::not_ready)) << "an end vouches for what it was told";
            EXPECT_TRUE(worked(imported.add(*all[at])));
        }
        MulticastObject here = complete(made, all.size() - 1).value();
        MulticastObject there = complete(imported, 1).value();
        EXPECT_TRUE(worked(here.bind(0, PhysicalMemory::create(first, granule, shareable).value())));
        for (std::size_t at = 1; at < all.size(); ++at) {
            const PhysicalMemory memory = PhysicalMemory::create(*all[at], granule, shareable).value();
            EXPECT_TRUE(worked(there.bind(0, memory)));
            EXPECT_EQ(there.bound_bytes(*all[at]), granule);
            EXPECT_EQ(here.bound_bytes(*all[at]), 0u) << "what the other end bound it unbinds";
        }
        AddressReservation where = AddressReservation::reserve(*all.back(), granule, granule).value();
        Mapping mapping = where.map(0, there).value();
        EXPECT_TRUE(worked(mapping.set_access({all.back()})));
        EXPECT_EQ(mapping.access(*all.back()), RangeAccess::read_write);
        EXPECT_TRUE(worked(there.unbind(*all.back(), 0)));
        // Memory that is no multicast object is refused, whatever its descriptor says.
        const FileDescriptor plain =
            PhysicalMemory::create(first, granule, shareable).value().export_posix_fd().value();
        auto wrong = MulticastGroup::import_posix_fd(first, plain, all.size(), granule);
        if (wrong) {
            EXPECT_TRUE(refused_as(wrong->add(first), Code::invalid_argument));
        }
    });
}

}  // namespace
}  // namespace conformance
