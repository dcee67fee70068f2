// SPDX-License-Identifier: Apache-2.0
// Which memory a shared buffer gets: every combination of row, uses, preference and override is lawful, and agrees with
// an oracle written from the declared use and the platform facts.
#include "some_devices.hpp"

#include <access_rules.hpp>
#include <allocation_policy.hpp>
#include <atomic_rules.hpp>
#include <platform/capability_table.hpp>

#include <algorithm>
#include <set>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using namespace some_devices;
using K = MemoryKind;

constexpr std::array<Use, 6> uses = {Use::never,       Use::reads_once,   Use::reads_often,
                                     Use::writes_once, Use::writes_often, Use::reads_and_writes};

std::string text_of(const AllocationPlan& plan) {
    return std::string(name(plan.kind)) + " " + std::string(name(plan.path)) + " " + std::string(name(plan.host_kind));
}

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::array<int, 7> pass_numbers = {0, 1, 2, 3, 4, 15, 16};

// Three classes of machines, written from the documents and not from the table.
bool is_one_of(const std::string& machine, std::initializer_list<const char*> list) {
    return std::find(list.begin(), list.end(), machine) != list.end();
}
bool behind_a_link(const std::string& machine) {
    return is_one_of(machine, {"h200", "rtx-wsl2", "igx", "rtx-hmm", "b300-hmm"});
}
bool is_numa_grace(const std::string& machine) {
    return is_one_of(machine, {"gh200-numa", "gb200", "station"});
}
bool is_grace(const std::string& machine) {
    return is_numa_grace(machine) || machine == "gh200-cdmm";
}

int expected_passes(Use device, int declared) {
    if (device == Use::never) return 0;
    if (declared > 0) return declared;
    return device == Use::reads_once || device == Use::writes_once ? 1 : 16;
}
bool device_reads(Use use) {
    return use == Use::reads_once || use == Use::reads_often || use == Use::reads_and_writes;
}
bool device_writes(Use use) {
    return use == Use::writes_once || use == Use::writes_often || use == Use::reads_and_writes;
}

// The size from which a copy is faster: behind a link as measured (docs/machines.md), elsewhere as assumed.
std::size_t border(const std::string& machine, Use device, int declared = 0) {
    const int passes = expected_passes(device, declared);
    if (passes == 0) return any_size;
    if (machine == "orin") return passes >= 16 ? 256 * KiB : passes >= 4 ? 1 * MiB : any_size;
    if (is_grace(machine)) return passes >= 16 ? 256 * KiB : passes >= 4 ? 2 * MiB : any_size;
    if (!behind_a_link(machine)) return any_size;
    const std::size_t reads = passes >= 16 ? 16 * KiB : passes >= 4 ? 32 * KiB : passes >= 2 ? 512 * KiB : 16 * MiB;
    const std::size_t writes = passes >= 4 ? 256 * KiB : passes >= 2 ? 1 * MiB : 32 * MiB;
    return std::max(device_reads(device) ? reads : 0, device_writes(device) ? writes : 0);
}
constexpr std::array<std::size_t, 20> sizes = {
    0,         1,          4 * KiB,      16 * KiB - 1, 16 * KiB, 32 * KiB,     64 * KiB, 256 * KiB - 1,
    256 * KiB, 512 * KiB,  1 * MiB,      2 * MiB - 1,  2 * MiB,  16 * MiB - 1, 16 * MiB, 32 * MiB - 1,
    32 * MiB,  4096 * MiB, any_size - 1, any_size};

// The expected plan as text, machine by machine.
std::string expected(const std::string& machine, Use host, Use device, Prefer prefer, std::size_t bytes,
                     int declared = 0) {
    if (machine == "cpu") return "host pass host";
    if (host == Use::never) return "device pass device";
    const std::size_t least = border(machine, device, declared);
    if (least != any_size && bytes >= least && prefer == Prefer::throughput) return "device stage pinned";
    if (behind_a_link(machine) || machine == "orin") return "pinned pass pinned";
    const bool one_dram = machine == "thor" || machine == "gb10";
    return one_dram && prefer == Prefer::latency ? "registered pass registered" : "host pass host";
}
// Where host memory that the library places lies: never bound to a node where it may migrate to a GPU that uses it
// often.
Locality expected_place(const std::string& machine, Use device, int declared, const std::string& plan) {
    if (plan != "host pass host" && plan != "registered pass registered") return Locality::anywhere;
    if (machine == "cpu") return Locality::anywhere;
    return is_numa_grace(machine) && expected_passes(device, declared) >= 4 ? Locality::unbound : Locality::near_device;
}

std::vector<std::string> all_machines() {
    std::vector<std::string> machines(gpu_machines.begin(), gpu_machines.end());
    machines.push_back("cpu");
    return machines;
}
Capabilities capabilities_of(const std::string& machine) {
    return machine == "cpu" ? cpu() : of_machine(machine);
}

template <class Each>
void for_every_use(Each each) {
    for (const Use host : uses) {
        for (const Use device : uses) {
            for (const Prefer prefer : {Prefer::throughput, Prefer::latency}) each(host, device, prefer);
        }
    }
}

TEST(Policy, AgreesWithTheOracleOnEveryMachine) {  // keeps G11, P1, P6, P8
    for (const std::string& machine : all_machines()) {
        const Capabilities c = capabilities_of(machine);
        for_every_use([&](Use host, Use device, Prefer prefer) {
            for (const int declared : pass_numbers) {
                for (const std::size_t bytes : sizes) {
                    const auto plan = plan_allocation(
                        c, {.host = host, .device = device, .prefer = prefer, .device_passes = declared}, bytes);
                    ASSERT_TRUE(plan);
                    const std::string wanted = expected(machine, host, device, prefer, bytes, declared);
                    ASSERT_EQ(text_of(*plan), wanted) << machine << " host " << name(host) << " device " << name(device)
                                                      << " " << bytes << " passes " << declared;
                    ASSERT_EQ(plan->placement.locality, expected_place(machine, device, declared, wanted))
                        << machine << " device " << name(device) << " passes " << declared;
                    ASSERT_FALSE(plan->reason.empty());
                }
            }
        });
    }
}

// keeps P1: equal axes give equal choices, whatever the row is called
TEST(Policy, ReadsAxesAndNoName) {
    for (const char* machine : gpu_machines) {
        const Capabilities c = of_machine(machine);
        for (int model = 0; model < model_count; ++model) {
            Capabilities renamed = c;
            renamed.model = static_cast<Model>(model);
            for_every_use([&](Use host, Use device, Prefer prefer) {
                const SharedUse use{.host = host, .device = device, .prefer = prefer};
                for (const std::size_t bytes : {std::size_t{1}, any_size}) {
                    const auto before = plan_allocation(c, use, bytes);
                    const auto after = plan_allocation(renamed, use, bytes);
                    ASSERT_EQ(text_of(*after), text_of(*before)) << machine;
                    ASSERT_EQ(after->reason, before->reason) << machine;
                    ASSERT_EQ(after->placement.locality, before->placement.locality) << machine;
                }
            });
        }
    }
}

// keeps P1: what differs in an axis differs in the choice
TEST(Policy, TellsApartWhatANameWouldNot) {
    const SharedUse often{.host = Use::writes_often, .device = Use::reads_often};
    const auto numa = plan_allocation(of_machine("gh200-numa"), often, 4 * KiB);
    const auto hidden = plan_allocation(of_machine("gh200-cdmm"), often, 4 * KiB);
    EXPECT_EQ(of_machine("gh200-numa").model, of_machine("gh200-cdmm").model);
    EXPECT_EQ(numa->placement.locality, Locality::unbound) << "its pages may migrate to the GPU";
    EXPECT_EQ(hidden->placement.locality, Locality::near_device) << "no page migrates there";
    EXPECT_NE(numa->reason, hidden->reason);
    // One DRAM, with the CPU's page tables and without.
    EXPECT_EQ(text_of(*plan_allocation(of_machine("thor"), often)), "host pass host");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("orin"), often)), "device stage pinned");
}

// keeps P2: each choice says where it comes from, and what is assumed says so
TEST(Policy, EachReasonEndsWithTheOriginOfWhatDecided) {
    const auto says = [](const char* machine, const SharedUse& use, std::size_t bytes, std::string_view origin) {
        const auto plan = plan_allocation(of_machine(machine), use, bytes);
        EXPECT_NE(plan->reason.find("(" + std::string(origin)), std::string_view::npos)
            << machine << ": " << plan->reason;
        EXPECT_EQ(plan->reason.back(), ')') << plan->reason;
    };
    const SharedUse often{.host = Use::writes_often, .device = Use::reads_often};
    const SharedUse once{.host = Use::writes_often, .device = Use::reads_once};
    SharedUse twice = often;
    twice.device_passes = 2;
    SharedUse quick;
    quick.prefer = Prefer::latency;
    for (const std::size_t bytes : {std::size_t{1}, any_size}) {
        says("h200", often, bytes, "measured on a machine of this class: H200)");
        says("h200", once, bytes, "measured on a machine of this class: H200)");
        says("h200", twice, bytes, "assumed)");
        says("rtx-hmm", often, bytes, "assumed)");
        says("orin", often, bytes, "assumed)");
        says("orin", once, bytes, "documented)");
        says("gh200-numa", often, bytes, "assumed)");
        says("gh200-cdmm", often, bytes, "assumed)");
        says("gh200-numa", once, bytes, "documented)");
        says("thor", often, bytes, "reported by others)");
        says("thor", quick, bytes, "reported by others)");
        says("orin", quick, bytes, "documented)");
    }
}

// keeps P2: no number without an origin and a source, in every set of traits
TEST(Policy, EveryNumberHasAnOriginAndASource) {
    const auto told = [](platform::ValueOrigin origin, std::string_view source) {
        EXPECT_FALSE(source.empty());
        EXPECT_NE(name(origin), "unknown");
        for (const std::string_view prefix : {"observed", "documented", "assumed", "measured"}) {
            EXPECT_NE(source.substr(0, prefix.size()), prefix) << "the origin is a value of its own: " << source;
        }
    };
    for (std::size_t index = 0; index < platform::traits_count; ++index) {
        const platform::Traits& traits = platform::traits_at(index);
        EXPECT_EQ(platform::index_of(traits), index);
        for (const platform::CopyBorders* borders : {&traits.reads_copied, &traits.writes_copied}) {
            for (const platform::CopyBorder& each : *borders) {
                if (each.passes == 0) continue;
                told(each.origin, each.source);
                EXPECT_EQ(border_for(*borders, each.passes), &each);
                EXPECT_NE(border_for(*borders, each.passes - 1), &each);
                if (each.origin == platform::ValueOrigin::measured) {
                    EXPECT_EQ(each.source.substr(0, 5), "H200,") << "a measurement names its machine";
                }
            }
        }
        told(traits.shared_in_place.origin, traits.shared_in_place.source);
        told(traits.shared_for_latency.origin, traits.shared_for_latency.source);
        told(traits.near_device.origin, traits.near_device.source);
        told(traits.migrates_from_passes.origin, traits.migrates_from_passes.source);
        told(traits.prefetching.origin, traits.prefetching.source);
    }
    EXPECT_EQ(origin_text(platform::ValueOrigin::measured, "H200, 16 passes"),
              "measured on a machine of this class: H200");
    EXPECT_EQ(origin_text(platform::ValueOrigin::assumed, "H200, 16 passes"), "assumed");
}

// keeps P6
TEST(Policy, APassIsANumberAndOftenIsOnlyAWordForMany) {
    EXPECT_EQ(passes_of_device({.device = Use::never, .device_passes = 9}), 0);
    EXPECT_EQ(passes_of_device({.device = Use::reads_once}), 1);
    EXPECT_EQ(passes_of_device({.device = Use::writes_often}), many_passes);
    EXPECT_EQ(passes_of_device({}), many_passes);
    EXPECT_EQ(passes_of_device({.device = Use::reads_once, .device_passes = 9}), 9);
    EXPECT_EQ(passes_of_device({.device = Use::reads_often, .device_passes = -1}), many_passes);
    for (const char* machine : gpu_machines) {
        const Capabilities c = of_machine(machine);
        for (const auto& [once, often] :
             {std::pair{Use::reads_once, Use::reads_often}, std::pair{Use::writes_once, Use::writes_often}}) {
            std::size_t last = any_size;
            for (int passes = 1; passes <= 64; ++passes) {
                const SharedUse use{.host = Use::writes_often, .device = once, .device_passes = passes};
                SharedUse word = use;
                word.device = often;
                const auto least = copy_pays_from_bytes(c, use);
                EXPECT_EQ(copy_pays_from_bytes(c, word), least) << "the word says the direction alone";
                EXPECT_LE(least.value_or(any_size), last) << machine << ": more passes never need more bytes";
                last = least.value_or(any_size);
            }
            const SharedUse many{.host = Use::writes_often, .device = often};
            EXPECT_EQ(copy_pays_from_bytes(c, many).value_or(any_size), last) << machine;
        }
    }
}

// keeps P8: without a measurement, the vendor's advice for boards whose GPU does not cache pinned memory
TEST(Policy, IntegratedCopiesWhatIsLargeAndReadRepeatedlyAndPinsTheRest) {
    const Capabilities orin = of_machine("orin");
    ASSERT_EQ(orin.managed, ManagedModel::phase_guarded);
    const auto text = [&](const SharedUse& use, std::size_t bytes) {
        return text_of(*plan_allocation(orin, use, bytes));
    };
    const SharedUse often{.host = Use::writes_once, .device = Use::reads_often};
    EXPECT_EQ(text(often, 64 * MiB), "device stage pinned");
    EXPECT_EQ(text(often, 64 * KiB), "pinned pass pinned") << "small";
    EXPECT_EQ(text({.host = Use::writes_often, .device = Use::reads_once}, 64 * MiB), "pinned pass pinned") << "once";
    SharedUse quick = often;
    quick.prefer = Prefer::latency;
    EXPECT_EQ(text(quick, 64 * MiB), "pinned pass pinned") << "latency";
    // Never managed memory unasked: it would be for one side at a time, also between kernels that do not use it.
    for_every_use([&](Use host, Use device, Prefer prefer) {
        for (const std::size_t bytes : sizes) {
            const auto plan = plan_allocation(orin, {.host = host, .device = device, .prefer = prefer}, bytes);
            ASSERT_NE(plan->path, LaunchPath::attach);
        }
    });
}

// keeps P8: what the GPU uses often is never bound to the CPU's node, and from the border on it is copied
TEST(Policy, GraceBindsNothingThatTheGpuUsesOften) {
    for (const char* machine : {"gh200-numa", "gb200", "station"}) {
        const Capabilities grace = of_machine(machine);
        ASSERT_EQ(grace.memory, MemoryModel::coherent_node);
        for_every_use([&](Use host, Use device, Prefer prefer) {
            for (const int passes : pass_numbers) {
                for (const std::size_t bytes : sizes) {
                    const SharedUse use{.host = host, .device = device, .prefer = prefer, .device_passes = passes};
                    const auto plan = plan_allocation(grace, use, bytes);
                    if (plan->path == LaunchPath::stage || expected_passes(device, passes) < 4) continue;
                    // Memory of the device alone has no place on the host.
                    const Locality place = plan->kind == K::device ? Locality::anywhere : Locality::unbound;
                    ASSERT_EQ(plan->placement.locality, place) << machine << " " << name(device);
                }
            }
        });
        const SharedUse map{.host = Use::writes_once, .device = Use::reads_often};
        EXPECT_EQ(text_of(*plan_allocation(grace, map, 64 * MiB)), "device stage pinned");
        EXPECT_EQ(plan_allocation(grace, {.host = Use::writes_often, .device = Use::reads_once})->placement.locality,
                  Locality::near_device);
    }
    const SharedUse map{.host = Use::writes_once, .device = Use::reads_often};
    EXPECT_EQ(text_of(*plan_allocation(of_machine("gh200-cdmm"), map, 64 * MiB)), "device stage pinned");
}

// A plan is lawful where each side can access the memory that it gets.
void expect_lawful(const Capabilities& c, const SharedUse& use, const AllocationPlan& plan) {
    EXPECT_TRUE(device_access(c, plan.kind)) << text_of(plan);
    EXPECT_FALSE(plan.reason.empty());
    if (plan.path == LaunchPath::attach) {
        // The host uses a guarded view: the plain query says no, and the memory is managed.
        EXPECT_EQ(plan.kind, K::managed);
        EXPECT_EQ(c.managed, ManagedModel::phase_guarded);
    } else if (use.host != Use::never) {
        EXPECT_TRUE(host_access(c, plan.host_kind)) << text_of(plan);
    }
    EXPECT_NE(plan.path, LaunchPath::refuse);
    EXPECT_EQ(plan.path == LaunchPath::stage, plan.kind != plan.host_kind) << text_of(plan);
}

TEST(Policy, EveryPlanIsLawfulForEveryCombinationOfAttributes) {  // keeps G11
    for (unsigned bits = 0; bits < 2 * combinations; ++bits) {
        const Capabilities c = of_bits(bits % combinations, {}, bits >= combinations);
        for_every_use([&](Use host, Use device, Prefer prefer) {
            for (const std::size_t bytes : {std::size_t{1}, any_size}) {
                const SharedUse use{.host = host, .device = device, .prefer = prefer};
                const auto plan = plan_allocation(c, use, bytes);
                ASSERT_TRUE(plan) << bits;
                expect_lawful(c, use, *plan);
            }
        });
    }
}

TEST(Policy, AnAskedKindIsGivenLawfullyOrRefusedWithARemedy) {  // keeps G11
    for (unsigned bits = 0; bits < combinations; bits += 3) {
        const Capabilities c = of_bits(bits);
        for_every_kind([&](K kind) {
            for (const Use host : uses) {
                const SharedUse use{.host = host, .kind = kind};
                const auto plan = plan_allocation(c, use);
                if (plan) {
                    EXPECT_EQ(plan->kind, kind);
                    expect_lawful(c, use, *plan);
                } else {
                    EXPECT_TRUE(plan.code() == Code::unsupported || plan.code() == Code::not_accessible);
                    EXPECT_NE(plan.error().message().find(name(kind)), std::string_view::npos);
                    EXPECT_FALSE(plan.error().remedy().empty()) << name(kind);
                }
            }
        });
    }
}

Code code_of(const char* machine, K kind, Use host = Use::reads_and_writes) {
    return plan_allocation(of_machine(machine), {.host = host, .kind = kind}).code();
}

TEST(Policy, AskedKindsThatAMachineCannotShareAreRefused) {  // keeps G11
    EXPECT_EQ(code_of("h200", K::host), Code::not_accessible);
    EXPECT_EQ(code_of("orin", K::host_numa), Code::not_accessible);
    EXPECT_EQ(code_of("thor", K::host), Code::ok);
    EXPECT_EQ(code_of("h200", K::write_combined), Code::not_accessible) << "the host reads it";
    EXPECT_EQ(code_of("h200", K::write_combined, Use::writes_often), Code::ok);
    EXPECT_EQ(code_of("old-driver", K::pool), Code::unsupported);
    for (const K kind : {K::unknown, K::managed_pool, K::graph, K::vmm, K::imported}) {
        EXPECT_EQ(code_of("gb200", kind), Code::unsupported) << name(kind);
    }
    EXPECT_EQ(plan_allocation(cpu(), {.kind = K::managed}).code(), Code::unsupported);
}

TEST(Policy, ManagedMemoryIsAttachedWherePhasesAreGuarded) {  // keeps K6
    EXPECT_EQ(text_of(*plan_allocation(of_machine("orin"), {.kind = K::managed})), "managed attach managed");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("rtx-wsl2"), {.kind = K::managed})), "managed attach managed");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("thor"), {.kind = K::managed})), "managed prefetch managed");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("gh200-numa"), {.kind = K::managed})), "managed pass managed");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("h200"), {.kind = K::managed})), "managed prefetch managed");
}

TEST(Policy, OnTheCpuDeviceEveryGivenKindIsHostMemory) {
    for (const K kind : {K::host, K::pinned, K::registered, K::device, K::pool, K::write_combined, K::host_numa}) {
        EXPECT_EQ(text_of(*plan_allocation(cpu(), {.kind = kind})), "host pass host") << name(kind);
    }
}

TEST(Policy, LatencyIsNeverStagedWhereTheDeviceReachesHostMemory) {
    for (const char* machine : gpu_machines) {
        const Capabilities c = of_machine(machine);
        for_every_use([&](Use host, Use device, Prefer) {
            const auto plan = plan_allocation(c, {.host = host, .device = device, .prefer = Prefer::latency});
            EXPECT_EQ(plan->path, LaunchPath::pass) << machine;
        });
    }
}

TEST(Policy, HostMemoryLiesNearTheDeviceUnlessTheCallerSaysOtherwise) {  // keeps H1
    const Capabilities grace = of_machine("gh200-numa");
    const SharedUse frame{.host = Use::writes_often, .device = Use::reads_once};
    EXPECT_EQ(plan_allocation(grace, frame)->placement.locality, Locality::near_device);
    EXPECT_EQ(plan_allocation(of_machine("gb10"), {})->placement.locality, Locality::near_device);
    SharedUse use;
    use.placement.locality = Locality::interleaved;
    use.placement.prefault = true;
    EXPECT_EQ(plan_allocation(grace, use, 4 * KiB)->placement.locality, Locality::interleaved);
    EXPECT_EQ(text_of(*plan_allocation(grace, use)), "device stage registered");
    EXPECT_TRUE(plan_allocation(grace, use)->placement.prefault);
    EXPECT_EQ(plan_allocation(of_machine("orin"), {})->placement.locality, Locality::anywhere) << "the driver places";
    EXPECT_EQ(plan_allocation(cpu(), {})->placement.locality, Locality::anywhere);
}

TEST(Policy, UnboundMemoryIsNoPlaceForWhichMemoryIsRegistered) {  // keeps P8
    SharedUse use{.host = Use::writes_often, .device = Use::reads_once};
    use.placement.locality = Locality::unbound;
    EXPECT_EQ(text_of(*plan_allocation(of_machine("h200"), use, 4 * KiB)), "pinned pass pinned");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("gh200-numa"), use)), "host pass host");
    EXPECT_EQ(plan_allocation(of_machine("gh200-numa"), use)->placement.locality, Locality::unbound);
}

TEST(Policy, WhoSaysWhereMemoryLiesGetsItBoundThereAndRegisteredWhereTheDriverWouldPlaceIt) {  // keeps G11, H1
    SharedUse use{.host = Use::writes_often, .device = Use::reads_once};
    use.placement.locality = Locality::node;
    use.placement.node = 1;
    for (const char* machine : {"h200", "rtx-hmm", "orin"}) {
        const auto plan = plan_allocation(of_machine(machine), use, 4096);
        EXPECT_EQ(text_of(*plan), "registered pass registered") << machine;
        EXPECT_EQ(plan->placement.node, 1) << machine;
        use.prefer = Prefer::latency;
        EXPECT_EQ(text_of(*plan_allocation(of_machine(machine), use)), "registered pass registered") << machine;
        use.prefer = Prefer::throughput;
    }
    EXPECT_EQ(text_of(*plan_allocation(of_machine("gb10"), use)), "host pass host") << "bound, and no need to register";
    EXPECT_EQ(text_of(*plan_allocation(cpu(), use)), "host pass host");
    use.device = Use::reads_often;
    EXPECT_EQ(text_of(*plan_allocation(of_machine("h200"), use)), "device stage registered");
    EXPECT_EQ(plan_allocation(of_machine("h200"), use)->placement.node, 1);
    use.kind = MemoryKind::pinned;
    EXPECT_EQ(text_of(*plan_allocation(of_machine("h200"), use)), "pinned pass pinned") << "asked for by kind";
}

// keeps G11: HOST_REGISTER (99) is a promise of the driver that some drivers break
TEST(Policy, WhereRegisteringIsRefusedOrdinaryMemoryTakesItsPlaceIfTheDeviceReachesIt) {
    for (const std::string& machine : all_machines()) {
        const Capabilities c = capabilities_of(machine);
        const bool reaches = c.has(Feature::pageable_access);
        for_every_use([&](Use host, Use device, Prefer prefer) {
            for (const Locality locality : {Locality::anywhere, Locality::node}) {
                SharedUse use{.host = host, .device = device, .prefer = prefer};
                use.placement.locality = locality;
                const AllocationPlan plan = *plan_allocation(c, use, 4096);
                const auto other = without_registering(c, use, plan);
                ASSERT_EQ(other.has_value(), text_of(plan) == "registered pass registered" && reaches) << machine;
                if (!other) continue;
                EXPECT_EQ(text_of(*other), "host pass host");
                EXPECT_EQ(other->placement.locality, plan.placement.locality) << "bound where it was";
                EXPECT_NE(other->reason.find("refused to register"), std::string_view::npos) << other->reason;
            }
        });
        SharedUse asked;
        asked.kind = MemoryKind::registered;
        const auto planned = plan_allocation(c, asked, 4096);
        EXPECT_FALSE(planned && without_registering(c, asked, *planned)) << "asked for by kind";
        SharedUse updated{.prefer = Prefer::latency, .updates = AtomicSet::add};
        if (const auto plan = plan_allocation(c, updated, 4096); plan && plan->kind == MemoryKind::registered) {
            EXPECT_TRUE(without_registering(c, updated, *plan)) << "system memory is atomic where the GPU reaches it";
        }
    }
    for (int code = 0; code <= static_cast<int>(Code::ended); ++code) {
        const bool expected = code == 1 || code == 5 || code == 7 || code == 15 || code == 19;
        EXPECT_EQ(cannot_register(static_cast<Code>(code)), expected) << code;
    }
}

// keeps G11, P6: the size and the passes are part of the question, their border decides, and it is told
TEST(Policy, CopiesPayFromTheBorderOfTheAxesOnAndNeverOnOneMemory) {
    for (const std::string& machine : all_machines()) {
        const Capabilities c = capabilities_of(machine);
        for (const Use device : uses) {
            for (const int passes : pass_numbers) {
                const SharedUse use{.host = Use::writes_often, .device = device, .device_passes = passes};
                const auto least = copy_pays_from_bytes(c, use);
                const std::size_t wanted = border(machine, device, passes);
                EXPECT_EQ(least.value_or(any_size), wanted) << machine << name(device) << passes;
                const platform::CopyBorder* told = copy_border(c, use);
                EXPECT_EQ(told != nullptr, least.has_value());
                for (const std::size_t bytes : sizes) {
                    EXPECT_EQ(copy_pays(c, use, bytes), least && bytes >= *least) << machine << " " << bytes;
                    const auto plan = plan_allocation(c, use, bytes);
                    EXPECT_EQ(plan->path == LaunchPath::stage, copy_pays(c, use, bytes)) << machine << " " << bytes;
                    if (!least) continue;
                    EXPECT_NE(plan->reason.find(size_text(*least)), std::string_view::npos) << plan->reason;
                    EXPECT_NE(plan->reason.find(bytes >= *least ? "from " : "below "), std::string_view::npos);
                    EXPECT_NE(plan->reason.find("(" + origin_text(told->origin, told->source) + ")"),
                              std::string_view::npos)
                        << plan->reason;
                }
            }
            EXPECT_FALSE(copy_pays_from_bytes(c, {.device = device, .prefer = Prefer::latency})) << machine;
            EXPECT_FALSE(copy_pays_from_bytes(c, {.device = device, .updates = AtomicSet::add})) << machine;
        }
    }
    EXPECT_EQ(size_text(32 * KiB), "32 KiB");
    EXPECT_EQ(size_text(16 * MiB), "16 MiB");
}

TEST(Policy, TheCameraExampleIsZeroCopyIntoTheDeviceAndStagedOutWhereALinkDivides) {
    const SharedUse frame{.host = Use::writes_often, .device = Use::reads_once};
    const SharedUse corners{.host = Use::reads_once, .device = Use::writes_often};
    EXPECT_EQ(text_of(*plan_allocation(of_machine("h200"), frame, 1920 * 1080 * 4)), "pinned pass pinned");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("h200"), corners)), "device stage pinned");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("h200"), corners, 4096)), "pinned pass pinned");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("orin"), corners, 4096)), "pinned pass pinned");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("orin"), frame, 1920 * 1080 * 4)), "pinned pass pinned");
    EXPECT_EQ(text_of(*plan_allocation(of_machine("gb10"), frame)), "host pass host");
}

AtomicQuestion updating(K kind, const SharedWord& word) {
    AtomicQuestion question;
    question.kind = kind;
    question.width_bytes = word.width_bytes;
    question.is_signed = word.is_signed;
    return question;
}

// Memory is found exactly where some is lawful, and it is lawful.
void expect_updates(const Capabilities& c, AtomicSet updates, const SharedWord& word, Prefer prefer) {
    const SharedUse use{.prefer = prefer, .updates = updates};
    bool possible = false;
    for (const K kind : {K::host, K::pinned, K::registered, K::managed}) {
        SharedUse plain = use;
        plain.updates = AtomicSet::load_store;
        plain.kind = kind;
        const auto made = plan_allocation(c, plain);
        const bool lawful = made && made->path != LaunchPath::attach && made->path != LaunchPath::stage &&
                            shared_atomics(c, updating(made->kind, word), updates);
        // Registered memory is offered where the row prefers it; the rules of pinned memory apply to it.
        if (kind != K::registered) possible |= lawful;
        SharedUse asked = plain;
        asked.updates = updates;
        const auto as_asked = plan_allocation(c, asked, any_size, word);
        ASSERT_EQ(as_asked.ok(), lawful) << name(kind);
        if (!as_asked && made) {
            EXPECT_EQ(as_asked.code(), Code::unsupported);
        }
    }
    const auto plan = plan_allocation(c, use, any_size, word);
    ASSERT_EQ(plan.ok(), possible);
    if (plan) {
        EXPECT_TRUE(shared_atomics(c, updating(plan->kind, word), updates)) << text_of(*plan);
        EXPECT_EQ(plan->kind, plan->host_kind);
        EXPECT_TRUE(plan->path == LaunchPath::pass || plan->path == LaunchPath::prefetch) << text_of(*plan);
        EXPECT_FALSE(plan->reason.empty());
    } else {
        EXPECT_EQ(plan.code(), Code::unsupported);
        EXPECT_NE(plan.error().remedy().find("ShardedCounter"), std::string_view::npos) << plan.error().text();
        EXPECT_NE(plan.error().message().find("memory"), std::string_view::npos);
    }
}

constexpr std::array<AtomicSet, 4> update_sets = {AtomicSet::add, AtomicSet::compare_exchange,
                                                  AtomicSet::min | AtomicSet::max, AtomicSet::float_add};
constexpr std::array<SharedWord, 5> shared_words = {{{4, false}, {4, true}, {8, false}, {8, true}, {16, false}}};

TEST(Policy, WordsThatBothSidesUpdateGetMemoryInWhichThatIsAtomicOrNone) {  // keeps G11, G2
    const auto check = [](const Capabilities& c) {
        for (const AtomicSet updates : update_sets) {
            for (const SharedWord& word : shared_words) {
                for (const Prefer prefer : {Prefer::throughput, Prefer::latency}) {
                    expect_updates(c, updates, word, prefer);
                }
            }
        }
    };
    for (const char* const machine : gpu_machines) {
        SCOPED_TRACE(machine);
        check(of_machine(machine));
        Capabilities narrowed = of_machine(machine);
        narrowed.lossy_kinds = 1u << static_cast<unsigned>(K::managed);
        check(narrowed);
    }
    check(cpu());
    HostAtomics additions{};
    additions[static_cast<std::size_t>(AtomicOperation::add)] = atomic_bits::scalar_32 | atomic_bits::is_unsigned;
    for (unsigned bits = 0; bits < combinations; ++bits) {
        SCOPED_TRACE(bits);
        check(of_bits(bits));
        if (::testing::Test::HasFatalFailure()) return;
        check(of_bits(bits, additions));
    }
}

TEST(Policy, TellsWhichMemoryThatIsRowByRow) {  // keeps G11
    const auto kind = [](const char* machine) {
        const auto plan = plan_allocation(of_machine(machine), {.updates = AtomicSet::add});
        return plan ? std::string(name(plan->kind)) : "refused";
    };
    EXPECT_EQ(kind("h200"), "managed");
    EXPECT_EQ(kind("rtx-hmm"), "managed");
    EXPECT_EQ(kind("rtx-wsl2"), "refused");
    EXPECT_EQ(kind("orin"), "refused");
    EXPECT_EQ(kind("thor"), "host");
    EXPECT_EQ(kind("gh200-numa"), "host");
    // Where only one side uses it, nothing has to be atomic for both.
    EXPECT_EQ(plan_allocation(of_machine("orin"), {.host = Use::never, .updates = AtomicSet::add})->kind, K::device);
}

}  // namespace
