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

// The size from which a copy is faster behind a link, as measured (docs/machines.md).
constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
std::size_t border(Use device) {
    switch (device) {
        case Use::never: return any_size;
        case Use::reads_once: return 16 * MiB;
        case Use::writes_once: return 32 * MiB;
        case Use::reads_often: return 16 * KiB;
        default: return 256 * KiB;
    }
}
constexpr std::array<std::size_t, 15> sizes = {
    0,         1,       4 * KiB,      16 * KiB - 1, 16 * KiB,     64 * KiB, 256 * KiB - 1,
    256 * KiB, 1 * MiB, 16 * MiB - 1, 16 * MiB,     32 * MiB - 1, 32 * MiB, 4096 * MiB,
    any_size};

// The expected plan as text, row by row.
std::string expected(const std::string& machine, Use host, Use device, Prefer prefer, std::size_t bytes) {
    if (machine == "cpu") return "host pass host";
    if (host == Use::never) return "device pass device";
    if (std::set<std::string>{"h200", "rtx-wsl2", "rtx-hmm", "b300-hmm"}.count(machine) != 0) {
        const bool copied = device != Use::never && bytes >= border(device) && prefer == Prefer::throughput;
        return copied ? "device stage pinned" : "pinned pass pinned";
    }
    if (machine == "orin") return "pinned pass pinned";
    const bool one_dram = machine == "thor" || machine == "gb10";
    return one_dram && prefer == Prefer::latency ? "registered pass registered" : "host pass host";
}

template <class Each>
void for_every_use(Each each) {
    for (const Use host : uses) {
        for (const Use device : uses) {
            for (const Prefer prefer : {Prefer::throughput, Prefer::latency}) each(host, device, prefer);
        }
    }
}

TEST(Policy, AgreesWithTheOracleOnEveryRow) {  // keeps G11
    std::vector<std::string> machines(gpu_machines.begin(), gpu_machines.end());
    machines.push_back("cpu");
    for (const std::string& machine : machines) {
        const Capabilities c = machine == "cpu" ? cpu() : of_machine(machine);
        for_every_use([&](Use host, Use device, Prefer prefer) {
            for (const std::size_t bytes : sizes) {
                const auto plan = plan_allocation(c, {.host = host, .device = device, .prefer = prefer}, bytes);
                ASSERT_TRUE(plan);
                EXPECT_EQ(text_of(*plan), expected(machine, host, device, prefer, bytes))
                    << machine << " host " << name(host) << " device " << name(device) << " " << bytes;
                EXPECT_FALSE(plan->reason.empty());
            }
        });
    }
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
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        for_every_use([&](Use host, Use device, Prefer prefer) {
            const SharedUse use{.host = host, .device = device, .prefer = prefer};
            const auto plan = plan_allocation(c, use);
            ASSERT_TRUE(plan) << bits;
            expect_lawful(c, use, *plan);
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
    EXPECT_EQ(text_of(*plan_allocation(of_machine("thor"), {.kind = K::managed})), "managed pass managed");
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
    EXPECT_EQ(plan_allocation(grace, {})->placement.locality, Locality::near_device);
    SharedUse use;
    use.placement.locality = Locality::interleaved;
    use.placement.prefault = true;
    EXPECT_EQ(plan_allocation(grace, use)->placement.locality, Locality::interleaved);
    EXPECT_TRUE(plan_allocation(grace, use)->placement.prefault);
    EXPECT_EQ(plan_allocation(of_machine("orin"), {})->placement.locality, Locality::anywhere) << "the driver places";
    EXPECT_EQ(plan_allocation(cpu(), {})->placement.locality, Locality::anywhere);
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

// keeps G11: the size is part of the question, the row's least one the border, and both are told
TEST(Policy, CopiesPayFromTheRowsSizeOnAndNeverOnOneMemory) {
    for (const char* machine : gpu_machines) {
        const Capabilities c = of_machine(machine);
        const platform::Row& row = platform::row_of(c);
        for (const Use device : uses) {
            const SharedUse use{.host = Use::writes_often, .device = device};
            const auto least = copy_pays_from_bytes(c, use);
            EXPECT_EQ(least.has_value(), row.copy_pays.value && device != Use::never) << machine << name(device);
            for (const std::size_t bytes : sizes) {
                EXPECT_EQ(copy_pays(c, use, bytes), least && bytes >= *least) << machine << " " << bytes;
                const auto plan = plan_allocation(c, use, bytes);
                EXPECT_EQ(plan->path == LaunchPath::stage, copy_pays(c, use, bytes)) << machine << " " << bytes;
                if (!least) continue;
                EXPECT_NE(plan->reason.find(size_text(*least)), std::string_view::npos) << plan->reason;
                EXPECT_NE(plan->reason.find(bytes >= *least ? "from " : "below "), std::string_view::npos);
            }
            EXPECT_FALSE(copy_pays_from_bytes(c, {.device = device, .prefer = Prefer::latency})) << machine;
            EXPECT_FALSE(copy_pays_from_bytes(c, {.device = device, .updates = AtomicSet::add})) << machine;
        }
        const SharedUse both{};
        const auto larger = std::max(row.reads_often_copied_from_bytes.value, row.writes_often_copied_from_bytes.value);
        EXPECT_EQ(copy_pays_from_bytes(c, both).value_or(0), larger) << machine;
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
    EXPECT_EQ(text_of(*plan_allocation(of_machine("orin"), corners)), "pinned pass pinned");
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
