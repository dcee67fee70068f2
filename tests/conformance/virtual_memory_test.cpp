// SPDX-License-Identifier: Apache-2.0
// Reservations, physical memory and mappings as separate objects: sizes, properties, access, refusals, and the order of
// destruction.
#include "scenario.hpp"

#include <isthmus/mapping/virtual_memory.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1 << 10;
constexpr LaunchOptions checked{.mode = LaunchMode::checked};

// Runs on every GPU that maps memory. The refusal of the others is tested once, below.
template <class Body>
void on_every_mapping_device(Body body) {
    on_every_device([&](Device& device) {
        if (maps_memory(device)) play_on(device, body);
    });
}

// One granule of the device's own memory at offset 0 of a reservation of four.
struct MappedGranule {
    std::size_t granule = 0;
    AddressReservation reservation;
    PhysicalMemory memory;
    Mapping mapping;

    explicit MappedGranule(Device& device, PhysicalOptions options = {})
        : granule(isthmus::memory_granularity(device, options).value().minimum_bytes),
          reservation(AddressReservation::reserve(device, 4 * granule).value()),
          memory(PhysicalMemory::create(device, granule, options).value()),
          mapping(reservation.map(0, memory).value()) {}
};

std::int32_t last_of(Device& device, View<std::int32_t> view) {
    Buffer<std::int32_t> out = pinned(device, view.count, -1);
    (void)device.stream()
        .launch(checked, scale_into, view.count, out, View<const std::int32_t>{view.data, view.count}, 1)
        .value();
    return out.read_on_host().value()[view.count - 1];
}

// keeps V1
TEST(VirtualMemory, WhatADeviceLacksIsRefusedWithTheReason) {
    on_every_device([](Device& device) {
        const auto& can = device.capabilities();
        const auto reservation = AddressReservation::reserve(device, 1);
        EXPECT_TRUE(maps_memory(device) ? worked(reservation) : refused_as(reservation, Code::unsupported));
        struct Case {
            PhysicalOptions options;
            bool possible;
        };
        PhysicalOptions host, node, fd;
        host.where = MemoryPlace::Where::host;
        node.where = MemoryPlace::Where::host_node;
        fd.exports = ExportKinds::posix_fd;
        const std::array<Case, 4> cases{{{{}, true},
                                         {host, can.has(Feature::host_virtual_memory)},
                                         {node, can.has(Feature::host_numa_virtual_memory)},
                                         {fd, can.has(Feature::export_posix_fd)}}};
        for (const Case& one : cases) {
            const auto made = PhysicalMemory::create(device, 1, one.options);
            if (maps_memory(device) && one.possible) {
                EXPECT_TRUE(worked(made));
            } else {
                const long before = driver_calls();
                const auto again = PhysicalMemory::create(device, 1, one.options);
                ASSERT_TRUE(refused_as(again, Code::unsupported));
                EXPECT_FALSE(again.error().remedy().empty());
                EXPECT_EQ(driver_calls(), before);  // without a driver call
            }
        }
        EXPECT_TRUE(!maps_memory(device) || refused_as(PhysicalMemory::create(device, 0), Code::invalid_argument));
        EXPECT_TRUE(!maps_memory(device) || refused_as(AddressReservation::reserve(device, 0), Code::invalid_argument));
        EXPECT_TRUE(!maps_memory(device) ||
                    refused_as(AddressReservation::reserve(device, 1, 3), Code::invalid_argument));
        EXPECT_TRUE(!maps_memory(device) ||
                    refused_as(PhysicalMemory::create(device, ~std::size_t{0}), Code::invalid_argument));
    });
}

// keeps V2, V3
TEST(VirtualMemory, SizesRoundUpToTheGranularityAndPropertiesReadBack) {
    on_every_mapping_device([](Device& device) {
        for (const MemoryPlace::Where where :
             {MemoryPlace::Where::device, MemoryPlace::Where::host, MemoryPlace::Where::host_node}) {
            PhysicalOptions options;
            options.where = where;
            const auto granularity = isthmus::memory_granularity(device, options);
            if (granularity.code() == Code::unsupported) continue;  // refused above
            const std::size_t granule = granularity.value().minimum_bytes;
            const PhysicalMemory memory = PhysicalMemory::create(device, granule + 1, options).value();
            EXPECT_EQ(memory.asked_bytes(), granule + 1);
            EXPECT_EQ(memory.size_bytes(), 2 * granule);
            const PhysicalProperties properties = memory.properties().value();
            if (where == MemoryPlace::Where::host) {
                EXPECT_TRUE(properties.place.on_host());  // the driver may name the node
            } else {
                EXPECT_EQ(properties.place.where, where);
            }
            EXPECT_TRUE(where != MemoryPlace::Where::device || properties.place.id == device.facts().ordinal);
            EXPECT_EQ(properties.exports, ExportKinds::none);
            EXPECT_FALSE(properties.compressible);
        }
        const AddressReservation reservation = AddressReservation::reserve(device, 1).value();
        EXPECT_EQ(reservation.asked_bytes(), 1u);
        EXPECT_EQ(reservation.size_bytes(), isthmus::memory_granularity(device).value().minimum_bytes);
    });
}

// keeps V4
TEST(VirtualMemory, ExportabilityIsFixedAtCreation) {
    on_every_mapping_device([](Device& device) {
        const PhysicalMemory kept = PhysicalMemory::create(device, 1).value();
        EXPECT_EQ(kept.can_export(ExportKinds::posix_fd).verdict, Verdict::no);
        EXPECT_TRUE(refused_as(kept.export_posix_fd(), Code::unsupported));
        if (!device.capabilities().has(Feature::export_posix_fd)) return;
        PhysicalOptions options;
        options.exports = ExportKinds::posix_fd;
        const PhysicalMemory shared = PhysicalMemory::create(device, 1, options).value();
        EXPECT_EQ(shared.properties().value().exports, ExportKinds::posix_fd);
        EXPECT_EQ(shared.can_export(ExportKinds::posix_fd).verdict, Verdict::yes);
        EXPECT_EQ(shared.can_export(ExportKinds::fabric).verdict, Verdict::no);
        const FileDescriptor handle = shared.export_posix_fd().value();
        EXPECT_GE(handle.get(), 0);
    });
}

// keeps V4, V5: what one process exports another one maps; here it is the same
TEST(VirtualMemory, ExportedMemoryIsImportedByItsHandleAndIsTheSameMemory) {
    on_every_mapping_device([](Device& device) {
        const std::size_t granule = isthmus::memory_granularity(device).value().minimum_bytes;
        const FileDescriptor none;
        const bool by_fd = device.capabilities().has(Feature::export_posix_fd);
        const auto nothing = PhysicalMemory::import_posix_fd(device, none, granule);
        EXPECT_TRUE(refused_as(nothing, by_fd ? Code::invalid_argument : Code::unsupported));
        if (!by_fd) return;
        PhysicalOptions options;
        options.exports = ExportKinds::posix_fd;
        const PhysicalMemory memory = PhysicalMemory::create(device, granule, options).value();
        EXPECT_TRUE(refused_as(memory.export_fabric(), Code::unsupported));
        const FileDescriptor handle = memory.export_posix_fd().value();
        EXPECT_TRUE(refused_as(PhysicalMemory::import_posix_fd(device, handle, 0), Code::invalid_argument));
        EXPECT_TRUE(refused_as(PhysicalMemory::import_posix_fd(device, handle, granule + 1), Code::invalid_argument));
        const PhysicalMemory imported = PhysicalMemory::import_posix_fd(device, handle, granule).value();
        // Observed: set for the exporter's own memory only.
        EXPECT_EQ(imported.properties().value().exports, ExportKinds::none);
        EXPECT_EQ(imported.can_export(ExportKinds::posix_fd).verdict, Verdict::no);
        EXPECT_TRUE(refused_as(imported.export_posix_fd(), Code::unsupported));
        AddressReservation where = AddressReservation::reserve(device, 2 * granule).value();
        Mapping first = where.map(0, memory).value();
        Mapping second = where.map(granule, imported).value();
        first.set_access({&device}).value();
        second.set_access({&device}).value();
        (void)device.stream().launch(checked, add_one, count, first.view<std::int32_t>(0, count)).value();
        const std::int32_t before = last_of(device, second.view<std::int32_t>(0, count));
        (void)device.stream().launch(checked, add_one, count, first.view<std::int32_t>(0, count)).value();
        device.synchronize().value();
        EXPECT_EQ(last_of(device, second.view<std::int32_t>(0, count)), before + 1);
        // Another device cannot import it: the handle tells which device owns the memory.
        for (const Device& other : all_devices()) {
            if (&other == &device || !other.capabilities().has(Feature::export_posix_fd)) continue;
            EXPECT_TRUE(refused_as(PhysicalMemory::import_posix_fd(other, handle, granule), Code::wrong_device));
        }
    });
}

// keeps V5: the attribute promises nothing; every missing piece is a refusal of its own
TEST(VirtualMemory, AFabricHandleGoesThereAndBackWhereThereIsAChannelAndIsRefusedElsewhere) {
    on_every_mapping_device([](Device& device) {
        const std::size_t granule = isthmus::memory_granularity(device).value().minimum_bytes;
        PhysicalOptions options;
        options.exports = ExportKinds::fabric;
        const auto made = PhysicalMemory::create(device, granule, options);
        if (!device.capabilities().has(Feature::export_fabric)) {
            EXPECT_TRUE(refused_as(made, Code::unsupported));
            EXPECT_TRUE(refused_as(PhysicalMemory::import_fabric(device, {}, granule), Code::unsupported));
            return;
        }
        if (!made && made.code() == Code::not_permitted) {
            EXPECT_FALSE(made.error().remedy().empty());
            EXPECT_TRUE(refused_as(PhysicalMemory::import_fabric(device, {}, granule), Code::unsupported));
            return;
        }
        ASSERT_TRUE(worked(made));
        EXPECT_TRUE(refused_as(made->export_posix_fd(), Code::unsupported));
        const FabricHandle handle = made->export_fabric().value();
        const PhysicalMemory imported = PhysicalMemory::import_fabric(device, handle, granule).value();
        EXPECT_EQ(imported.size_bytes(), granule);
        EXPECT_TRUE(refused_as(PhysicalMemory::import_fabric(device, {}, granule), Code::invalid_argument));
        AddressReservation where = AddressReservation::reserve(device, granule).value();
        Mapping mapping = where.map(0, imported).value();
        mapping.set_access({&device}).value();
        (void)last_of(device, mapping.view<std::int32_t>(0, count));
        device.synchronize().value();
    });
}

// keeps V1, V3, V16
TEST(VirtualMemory, AUsageIsGrantedOrRefusedAndReadsBack) {
    on_every_mapping_device([](Device& device) {
        const auto expect = [&](PhysicalUsage usage, bool possible) {
            PhysicalOptions options;
            options.usage = usage;
            const long before = driver_calls();
            auto made = PhysicalMemory::create(device, 1, options);
            if (!possible) {
                EXPECT_TRUE(refused_as(made, Code::unsupported));
                EXPECT_EQ(driver_calls(), before);
                return;
            }
            ASSERT_TRUE(worked(made));
            EXPECT_EQ(made->options().usage, usage);
            // Driver 580.159.04 makes a tile pool (H100) and tells no usage of it.
            const PhysicalUsage told = made->properties().value().usage;
            EXPECT_TRUE(told == usage || (told == PhysicalUsage::none && std::getenv("ISTHMUS_TEST_REAL") != nullptr));
            EXPECT_NE(made->native_handle(), 0u);
            AddressReservation where = AddressReservation::reserve(device, made->size_bytes()).value();
            const auto mapping = where.map(0, *made);
            if (usage == PhysicalUsage::tile_pool) {
                EXPECT_TRUE(refused_as(mapping, Code::unsupported));
            } else {
                EXPECT_TRUE(worked(mapping));
            }
        };
        expect(PhysicalUsage::tile_pool, device.facts().attribute(112).value_or(0) == 1);
        expect(PhysicalUsage::hardware_decompress, device.facts().attribute(136).value_or(0) != 0);
        EXPECT_EQ(PhysicalMemory::create(device, 1).value().properties().value().usage, PhysicalUsage::none);
    });
}

// keeps V3, V10, V16: a further handle is released as the first is, and no other address has one
TEST(VirtualMemory, AnAddressLeadsBackToTheMemoryThatIsMappedThere) {
    on_every_device([](Device& device) {
        if (maps_memory(device)) return;
        EXPECT_TRUE(refused_as(PhysicalMemory::mapped_at(device, 4096), Code::unsupported));
    });
    on_every_mapping_device([](Device& device) {
        std::optional<MappedGranule> scene(device);
        const std::size_t granule = scene->granule;
        const std::uint64_t address = scene->mapping.address();
        const auto unmapped = PhysicalMemory::mapped_at(device, address + granule);
        ASSERT_TRUE(refused_as(unmapped, Code::invalid_argument));
        EXPECT_FALSE(unmapped.error().remedy().empty());
        const Buffer<std::int32_t> allocated = device.allocate<std::int32_t>(count, MemoryKind::device).value();
        EXPECT_TRUE(refused_as(PhysicalMemory::mapped_at(device, allocated.device_address()), Code::invalid_argument));
        scene->mapping.set_access({&device}).value();
        const View<std::int32_t> old = scene->mapping.view<std::int32_t>(0, count);
        Buffer<std::int32_t> seven = pinned(device, count, 7);
        (void)device.stream()
            .launch(checked, scale_into, count, Out<std::int32_t>{old.data, old.count}, seven, 1)
            .value();
        device.synchronize().value();
        const PhysicalMemory again = PhysicalMemory::mapped_at(device, address + granule - 1).value();
        EXPECT_EQ(again.size_bytes(), granule);
        EXPECT_EQ(again.native_handle(), scene->memory.native_handle());
        EXPECT_EQ(again.properties().value().place.id, device.facts().ordinal);
        for (const Device& other : all_devices()) {
            if (&other == &device || !maps_memory(other)) continue;
            EXPECT_TRUE(refused_as(PhysicalMemory::mapped_at(other, address), Code::wrong_device));
        }
        {
            Stream stream = device.create_stream().value();
            Capture capture = stream.begin_capture().value();
            EXPECT_TRUE(refused_as(PhysicalMemory::mapped_at(device, address), Code::capture_error));
        }
        scene.reset();  // the other handle, the mapping and the addresses
        AddressReservation where = AddressReservation::reserve(device, granule).value();
        Mapping mapping = where.map(0, again).value();
        mapping.set_access({&device}).value();
        EXPECT_EQ(last_of(device, mapping.view<std::int32_t>(0, count)), 7);
    });
}

// keeps V13
TEST(VirtualMemory, CompressionIsGrantedOrRefusedAndTheMemorySaysWhich) {
    on_every_mapping_device([](Device& device) {
        PhysicalOptions options;
        options.compressible = true;
        const auto made = PhysicalMemory::create(device, 1, options);
        if (device.facts().attribute(107).value_or(0) != 1) {
            EXPECT_TRUE(refused_as(made, Code::unsupported));
            return;
        }
        ASSERT_TRUE(worked(made));
        EXPECT_TRUE(made->options().compressible);
        // A request: a real driver may decline it, and the properties show that. The simulator grants what the
        // attribute promises.
        const bool granted = made->properties().value().compressible;
        EXPECT_TRUE(granted || driver_calls() < 0);
    });
}

// keeps V8, V9
TEST(VirtualMemory, MappedWithoutAccessIsRefusedAndWithAccessUsable) {
    on_every_mapping_device([](Device& device) {
        MappedGranule scene(device);
        const View<std::int32_t> view = scene.mapping.view<std::int32_t>(0, count);
        EXPECT_EQ(device.can_access(view).verdict, Verdict::no);
        EXPECT_EQ(scene.mapping.access(device), RangeAccess::none);
        const auto closed = device.stream().launch(checked, add_one, count, view);
        ASSERT_TRUE(refused_as(closed, Code::not_accessible));
        EXPECT_NE(closed.error().message().find("not let in"), std::string_view::npos) << closed.error().message();

        EXPECT_TRUE(worked(scene.mapping.set_access({&device}, RangeAccess::read)));
        EXPECT_EQ(scene.mapping.query_access(device).value(), RangeAccess::read);
        EXPECT_EQ(device.can_access(view).verdict, Verdict::yes);
        EXPECT_TRUE(refused_as(device.stream().launch(checked, add_one, count, view), Code::not_accessible));
        (void)last_of(device, view);  // reading is allowed

        EXPECT_TRUE(worked(scene.mapping.set_access({&device})));
        EXPECT_EQ(scene.mapping.query_access(device).value(), RangeAccess::read_write);
        (void)device.stream().launch(checked, add_one, count, view).value();
        const std::int32_t before = last_of(device, view);
        (void)device.stream().launch(checked, add_one, count, view).value();
        EXPECT_EQ(last_of(device, view), before + 1);

        // Nothing is mapped after the mapping's end.
        const View<std::int32_t> beyond = scene.mapping.view<std::int32_t>(0, scene.granule / 4 + 1);
        EXPECT_EQ(device.can_access(beyond).verdict, Verdict::no);
        EXPECT_TRUE(refused_as(device.stream().launch(checked, add_one, beyond.count, beyond), Code::not_accessible));
        device.synchronize().value();
        EXPECT_TRUE(worked(scene.mapping.set_access({&device}, RangeAccess::none)));
        EXPECT_EQ(device.can_access(view).verdict, Verdict::no);
    });
}

// keeps V9: the host, too, is let in, and only where it can be
TEST(VirtualMemory, TheHostIsLetIntoMemoryOnTheHostOnly) {
    on_every_mapping_device([](Device& device) {
        Device& cpu = runtime().cpu();
        MappedGranule own(device);
        EXPECT_TRUE(refused_as(own.mapping.set_access({&cpu}), Code::unsupported));
        EXPECT_EQ(own.mapping.query_access(cpu).value(), RangeAccess::none);
        if (!device.capabilities().has(Feature::host_numa_virtual_memory)) return;
        PhysicalOptions options;
        options.where = MemoryPlace::Where::host_node;
        MappedGranule scene(device, options);
        EXPECT_TRUE(refused_as(scene.mapping.set_access({&cpu}, RangeAccess::read), Code::unsupported));
        EXPECT_TRUE(worked(scene.mapping.set_access({&device, &cpu})));
        EXPECT_EQ(scene.mapping.query_access(cpu).value(), RangeAccess::read_write);
        const View<std::int32_t> view = scene.mapping.view<std::int32_t>(0, count);
        for (std::size_t at = 0; at < count; ++at) view.data[at] = static_cast<std::int32_t>(at);
        (void)device.stream().launch(checked, add_one, count, view).value();
        device.synchronize().value();
        EXPECT_EQ(view.data[count - 1], static_cast<std::int32_t>(count));
        (void)cpu.stream().launch(checked, add_one, count, view).value();
        EXPECT_EQ(view.data[0], 2);
    });
}

template <class M>
concept unmaps_parts = requires(M& mapping) {
    mapping.unmap(std::size_t{0}, std::size_t{1});
};

// keeps V7
TEST(VirtualMemory, MappingOverAMappingAndFreeingAMappedRangeAreRefused) {
    // A mapping is unmapped as a whole: no call takes a part.
    static_assert(!unmaps_parts<Mapping>);
    on_every_mapping_device([](Device& device) {
        MappedGranule scene(device);
        const long before = driver_calls();
        EXPECT_TRUE(refused_as(scene.reservation.map(0, scene.memory), Code::in_use));
        EXPECT_TRUE(refused_as(scene.reservation.map(4096, scene.memory), Code::invalid_argument));
        EXPECT_TRUE(refused_as(scene.reservation.map(4 * scene.granule, scene.memory), Code::invalid_argument));
        const auto mapped = scene.reservation.release();
        ASSERT_TRUE(refused_as(mapped, Code::in_use));
        EXPECT_NE(mapped.error().remedy().find("unmap"), std::string_view::npos);
        EXPECT_TRUE(unless_fault(driver_calls() == before));
        EXPECT_EQ(scene.reservation.mapped_bytes(), scene.granule);
        EXPECT_TRUE(worked(scene.mapping.unmap()));
        EXPECT_TRUE(refused_as(scene.mapping.unmap(), Code::invalid_handle));
        EXPECT_TRUE(refused_as(scene.mapping.set_access({&device}), Code::invalid_handle));
        EXPECT_EQ(scene.mapping.address(), 0u);
        EXPECT_TRUE(worked(scene.reservation.release()));
        EXPECT_TRUE(refused_as(scene.reservation.release(), Code::invalid_handle));
        EXPECT_TRUE(refused_as(scene.reservation.map(0, scene.memory), Code::invalid_handle));
    });
}

// keeps V10
TEST(VirtualMemory, WhateverGoesFirstTheDriverSeesUnmapThenReleaseThenFree) {
    on_every_mapping_device([](Device& device) {
        std::optional<Mapping> mapping;
        {
            MappedGranule scene(device);
            scene.mapping.set_access({&device}).value();
            mapping = std::move(scene.mapping);
        }  // the memory and the reservation are destroyed first: the mapping holds them
        const View<std::int32_t> view = mapping->view<std::int32_t>(0, count);
        (void)device.stream().launch(checked, add_one, count, view).value();
        device.synchronize().value();
        const long unmaps = driver_calls("cuMemUnmap");
        const long releases = driver_calls("cuMemRelease");
        const long frees = driver_calls("cuMemAddressFree");
        mapping.reset();
        if (unmaps >= 0) {
            EXPECT_TRUE(unless_fault(driver_calls("cuMemUnmap") == unmaps + 1));
            EXPECT_TRUE(unless_fault(driver_calls("cuMemRelease") == releases + 1));
            EXPECT_TRUE(unless_fault(driver_calls("cuMemAddressFree") == frees + 1));
        }
    });
}

// keeps V6
TEST(VirtualMemory, OneReservationHoldsMemoryOfSeveralDevicesAndOfTheHost) {
    on_every_mapping_device([](Device& device) {
        const std::size_t granule = isthmus::memory_granularity(device).value().minimum_bytes;
        std::vector<const Device*> owners;
        for (const Device& other : all_devices()) {
            if (maps_memory(other)) owners.push_back(&other);
        }
        AddressReservation reservation = AddressReservation::reserve(device, (owners.size() + 1) * granule).value();
        std::vector<Mapping> mappings;
        bool reached = true;
        for (const Device* owner : owners) {
            const PhysicalMemory memory = PhysicalMemory::create(*owner, granule).value();
            mappings.push_back(reservation.map(mappings.size() * granule, memory).value());
            const auto let_in = mappings.back().set_access({&device});
            reached = reached && let_in.ok();
            EXPECT_TRUE(let_in.ok() ? worked(let_in) : refused_as(let_in, Code::unsupported));
        }
        PhysicalOptions options;
        options.where = MemoryPlace::Where::host_node;
        if (device.capabilities().has(Feature::host_numa_virtual_memory)) {
            const PhysicalMemory memory = PhysicalMemory::create(device, granule, options).value();
            mappings.push_back(reservation.map(mappings.size() * granule, memory).value());
            mappings.back().set_access({&device}).value();
        }
        if (!reached) return;
        // As one range.
        const std::size_t elements = mappings.size() * granule / sizeof(std::int32_t);
        const View<std::int32_t> all{mappings.front().view<std::int32_t>(0, 1).data, elements};
        EXPECT_EQ(device.can_access(all).verdict, Verdict::yes);
        const std::size_t border = granule / sizeof(std::int32_t) - count / 2;
        if (mappings.size() < 2) return;
        const View<std::int32_t> across{all.data + border, count};
        (void)device.stream().launch(checked, add_one, count, across).value();
        const std::int32_t before = last_of(device, across);
        (void)device.stream().launch(checked, add_one, count, across).value();
        EXPECT_EQ(last_of(device, across), before + 1);
        device.synchronize().value();
    });
}

// keeps K10, K13: a capture is not disturbed, and what goes while it is open goes behind it
TEST(VirtualMemory, WhileACaptureIsOpenNothingIsMappedHereAndNothingIsUnmapped) {
    on_every_mapping_device([](Device& device) {
        MappedGranule scene(device);
        std::optional<Mapping> other = scene.reservation.map(scene.granule, scene.memory).value();
        Stream stream = device.create_stream().value();
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(refused_as(PhysicalMemory::create(device, 1), Code::capture_error));
        EXPECT_TRUE(refused_as(AddressReservation::reserve(device, 1), Code::capture_error));
        EXPECT_TRUE(refused_as(scene.reservation.map(2 * scene.granule, scene.memory), Code::capture_error));
        EXPECT_TRUE(refused_as(scene.mapping.set_access({&device}), Code::capture_error));
        EXPECT_TRUE(refused_as(scene.mapping.unmap(), Code::capture_error));
        other.reset();
        EXPECT_TRUE(unless_fault(scene.reservation.mapped_bytes() == 2 * scene.granule));
        EXPECT_TRUE(worked(capture.end()));
        EXPECT_TRUE(unless_fault(scene.reservation.mapped_bytes() == scene.granule));
    });
}

// keeps K10, K13: the graph of another thread's capture may be about to use the memory
TEST(VirtualMemory, WhileAnotherThreadCapturesMemoryIsMappedAndNoneIsUnmapped) {
    on_every_mapping_device([](Device& device, Stream stream) {
        MappedGranule scene(device);
        Capture capture = stream.begin_capture().value();
        Thread([&] {
            EXPECT_TRUE(worked(scene.reservation.map(scene.granule, scene.memory)));
            EXPECT_TRUE(refused_as(scene.mapping.unmap(), Code::capture_error));
        }).join();
        EXPECT_TRUE(worked(capture.end()));
        EXPECT_TRUE(worked(scene.mapping.unmap()));
    });
}

// keeps V6, K18
TEST(VirtualMemory, WhatBelongsToAnotherRuntimeIsRefused) {
    Runtime second = Runtime::open().value();
    on_every_mapping_device([&](Device& device) {
        const Device& theirs = *second.device(device.index()).value();
        MappedGranule scene(device);
        const PhysicalMemory memory = PhysicalMemory::create(theirs, scene.granule).value();
        EXPECT_TRUE(refused_as(scene.reservation.map(scene.granule, memory), Code::wrong_device));
        EXPECT_TRUE(refused_as(scene.mapping.set_access({&theirs}), Code::wrong_device));
        EXPECT_TRUE(refused_as(scene.mapping.query_access(theirs), Code::wrong_device));
        EXPECT_EQ(scene.mapping.access(theirs), RangeAccess::none);
    });
}

TEST(VirtualMemory, MemoryThatWasMovedFromIsRefused) {
    on_every_mapping_device([](Device& device) {
        PhysicalMemory memory = PhysicalMemory::create(device, 1).value();
        const PhysicalMemory moved = std::move(memory);
        EXPECT_TRUE(refused_as(memory.properties(), Code::invalid_handle));       // NOLINT(bugprone-use-after-move)
        EXPECT_TRUE(refused_as(memory.export_posix_fd(), Code::invalid_handle));  // NOLINT(bugprone-use-after-move)
        EXPECT_TRUE(worked(moved.properties()));
    });
}

// keeps V4
TEST(VirtualMemory, ADescriptorOfSomethingElseIsNoMemory) {
    on_every_mapping_device([](Device& device) {
        if (!device.capabilities().has(Feature::export_posix_fd)) return;
        const std::size_t granule = isthmus::memory_granularity(device).value().minimum_bytes;
        const FileDescriptor file(open("/dev/null", O_RDWR | O_CLOEXEC));
        const auto imported = PhysicalMemory::import_posix_fd(device, file, granule);
        ASSERT_TRUE(refused_as(imported, Code::invalid_argument));
        EXPECT_NE(imported.error().message().find("no memory of this driver"), std::string_view::npos);
        EXPECT_FALSE(imported.error().call().empty());
    });
}

}  // namespace
}  // namespace conformance
