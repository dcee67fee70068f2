// SPDX-License-Identifier: Apache-2.0
// How foreign memory is adopted, over every row, sort of memory and declared use.
#include "some_devices.hpp"

#include <access_rules.hpp>
#include <adoption_rules.hpp>
#include <allocation_policy.hpp>
#include <platform/capability_table.hpp>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using namespace some_devices;
using K = MemoryKind;

constexpr std::size_t bytes = std::size_t{1} << 20;
constexpr std::array<Use, 6> uses = {Use::never,       Use::reads_once,   Use::reads_often,
                                     Use::writes_once, Use::writes_often, Use::reads_and_writes};

bool writes(Use use) {
    return use == Use::writes_once || use == Use::writes_often || use == Use::reads_and_writes;
}

template <class Each>
void for_every_use(Each each) {
    for (const Use host : uses) {
        for (const Use device : uses) {
            for (const Prefer prefer : {Prefer::throughput, Prefer::latency}) {
                each(SharedUse{.host = host, .device = device, .prefer = prefer});
            }
        }
    }
}

// The device must be able to access the address that it gets, whatever became of the registration.
void expect_lawful(const Capabilities& c, const ForeignMemory& memory, const AdoptionPlan& plan) {
    const auto lawful = [&](const AdoptedAs& as) {
        EXPECT_FALSE(as.reason.empty());
        EXPECT_TRUE(device_access(c, as.kind)) << name(as.kind);
        EXPECT_EQ(as.path == LaunchPath::stage, as.kind == K::device) << name(as.kind);
        if (memory.driver_mapping && c.memory != MemoryModel::host) {
            EXPECT_EQ(as.path, LaunchPath::stage);
        }
    };
    lawful(plan.otherwise);
    if (!plan.registers) return;
    lawful(plan.registered);
    EXPECT_TRUE(c.has(Feature::host_register));
    EXPECT_FALSE(memory.driver_mapping);
    EXPECT_EQ(plan.read_only, !memory.writable);
    EXPECT_TRUE(memory.writable || c.has(Feature::host_register_read_only));
}

TEST(Adoption, EveryPlanIsLawfulForEveryCombinationOfAttributes) {  // keeps G11
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        for (const ForeignMemory& memory :
             {ForeignMemory{}, ForeignMemory{.writable = false}, ForeignMemory{.driver_mapping = true},
              ForeignMemory{.writable = false, .driver_mapping = true}}) {
            for_every_use([&](const SharedUse& use) {
                const auto plan = plan_adoption(c, memory, use, bytes);
                const bool asks_too_much = !memory.writable && (writes(use.host) || writes(use.device));
                ASSERT_EQ(plan.ok(), !asks_too_much) << bits;
                if (plan) {
                    expect_lawful(c, memory, *plan);
                } else {
                    EXPECT_EQ(plan.code(), Code::not_accessible);
                    EXPECT_FALSE(plan.error().remedy().empty());
                }
            });
        }
    }
}

// keeps G7: the owner's word counts as the mapping's, and changes no plan.
TEST(Adoption, MemoryThatItsOwnerKeepsConstantIsRefusedToWritersAndOtherwiseUsedAsItIs) {
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        for (const bool pageless : {false, true}) {
            for_every_use([&](const SharedUse& use) {
                const auto plan = plan_adoption(c, {.constant = true, .driver_mapping = pageless}, use, bytes);
                if (writes(use.host) || writes(use.device)) {
                    ASSERT_EQ(plan.code(), Code::not_accessible);
                    return;
                }
                const auto other = plan_adoption(c, {.driver_mapping = pageless}, use, bytes);
                ASSERT_TRUE(plan && other);
                EXPECT_EQ(plan->registers, other->registers);
                EXPECT_FALSE(plan->read_only);
                EXPECT_EQ(plan->registered.kind, other->registered.kind);
                EXPECT_EQ(plan->otherwise.kind, other->otherwise.kind);
                EXPECT_EQ(plan->otherwise.path, other->otherwise.path);
            });
        }
    }
}

std::string text(const char* machine, const SharedUse& use, const ForeignMemory& memory = {}) {
    const auto plan = plan_adoption(of_machine(machine), memory, use, bytes);
    if (!plan) return std::string(name(plan.code()));
    const auto words = [](const AdoptedAs& as) {
        return std::string(name(as.kind)) + " " + std::string(name(as.path));
    };
    return plan->registers ? words(plan->registered) + ", else " + words(plan->otherwise) : words(plan->otherwise);
}

TEST(Adoption, FollowsTheRowForACamerasFrame) {  // keeps G11
    const SharedUse frame{.host = Use::writes_often, .device = Use::reads_once};
    for (const char* machine : {"h200", "rtx-wsl2", "orin"}) {
        EXPECT_EQ(text(machine, frame), "registered pass, else device stage") << machine;
    }
    for (const char* machine : {"rtx-hmm", "b300-hmm"}) {
        EXPECT_EQ(text(machine, frame), "registered pass, else host pass") << machine;
    }
    for (const char* machine : {"thor", "gb10", "gh200-numa", "gh200-cdmm", "gb200"}) {
        EXPECT_EQ(text(machine, frame), "host pass") << machine;
    }
    for (const char* machine : gpu_machines) {
        EXPECT_EQ(text(machine, frame, {.driver_mapping = true}), "device stage") << machine;
    }
    const SharedUse quick{.host = Use::writes_often, .device = Use::reads_once, .prefer = Prefer::latency};
    EXPECT_EQ(text("thor", quick), "registered pass, else host pass");
    const SharedUse often{.host = Use::writes_often, .device = Use::reads_often};
    EXPECT_EQ(text("h200", often), "device stage, else device stage");
    EXPECT_EQ(text("orin", often), "device stage, else device stage") << "pinned pages are not cached by this GPU";
    EXPECT_EQ(text("thor", often), "host pass");
    for (const char* machine : {"gh200-numa", "gh200-cdmm"}) {
        EXPECT_EQ(text(machine, often), "device stage, else device stage") << machine;
    }
    // keeps P6: a declared number of passes replaces "often"
    SharedUse few = often;
    few.device_passes = 2;
    EXPECT_EQ(text("gh200-numa", few), "host pass");
    EXPECT_EQ(text("orin", few), "registered pass, else device stage");
    few.device_passes = 1;
    EXPECT_EQ(text("h200", few), "registered pass, else device stage") << "once: never copied, at any size";
}

// keeps G7
TEST(Adoption, MemoryOfADeviceThatOtherCodeRegisteredStaysInPlaceAndOutOfConcurrentUse) {
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        for (const K kind : {K::pinned, K::write_combined}) {
            for (const bool io : {false, true}) {
                for_every_use([&](const SharedUse& use) {
                    const auto plan = plan_adoption(c, {.kind = kind, .io_memory = io}, use, bytes);
                    if (!plan) return;
                    EXPECT_EQ(plan->otherwise.kind, kind);
                    EXPECT_EQ(plan->otherwise.io_memory, io);
                    EXPECT_EQ(plan->otherwise.reason.find("IOMEMORY") != std::string_view::npos, io);
                    EXPECT_FALSE(plan->registers);
                });
            }
        }
    }
    for (const bool pageless : {false, true}) {
        const auto plan = plan_adoption(cpu(), {.driver_mapping = pageless}, {}, bytes);
        EXPECT_EQ(plan->otherwise.io_memory, pageless);
        EXPECT_EQ(plan->otherwise.path, LaunchPath::pass);
    }
}

Code code(const Capabilities& c, const ForeignMemory& memory, std::optional<K> kind) {
    return plan_adoption(c, memory, {.kind = kind}, bytes).code();
}

TEST(Adoption, KindsThatItCannotBeAreRefused) {  // keeps G11
    const Capabilities h200 = of_machine("h200"), thor = of_machine("thor");
    EXPECT_EQ(code(h200, {}, K::host), Code::not_accessible);
    EXPECT_EQ(code(thor, {}, K::host), Code::ok);
    EXPECT_EQ(code(thor, {.driver_mapping = true}, K::host), Code::not_accessible);
    EXPECT_EQ(code(h200, {.driver_mapping = true}, K::registered), Code::not_accessible);
    EXPECT_EQ(code(h200, {}, K::registered), Code::ok);
    EXPECT_EQ(code(h200, {}, K::pinned), Code::unsupported);
    EXPECT_EQ(code(h200, {.driver_mapping = true}, K::device), Code::ok);
    EXPECT_EQ(code(h200, {.readable = false}, std::nullopt), Code::not_accessible);
    EXPECT_TRUE(plan_adoption(h200, {}, {.kind = K::registered}, bytes)->insists);
}

TEST(Adoption, ReadOnlyMemoryIsRegisteredOnRequestWhereTheDeviceCanAndElseRefusedWithTheReason) {  // keeps G11
    int refused = 0;
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        if (c.memory == MemoryModel::host || c.has(Feature::host_register_read_only)) continue;
        const SharedUse use{.host = Use::reads_once, .device = Use::reads_once, .kind = K::registered};
        const auto plan = plan_adoption(c, {.writable = false}, use, bytes);
        ASSERT_EQ(plan.code(), Code::unsupported);
        EXPECT_EQ(plan.error().message(),
                  "adopting the memory is refused: the caller asked for registered memory, and " +
                      c.feature(Feature::host_register_read_only).reason);
        ++refused;
    }
    EXPECT_GT(refused, 0);
}

TEST(Adoption, WhatTheDriverKnowsIsUsedAsWhatItIsOrRefused) {  // keeps A10, K2
    for (const char* machine : gpu_machines) {
        const Capabilities c = of_machine(machine);
        for (const K kind : {K::pinned, K::device, K::pool}) {
            const auto plan = plan_adoption(c, {.kind = kind}, {}, bytes);
            ASSERT_TRUE(plan) << machine << " " << name(kind);
            EXPECT_EQ(plan->otherwise.kind, kind);
            EXPECT_FALSE(plan->registers);
        }
        EXPECT_EQ(code(c, {.kind = K::device, .own_device = false}, std::nullopt), Code::wrong_device);
        EXPECT_EQ(code(c, {.kind = K::pinned}, K::registered), Code::unsupported);
        const Code managed = c.managed == ManagedModel::phase_guarded ? Code::unsupported
                             : c.managed == ManagedModel::none        ? Code::not_accessible
                                                                      : Code::ok;
        EXPECT_EQ(code(c, {.kind = K::managed}, std::nullopt), managed) << machine;
    }
}

TEST(Adoption, PinnedMemoryThatIsMappedForReadingIsOnlyRead) {  // keeps G7
    const ForeignMemory memory{.kind = K::pinned, .writable = false};
    for (const char* machine : gpu_machines) {
        const Capabilities c = of_machine(machine);
        EXPECT_TRUE(plan_adoption(c, memory, {.host = Use::reads_often, .device = Use::reads_often}, bytes)) << machine;
        EXPECT_EQ(plan_adoption(c, memory, {.host = Use::never, .device = Use::writes_once}, bytes).code(),
                  Code::not_accessible);
        EXPECT_EQ(plan_adoption(c, memory, {.host = Use::writes_once, .device = Use::reads_once}, bytes).code(),
                  Code::not_accessible);
    }
}

// keeps G11: the border of the axes decides, and what is touched once is never copied, because it may be many frames
TEST(Adoption, TheSizeFromWhichACopyPaysIsTheRows) {
    const auto copied = [](const Capabilities& c, Use device, std::size_t size) {
        const auto plan = plan_adoption(c, {}, {.host = Use::writes_often, .device = device}, size);
        return plan->registers ? plan->registered.path == LaunchPath::stage : plan->otherwise.path == LaunchPath::stage;
    };
    for (const char* machine : gpu_machines) {
        const Capabilities c = of_machine(machine);
        if (!device_access(c, K::registered)) continue;
        for (const Use device : {Use::reads_often, Use::writes_often, Use::reads_and_writes}) {
            const auto least = copy_pays_from_bytes(c, {.host = Use::writes_often, .device = device});
            EXPECT_EQ(copied(c, device, any_size), least.has_value()) << machine;
            if (!least) continue;
            EXPECT_TRUE(copied(c, device, *least)) << machine;
            EXPECT_FALSE(copied(c, device, *least - 1)) << machine;
        }
        EXPECT_FALSE(copied(c, Use::reads_once, any_size)) << machine;
        EXPECT_FALSE(copied(c, Use::writes_once, any_size)) << machine;
    }
}

// keeps Y5
TEST(Adoption, ADmaBufIsNeverLeftAsUnregisteredMemory) {
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        for (const bool writable : {true, false}) {
            for (const bool pages : {true, false}) {
                const ForeignMemory memory{.writable = writable, .driver_mapping = !pages, .dma_buf = true};
                const ForeignMemory ordinary{.writable = writable, .driver_mapping = !pages};
                for_every_use([&](const SharedUse& use) {
                    const auto plan = plan_adoption(c, memory, use, bytes);
                    const auto other = plan_adoption(c, ordinary, use, bytes);
                    ASSERT_EQ(plan.ok(), other.ok()) << bits;
                    if (!plan) return;
                    if (c.memory == MemoryModel::host) {
                        EXPECT_FALSE(plan->imports);
                        EXPECT_EQ(plan->otherwise.kind, K::host);
                        return;
                    }
                    EXPECT_EQ(plan->otherwise.path, LaunchPath::stage) << bits;
                    const bool copy_pays = other->registered.path == LaunchPath::stage;
                    EXPECT_EQ(plan->imports, writable && !copy_pays) << bits;
                    if (plan->imports) {
                        EXPECT_EQ(plan->imported.path, LaunchPath::pass);
                    }
                    if (plan->registers) {
                        EXPECT_EQ(plan->registered.path, copy_pays ? LaunchPath::stage : LaunchPath::pass);
                    }
                });
            }
        }
    }
}

}  // namespace
