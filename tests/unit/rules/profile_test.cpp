// SPDX-License-Identifier: Apache-2.0
// What was measured chooses, over every machine, use and kind, and only among what the rules allow.
#include "profile_rules.hpp"

#include "access_rules.hpp"
#include "adoption_rules.hpp"
#include "allocation_policy.hpp"
#include "some_devices.hpp"

#include <isthmus/profile.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using some_devices::of_machine;

constexpr std::array machines = {"h200",  "rtx-hmm",  "rtx-wsl2", "orin",       "thor", "gb10",   "gh200-numa",
                                 "gb200", "b300-hmm", "station",  "gh200-cdmm", "igx",  "h200-x2"};
constexpr std::array uses = {Use::reads_once, Use::reads_often, Use::writes_once, Use::writes_often,
                             Use::reads_and_writes};
constexpr std::array roles = {Role::reads, Role::writes, Role::reads_and_writes};
constexpr std::array prefers = {Prefer::throughput, Prefer::latency};

// One choice for each use: `kind` from `from_bytes` bytes and `passes` passes on, and pinned memory before.
DeviceProfile everything(MemoryKind kind, int passes = 1, std::size_t from_bytes = 0) {
    DeviceProfile profile;
    for (const Role device : roles) {
        for (const Role host : roles) {
            for (const bool often : {false, true}) {
                for (const Prefer prefer : prefers) {
                    ProfileChoice each{device, host, often, prefer, 1, 0, MemoryKind::pinned, Locality::anywhere};
                    if (passes > 1) {
                        profile.choices.push_back(each);
                        each.passes = passes;
                    }
                    if (from_bytes > 0) {
                        profile.choices.push_back(each);
                        each.from_bytes = from_bytes;
                    }
                    each.kind = kind;
                    profile.choices.push_back(each);
                }
            }
        }
    }
    return profile;
}
Capabilities with(Capabilities device, DeviceProfile profile) {
    EXPECT_EQ(fault_of(profile.choices), "");
    device.profile = std::make_shared<const DeviceProfile>(std::move(profile));
    return device;
}

// keeps P5: a kind that the rules refuse, and attachment, which restricts the program, leave the table's choice
TEST(Profile, ChoosesWhatTheRulesAllowAndNothingElse) {
    int taken = 0, left = 0;
    for (const char* machine : machines) {
        const Capabilities bare = of_machine(machine);
        for (int k = 1; k < memory_kind_count; ++k) {
            const auto kind = static_cast<MemoryKind>(k);
            const Capabilities tuned = with(bare, everything(kind));
            for (const Use host : uses) {
                for (const Use device : uses) {
                    const SharedUse use{.host = host, .device = device};
                    SharedUse asked = use;
                    asked.kind = kind;
                    const auto plain = plan_allocation(bare, use, 1 << 20);
                    const auto by_kind = plan_allocation(bare, asked, 1 << 20);
                    const auto plan = plan_allocation(tuned, use, 1 << 20);
                    ASSERT_TRUE(plan && plain) << machine;
                    const bool allowed = by_kind && by_kind->path != LaunchPath::attach;
                    const AllocationPlan& wanted = allowed ? *by_kind : *plain;
                    EXPECT_EQ(plan->kind, wanted.kind) << machine << name(kind);
                    EXPECT_EQ(plan->path, wanted.path) << machine << name(kind);
                    EXPECT_EQ(plan->host_kind, wanted.host_kind) << machine << name(kind);
                    EXPECT_EQ(plan->reason.starts_with("measured on this device"), allowed) << plan->reason;
                    ++(allowed ? taken : left);
                }
            }
        }
    }
    EXPECT_GT(taken, 1000);
    EXPECT_GT(left, 1000);
    EXPECT_NE(plan_allocation(with(of_machine("orin"), everything(MemoryKind::managed)), {})->path, LaunchPath::attach);
    EXPECT_FALSE(plan_allocation(with(of_machine("h200"), everything(MemoryKind::write_combined)),
                                 {.host = Use::reads_and_writes, .device = Use::reads_once})
                     ->reason.starts_with("measured"));
}

// keeps P3: passes and size find their choice, on both sides of each border
TEST(Profile, TheBordersOfPassesAndSizesDecide) {
    const Capabilities tuned = with(of_machine("h200"), everything(MemoryKind::device, 5, 3000));
    for (const int passes : {1, 4, 5, 6, 1000}) {
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{2999}, std::size_t{3000}, any_size}) {
            const SharedUse use{.host = Use::writes_once, .device = Use::reads_often, .device_passes = passes};
            const bool copied = passes >= 5 && bytes >= 3000;
            EXPECT_EQ(plan_allocation(tuned, use, bytes)->path, copied ? LaunchPath::stage : LaunchPath::pass)
                << passes << " " << bytes;
        }
    }
    EXPECT_EQ(plan_allocation(tuned, {.device = Use::reads_often}, 4000)->path, LaunchPath::stage)
        << "often: 16 passes";
    EXPECT_EQ(plan_allocation(tuned, {.device = Use::reads_once}, 4000)->path, LaunchPath::pass);
}

// keeps P3: each use has its own row
TEST(Profile, EachUseReadsItsOwnRow) {
    DeviceProfile profile;
    for (std::size_t at = 0; const Role device : roles) {
        for (const Role host : roles) {
            for (const bool often : {false, true}) {
                for (const Prefer prefer : prefers) {
                    profile.choices.push_back(
                        {device, host, often, prefer, 1, 0, MemoryKind::pinned, Locality::anywhere});
                    profile.choices.push_back(
                        {device, host, often, prefer, 1, 1000 + at++, MemoryKind::device, Locality::anywhere});
                }
            }
        }
    }
    const Capabilities tuned = with(of_machine("h200"), profile);
    for (const Use device : uses) {
        for (const Use host : uses) {
            for (const Prefer prefer : prefers) {
                const SharedUse use{.host = host, .device = device, .prefer = prefer};
                const ProfileChoice* const found = measured_choice(tuned, use, any_size);
                ASSERT_NE(found, nullptr);
                const bool reads = device == Use::reads_once || device == Use::reads_often;
                const bool writes = device == Use::writes_once || device == Use::writes_often;
                EXPECT_EQ(found->device, reads ? Role::reads : writes ? Role::writes : Role::reads_and_writes);
                EXPECT_EQ(found->host_often, host == Use::reads_often || host == Use::writes_often);
                EXPECT_EQ(found->prefer, prefer);
                EXPECT_EQ(measured_choice(tuned, use, found->from_bytes - 1)->kind, MemoryKind::pinned);
                EXPECT_EQ(measured_choice(tuned, use, found->from_bytes)->kind, MemoryKind::device);
            }
        }
    }
    for (const SharedUse& use : {SharedUse{.host = Use::never}, {.device = Use::never}, {.updates = AtomicSet::add}}) {
        EXPECT_EQ(measured_choice(tuned, use, 4096), nullptr);
    }
    EXPECT_EQ(measured_choice(of_machine("h200"), {}, 4096), nullptr) << "no profile";
    DeviceProfile late = everything(MemoryKind::device);
    for (ProfileChoice& each : late.choices) each.passes = 8;
    EXPECT_EQ(measured_choice(with(of_machine("h200"), late), {.device = Use::reads_once}, 1), nullptr);
    EXPECT_NE(measured_choice(with(of_machine("h200"), late), {.device = Use::reads_often}, 1), nullptr);
    EXPECT_EQ(measured_choice(with(of_machine("h200"), {}), {}, 4096), nullptr) << "an empty profile";
}

// keeps P3: where pages may migrate, the profile says whether they are bound; a place that the caller names stays
TEST(Profile, SaysWhereHostMemoryLies) {
    const Capabilities bare = of_machine("gh200-numa");
    for (const Locality measured : {Locality::near_device, Locality::unbound}) {
        DeviceProfile profile = everything(MemoryKind::host);
        for (ProfileChoice& each : profile.choices) each.locality = measured;
        const Capabilities tuned = with(bare, profile);
        EXPECT_EQ(plan_allocation(tuned, {.device = Use::reads_often})->placement.locality, measured);
        EXPECT_EQ(plan_allocation(tuned, {.device = Use::reads_once})->placement.locality, measured);
        const SharedUse placed{.device = Use::reads_often, .placement = {.locality = Locality::interleaved}};
        EXPECT_EQ(plan_allocation(tuned, placed)->placement.locality, Locality::interleaved);
    }
    EXPECT_EQ(plan_allocation(with(bare, everything(MemoryKind::host)), {})->placement.locality,
              plan_allocation(bare, {.kind = MemoryKind::host})->placement.locality)
        << "anywhere: as the policy places this kind";
}

// keeps P3: adopted memory is copied where copies were measured to pay, from the second pass on
TEST(Profile, AdoptedMemoryFollowsIt) {
    const ForeignMemory memory{};
    for (const char* machine : {"h200", "orin", "gb10", "gh200-cdmm"}) {
        const Capabilities bare = of_machine(machine);
        for (const int passes : {1, 2, 16}) {
            const SharedUse use{.host = Use::writes_once, .device = Use::reads_often, .device_passes = passes};
            const auto path = [&](const Capabilities& c) {
                return plan_adoption(c, memory, use, 1 << 26)->otherwise.path;
            };
            if (static_cast<bool>(device_access(bare, MemoryKind::host))) {
                EXPECT_EQ(path(with(bare, everything(MemoryKind::pinned))), LaunchPath::pass) << machine << passes;
            }
            EXPECT_EQ(path(with(bare, everything(MemoryKind::device))) == LaunchPath::stage,
                      passes > 1 || !device_access(bare, MemoryKind::host))
                << machine << passes;
        }
    }
}

// keeps P4: each key is compared, and a no says which one differs
TEST(Profile, IsForOneDeviceDriverKernelAndMemoryModel) {
    MachineFacts machine;
    machine.driver_version = 13000;
    machine.kernel_release = "6.8.0";
    DeviceFacts device;
    device.uuid = Uuid::parse("GPU-01020304-0506-0708-090a-0b0c0d0e0f10").value();
    Capabilities capabilities;
    DeviceProfile profile;
    profile.device = device.uuid;
    profile.driver_version = 13000;
    profile.kernel_release = "6.8.0";
    const auto why = [&](const DeviceProfile& each) {
        const AccessAnswer answer = profile_applies(each, machine, device, capabilities);
        return answer ? std::string() : std::string(answer.reason);
    };
    EXPECT_EQ(why(profile), "");
    DeviceProfile other = profile;
    other.device = Uuid::parse("GPU-11020304-0506-0708-090a-0b0c0d0e0f10").value();
    EXPECT_EQ(why(other), "it is another device's");
    other = profile;
    other.driver_version = 13010;
    EXPECT_EQ(why(other), "it was made with another driver");
    other = profile;
    other.kernel_release = "6.8.1";
    EXPECT_EQ(why(other), "it was made with another kernel");
    other = profile;
    other.translation = Translation::hmm;
    EXPECT_EQ(why(other), "the device had another memory model then");
    other = profile;
    other.memory = MemoryModel::coherent_hidden;
    EXPECT_EQ(why(other), "the device had another memory model then");
    other = profile;
    other.simulated = true;
    EXPECT_EQ(why(other), "it was made on a simulated machine");
    machine.simulated = true;
    EXPECT_EQ(why(other), "");
}

// keeps P4: the choices of a whole profile are ascending, and each row begins at 0 bytes
TEST(Profile, ChoicesOutOfOrderAreAFault) {
    const std::vector<ProfileChoice> good = everything(MemoryKind::device, 4, 4096).choices;
    EXPECT_EQ(fault_of(good), "");
    EXPECT_EQ(fault_of({}), "");
    for (std::size_t i = 0; i + 1 < good.size(); ++i) {
        std::vector<ProfileChoice> swapped = good;
        std::swap(swapped[i], swapped[i + 1]);
        EXPECT_NE(fault_of(swapped), "") << i;
        std::vector<ProfileChoice> twice = good;
        twice[i + 1] = twice[i];
        EXPECT_NE(fault_of(twice), "") << i;
    }
    std::vector<ProfileChoice> bad = good;
    bad.front().passes = 0;
    EXPECT_EQ(fault_of(bad), "a choice has no passes");
    bad = good;
    bad.front().from_bytes = 1;
    EXPECT_EQ(fault_of(bad), "the first choice for a number of passes does not begin at 0 bytes");
    bad = good;
    bad.back().kind = MemoryKind::unknown;
    EXPECT_EQ(fault_of(bad), "a choice names no kind of memory");
}

}  // namespace
