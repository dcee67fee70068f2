// SPDX-License-Identifier: Apache-2.0
// How received frames come into buffers of the program: on every recorded machine, for every kind of memory.
#include "some_devices.hpp"

#include <isthmus/ucx.hpp>

#include <gtest/gtest.h>

#include <access_rules.hpp>

#include <set>
#include <string>

namespace isthmus {
namespace {

using Path = ucx::ReceivePath;

// The machines whose GPU uses the CPU's page tables: managed memory lies where the CPU may write it.
const std::set<std::string> coherent = {"thor", "gb10", "gh200-numa", "gh200-cdmm", "gb200", "station"};

// keeps N2
TEST(ReceivePath, OnEveryMachineOfEveryKindIsAsTheMachineSharesMemory) {
    std::set<std::string> seen;
    for (const char* machine : some_devices::gpu_machines) {
        const Capabilities c = some_devices::of_machine(machine);
        const bool is_coherent = coherent.count(machine) == 1;
        seen.insert(machine);
        for (int number = 0; number < memory_kind_count; ++number) {
            const auto kind = static_cast<MemoryKind>(number);
            const bool managed = kind == MemoryKind::managed || kind == MemoryKind::managed_pool;
            for (int bits = 0; bits < 16; ++bits) {
                const ucx::ReceiveFacts facts{.kind = kind,
                                              .translation = c.translation,
                                              .cpu_sees = (bits & 1) != 0,
                                              .own = (bits & 2) != 0,
                                              .ucx_has_cuda = (bits & 4) != 0,
                                              .by_rendezvous = (bits & 8) != 0};
                Path wanted = bits == 14 ? Path::ucx_cuda : Path::pinned_copy;
                if (facts.cpu_sees) wanted = Path::in_place;
                if (managed && !is_coherent) wanted = Path::pinned_copy;
                EXPECT_EQ(ucx::receive_path(facts), wanted) << machine << " " << name(kind) << " " << bits;
            }
        }
        // What is written in place outside of kernels' turns is what the rules let the CPU write at any time.
        const Path of_managed =
            ucx::receive_path({.kind = MemoryKind::managed, .translation = c.translation, .cpu_sees = true});
        if (c.managed == ManagedModel::phase_guarded) {
            EXPECT_EQ(of_managed, Path::pinned_copy) << machine;
            EXPECT_FALSE(rules::host_access(c, MemoryKind::managed)) << machine;
        } else if (of_managed == Path::in_place) {
            EXPECT_TRUE(rules::host_access(c, MemoryKind::managed)) << machine;
        }
    }
    EXPECT_EQ(seen.size(), some_devices::gpu_machines.size());
    for (const std::string& each : coherent) EXPECT_EQ(seen.count(each), 1u) << each;
    const Capabilities cpu = some_devices::cpu();
    for (int bits = 0; bits < 8; ++bits) {
        EXPECT_EQ(ucx::receive_path({.kind = MemoryKind::host,
                                     .translation = cpu.translation,
                                     .cpu_sees = true,
                                     .own = (bits & 1) != 0,
                                     .ucx_has_cuda = (bits & 2) != 0,
                                     .by_rendezvous = (bits & 4) != 0}),
                  Path::in_place);
    }
}

TEST(ReceivePath, HasANameForEachAndOneForOthers) {
    EXPECT_EQ(ucx::name(Path::in_place), "in place: UCX writes into the buffers");
    EXPECT_EQ(ucx::name(Path::ucx_cuda), "device memory: UCX with CUDA");
    EXPECT_EQ(ucx::name(Path::pinned_copy), "copied through pinned host memory");
    EXPECT_EQ(ucx::name(static_cast<Path>(9)), "unknown");
}

}  // namespace
}  // namespace isthmus
